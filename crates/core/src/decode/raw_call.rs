//! Calls as they come over HTTP, and the two ways between a call and its request. The table of operations requires both,
//! so an operation without them does not compile, and every layer reads and writes a request in the same way.

use std::borrow::Cow;

use serde::Serialize;

use super::object::{AsBody, SentBody};
use super::parameters::ParameterSpec;
use crate::refusal::Refusal;

/// The parts of a call that make its request, without the namespace.
#[derive(Clone, Copy, Debug)]
pub struct RawCall<'a> {
    /// The named parts of the path, decoded, in their order.
    pub names: &'a [Cow<'a, str>],
    /// Names and values, decoded.
    pub query: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// Raw bytes; empty without a body.
    pub body: &'a [u8],
}

impl RawCall<'_> {
    /// The first names of its path; an absent one is empty.
    pub(super) fn names<const N: usize>(&self) -> [&str; N] {
        std::array::from_fn(|at| self.names.get(at).map_or("", |name| name))
    }
}

/// The body of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodySpec {
    /// No body; `{}` counts as none.
    Nothing,
    /// Optional JSON of this schema.
    Optional(&'static str),
    /// JSON of this schema.
    Required(&'static str),
}

impl BodySpec {
    /// The schema of the body.
    pub fn schema(self) -> Option<&'static str> {
        match self {
            BodySpec::Nothing => None,
            BodySpec::Optional(schema) | BodySpec::Required(schema) => Some(schema),
        }
    }
}

/// A request that is decoded from a call.
pub trait Decode: Sized {
    /// The parameters of its query; `None`: it has no query.
    const QUERY: Option<fn() -> Vec<ParameterSpec>>;
    /// The body that a call with it has.
    const BODY: BodySpec;

    /// Decodes it. A query or a body that its operation lacks is not read.
    ///
    /// # Errors
    /// A refusal with the place: `/path/NAME`, `/query/NAME`, or a pointer into the body.
    fn decode(call: RawCall<'_>) -> Result<Self, Refusal>;

    /// Decodes it from the names of its path and a body.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn of<N: AsRef<str>>(names: &[N], body: &[u8]) -> Result<Self, Refusal> {
        let names: Vec<_> = names.iter().map(|name| Cow::Borrowed(name.as_ref())).collect();
        Self::decode(RawCall { names: &names, query: &[], body })
    }
}

/// A body as a client sends it. May hold secrets and payloads: never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum EncodedBody {
    /// The call has no body.
    Nothing,
    /// One value, as `application/json`.
    Json(Vec<u8>),
    /// A whole set, as the JSON of each item: an array if it has at most `most` items and fits into a body, otherwise an
    /// item per line.
    Set { items: Vec<Vec<u8>>, most: usize },
}

impl EncodedBody {
    /// A body that is one object.
    pub(super) fn object(body: &impl SentBody) -> serde_json::Result<EncodedBody> {
        Self::json(&AsBody(body))
    }
    /// A body that is any JSON.
    pub(super) fn json(body: &impl Serialize) -> serde_json::Result<EncodedBody> {
        serde_json::to_vec(body).map(EncodedBody::Json)
    }
    /// A body that is a whole set.
    pub(super) fn set(items: &[impl SentBody], most: usize) -> serde_json::Result<EncodedBody> {
        let items = items.iter().map(|item| serde_json::to_vec(&AsBody(item)));
        Ok(EncodedBody::Set { items: items.collect::<Result<_, _>>()?, most })
    }
}

/// A request that is written as a call. The names of its path come from the table of operations.
pub trait Encode {
    /// Names and values of its query, in their order. Parameters at their defaults are left out.
    fn encode_query(&self) -> Vec<(&'static str, String)>;
    /// The body that a client sends.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    fn encode_body(&self) -> serde_json::Result<EncodedBody>;
}

/// Declares how requests are decoded and encoded. Example:
///
/// ```text
/// http_calls! {
///     GetQueue(queue: queue_path);
///     GetResult(job: job_path) query;
///     PatchJob(job: job_path) body;
///     PauseQueue(queue: queue_path) optional body;
///     PutQueue(name) body "QueueSettings",
///         |call| Ok(PatchQueue::decode(call)?.whole()),
///         |put| EncodedBody::object(&PatchQueue::from(put));
/// }
/// ```
///
/// In parentheses stand the members that the path names, in its order, each with its reader. The query is that of
/// `queried!`, the body that of `object!`. A request with another body has two expressions behind the schema of that: by
/// the first one it is read, by the second one its body is written.
macro_rules! http_calls {
    () => {};
    ($request:ident($($name:ident: $read:expr),*); $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (None) (Nothing)
            (|_call| Ok($request { $($name: $read($name)?),* }))
            (|_sent| Ok($crate::decode::EncodedBody::Nothing)));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) query; $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (query) (Nothing)
            (|call| $crate::decode::parameters::Queried::of_query(($($read($name)?,)*), call.query))
            (|_sent| Ok($crate::decode::EncodedBody::Nothing)));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) body; $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (None)
            (Required(<$request as $crate::decode::object::Call>::SCHEMA))
            (|call| $crate::decode::object::Call::of_body(($($read($name)?,)*), call.body))
            (|sent| $crate::decode::EncodedBody::object(sent)));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) optional body; $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (None)
            (Optional(<$request as $crate::decode::object::Call>::SCHEMA))
            (|call| $crate::decode::object::Call::of_optional_body(($($read($name)?,)*), call.body))
            (|sent| $crate::decode::EncodedBody::object(sent)));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    ($request:ident($($name:ident),*) body $schema:expr,
        |$call:ident| $read:expr, |$sent:ident| $written:expr; $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (None) (Required($schema))
            (|$call| $read) (|$sent| $written));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    ($request:ident($($name:ident),*) query, body $schema:expr,
        |$call:ident| $read:expr, |$sent:ident| $written:expr; $($more:tt)*) => {
        $crate::decode::raw_call::http_calls!(@one $request [$($name),*] (query) (Required($schema))
            (|$call| $read) (|$sent| $written));
        $crate::decode::raw_call::http_calls! { $($more)* }
    };
    (@one $request:ident [$($name:ident),*] ($query:ident) ($body:ident $(($schema:expr))?)
        (|$call:ident| $read:expr) (|$sent:ident| $written:expr)) => {
        impl $crate::decode::Decode for $request {
            const QUERY: Option<fn() -> Vec<$crate::decode::ParameterSpec>> =
                $crate::decode::raw_call::http_calls!(@parameters $query $request);
            const BODY: $crate::decode::BodySpec = $crate::decode::BodySpec::$body $(($schema))?;
            fn decode($call: $crate::decode::RawCall<'_>) -> Result<Self, $crate::refusal::Refusal> {
                let [$($name),*] = $call.names();
                $read
            }
        }
        impl $crate::decode::Encode for $request {
            fn encode_query(&self) -> Vec<(&'static str, String)> {
                $crate::decode::raw_call::http_calls!(@pairs $query self)
            }
            fn encode_body(&self) -> serde_json::Result<$crate::decode::EncodedBody> {
                let $sent = self;
                $written
            }
        }
    };
    (@parameters None $request:ident) => { None };
    (@parameters query $request:ident) => {
        Some(<$request as $crate::decode::parameters::Queried>::parameters)
    };
    (@pairs None $sent:expr) => { Vec::new() };
    (@pairs query $sent:expr) => { $crate::decode::parameters::Queried::pairs($sent) };
}
pub(crate) use http_calls;
