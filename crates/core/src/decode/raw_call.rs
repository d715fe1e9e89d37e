//! Calls as they come over HTTP, and the one decoder of each request. The table of operations requires it, so an operation
//! without one does not compile, and every layer reads a request in the same way.

use std::borrow::Cow;

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
    /// Its body.
    const BODY: BodySpec;

    /// Decodes it. What it does not have, a query or a body, is not looked at.
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

/// Declares how requests are decoded. Example:
///
/// ```text
/// decoders! {
///     GetQueue(queue: queue_path);
///     GetResult(job: job_path) query;
///     PatchJob(job: job_path) body;
///     PauseQueue(queue: queue_path) optional body;
///     PutQueue(name) body "QueueSettings", |call| Ok(PatchQueue::decode(call)?.whole());
/// }
/// ```
///
/// In parentheses stand the members that the path names, in its order, each with its reader. The query is that of
/// `queried!`, the body that of `object!`. A request that is read in another way has an expression for it, behind the
/// schema of its body.
macro_rules! decoders {
    () => {};
    ($request:ident($($name:ident: $read:expr),*); $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*] None, Nothing,
            |_call| Ok($request { $($name: $read($name)?),* }));
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) query; $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*]
            Some(<$request as $crate::decode::parameters::Queried>::parameters), Nothing,
            |call| $crate::decode::parameters::Queried::of_query(($($read($name)?,)*), call.query));
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) body; $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*] None,
            Required(<$request as $crate::decode::object::Call>::SCHEMA),
            |call| $crate::decode::object::Call::of_body(($($read($name)?,)*), call.body));
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    ($request:ident($($name:ident: $read:expr),*) optional body; $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*] None,
            Optional(<$request as $crate::decode::object::Call>::SCHEMA),
            |call| $crate::decode::object::Call::of_optional_body(($($read($name)?,)*), call.body));
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    ($request:ident($($name:ident),*) body $schema:expr, |$call:ident| $read:expr; $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*] None, Required($schema), |$call| $read);
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    ($request:ident($($name:ident),*) query, body $schema:expr, |$call:ident| $read:expr; $($more:tt)*) => {
        $crate::decode::raw_call::decoders!(@one $request [$($name),*]
            Some(<$request as $crate::decode::parameters::Queried>::parameters), Required($schema), |$call| $read);
        $crate::decode::raw_call::decoders! { $($more)* }
    };
    (@one $request:ident [$($name:ident),*] $query:expr, $body:ident $(($schema:expr))?, |$call:ident| $read:expr) => {
        impl $crate::decode::Decode for $request {
            const QUERY: Option<fn() -> Vec<$crate::decode::ParameterSpec>> = $query;
            const BODY: $crate::decode::BodySpec = $crate::decode::BodySpec::$body $(($schema))?;
            fn decode($call: $crate::decode::RawCall<'_>) -> Result<Self, $crate::refusal::Refusal> {
                let [$($name),*] = $call.names();
                $read
            }
        }
    };
}
pub(crate) use decoders;
