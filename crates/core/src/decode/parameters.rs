//! The table of query parameters. `queried!` declares the query of a request: the reader of a server, the check of a
//! request that a program made, the query that a client sends and the OpenAPI document come from it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::forms::ValueKind;
use super::words::phrases;
use crate::at::{At, escaped};
use crate::refusal::Refusal;
use crate::sentences::{ValueRefusal, cut};

/// The prefix of a pointer to a query parameter.
pub(crate) const QUERY: At<'_> = At::Member(&At::Body, "query");

/// The parameters of a call: each is known, and none appears twice.
pub struct Query<'q> {
    pairs: Vec<(&'q str, &'q str)>,
}

impl<'q> Query<'q> {
    pub(super) fn read<K: AsRef<str>, V: AsRef<str>>(
        pairs: &'q [(K, V)],
        known: &[&'static str],
    ) -> Result<Self, Refusal> {
        let mut taken: Vec<(&str, &str)> = Vec::with_capacity(pairs.len().min(known.len()));
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            let refuse = |case: ValueRefusal| {
                Err(Refusal::from(case).at(format!("/query/{}", escaped(name))))
            };
            if !known.contains(&name) {
                let (shown, known) = (cut(name), phrases(known.iter().copied()));
                return refuse(match known.as_slice() {
                    [] => ValueRefusal::ParameterOfNone { shown },
                    _ => ValueRefusal::ParameterUnknown { shown, known },
                });
            }
            if taken.iter().any(|(other, _)| *other == name) {
                return refuse(ValueRefusal::ParameterTwice { shown: cut(name) });
            }
            taken.push((name, value));
        }
        Ok(Query { pairs: taken })
    }

    pub(super) fn take<T>(&self, parameter: &Parameter<T>) -> Result<Option<T>, Refusal> {
        let name = parameter.name;
        let Some((_, value)) = self.pairs.iter().find(|(other, _)| *other == name) else {
            return Ok(None);
        };
        let here = |no: Refusal| no.about(format_args!("{name:?}")).at(format!("/query/{name}"));
        (parameter.read)(value).map(Some).map_err(here)
    }
}

/// A query parameter, for documents.
#[derive(Clone, PartialEq, Debug)]
pub struct ParameterSpec {
    pub name: &'static str,
    /// The values that it takes, as text.
    pub kind: ValueKind,
    /// What it means: unit, range, default.
    pub sentence: &'static str,
}

/// A query parameter, with its values.
pub(crate) struct Parameter<T: 'static> {
    pub name: &'static str,
    pub read: fn(&str) -> Result<T, Refusal>,
    pub write: fn(&T) -> String,
    /// Refuses a value that a program made and `read` would refuse.
    pub check: fn(&T, &At<'_>) -> Result<(), Refusal>,
    pub kind: fn() -> ValueKind,
    pub sentence: &'static str,
}

impl<T: Display> Parameter<T> {
    /// A text that `read` judges. Its type holds only good values, and writes them as they are read.
    pub(super) const fn text(
        name: &'static str,
        read: fn(&str) -> Result<T, Refusal>,
        sentence: &'static str,
    ) -> Self {
        Parameter {
            name,
            read,
            write: T::to_string,
            check: |_, _| Ok(()),
            kind: || ValueKind::Text(None),
            sentence,
        }
    }
}

impl<T> Parameter<T> {
    pub(super) const fn of_kind(mut self, kind: fn() -> ValueKind) -> Self {
        self.kind = kind;
        self
    }
    pub(super) const fn checked(mut self, check: fn(&T, &At<'_>) -> Result<(), Refusal>) -> Self {
        self.check = check;
        self
    }
    /// Describes it for documents.
    pub(super) fn spec(&self) -> ParameterSpec {
        ParameterSpec { name: self.name, kind: (self.kind)(), sentence: self.sentence }
    }
    /// Refuses a value that a reader would refuse.
    pub(super) fn within_bounds(&self, value: &T) -> Result<(), Refusal> {
        (self.check)(value, &At::Member(&QUERY, self.name))
    }
    /// Its name and its value, as a query has them.
    pub(super) fn pair(&self, value: &T) -> (&'static str, String) {
        (self.name, (self.write)(value))
    }
}

/// Whole numbers within bounds.
pub(super) const fn whole(bounds: &'static RangeInclusive<i64>) -> ValueKind {
    ValueKind::Whole(*bounds.start()..=*bounds.end())
}

/// A request, or a part of one, that is read from a query. Its keys are members that the query does not name.
pub trait Queried: Sized {
    type Keys;
    /// Its parameters, in their order.
    fn parameters() -> Vec<ParameterSpec>;
    /// Reads it from the parameters of a call, which are all known.
    #[doc(hidden)]
    fn of_parameters(keys: Self::Keys, query: &Query<'_>) -> Result<Self, Refusal>;
    /// Refuses a value that a reader would refuse.
    ///
    /// # Errors
    /// As a server refuses the same value in a query.
    fn query_within_bounds(&self) -> Result<(), Refusal>;
    /// Names and values of its query, in their order. Parameters at their defaults are left out.
    fn pairs(&self) -> Vec<(&'static str, String)>;

    /// Reads it from a query. A parameter that is unknown or appears twice is refused.
    ///
    /// # Errors
    /// `unknown_field`, `invalid_field` and `out_of_bounds`, with the pointer `/query/NAME`.
    fn of_query<K: AsRef<str>, V: AsRef<str>>(
        keys: Self::Keys,
        query: &[(K, V)],
    ) -> Result<Self, Refusal> {
        let known: Vec<&str> =
            Self::parameters().into_iter().map(|parameter| parameter.name).collect();
        Self::of_parameters(keys, &Query::read(query, &known)?)
    }
}

/// Declares the query of a request, or of a part of one. Example:
///
/// ```text
/// queried! { ListParents(job: JobRef) { full = FULL, default; } [page: Page] }
/// ```
///
/// In parentheses stand the members that the caller of its reader fills in. `optional` members are an `Option`,
/// `default` ones have the default of their type, and `or` a value of their own. A member in brackets has parameters of its
/// own.
macro_rules! queried {
    ($($request:ident ($($key:ident: $key_type:ty),*) {
        $($field:ident = $parameter:ident, $presence:ident $($given:expr)?;)*
    } $([$($flat:ident: $flat_type:ident),*])?)*) => {$(
        impl $crate::decode::parameters::Queried for $request {
            type Keys = ($($key_type,)*);
            fn parameters() -> Vec<$crate::decode::parameters::ParameterSpec> {
                let all = [$($parameter.spec(),)*].into_iter();
                $($(let all = all.chain($flat_type::parameters());)*)?
                all.collect()
            }
            fn of_parameters(
                ($($key,)*): Self::Keys,
                query: &$crate::decode::parameters::Query<'_>,
            ) -> Result<Self, $crate::refusal::Refusal> {
                Ok($request {
                    $($key,)*
                    $($($flat: $flat_type::of_parameters((), query)?,)*)?
                    $($field: $crate::decode::parameters::read_parameter!(
                        query, $parameter, $presence $($given)?
                    ),)*
                })
            }
            fn query_within_bounds(&self) -> Result<(), $crate::refusal::Refusal> {
                $($(self.$flat.query_within_bounds()?;)*)?
                $($crate::decode::parameters::check_parameter!(self.$field, $parameter, $presence);)*
                Ok(())
            }
            fn pairs(&self) -> Vec<(&'static str, String)> {
                let mut all = Vec::new();
                $($crate::decode::parameters::put_parameter!(
                    all, self.$field, $parameter, $presence $($given)?
                );)*
                $($(all.extend(self.$flat.pairs());)*)?
                all
            }
        }
    )*};
}

macro_rules! read_parameter {
    ($query:ident, $parameter:expr, optional) => {
        $query.take(&$parameter)?
    };
    ($query:ident, $parameter:expr, default) => {
        $query.take(&$parameter)?.unwrap_or_default()
    };
    ($query:ident, $parameter:expr, or $value:expr) => {
        $query.take(&$parameter)?.unwrap_or($value)
    };
    ($query:ident, $parameter:expr, required $refusal:expr) => {
        match $query.take(&$parameter)? {
            Some(value) => value,
            None => {
                return Err($crate::refusal::Refusal::from($refusal)
                    .at(format!("/query/{}", $parameter.name)))
            }
        }
    };
}

macro_rules! check_parameter {
    ($value:expr, $parameter:expr, optional) => {
        if let Some(value) = &$value {
            $parameter.within_bounds(value)?;
        }
    };
    ($value:expr, $parameter:expr, $other:ident) => {
        $parameter.within_bounds(&$value)?;
    };
}

macro_rules! put_parameter {
    ($all:ident, $value:expr, $parameter:expr, optional) => {
        if let Some(value) = &$value {
            $all.push($parameter.pair(value));
        }
    };
    ($all:ident, $value:expr, $parameter:expr, default) => {
        if $crate::decode::parameters::is_set(&$value) {
            $all.push($parameter.pair(&$value));
        }
    };
    ($all:ident, $value:expr, $parameter:expr, $other:ident $given:expr) => {
        $all.push($parameter.pair(&$value));
    };
}
pub(crate) use {check_parameter, put_parameter, queried, read_parameter};

/// True for a value that is not the default of its type.
pub(super) fn is_set<T: Default + PartialEq>(value: &T) -> bool {
    *value != T::default()
}

/// Requests whose bounds are those of their queries.
macro_rules! bounded_queries {
    ($($request:ident)*) => {
        $(impl $crate::bounded::Bounded for $request {
            fn within_bounds(&self) -> Result<(), $crate::refusal::Refusal> {
                $crate::decode::parameters::Queried::query_within_bounds(self)
            }
        })*
    };
}
pub(crate) use bounded_queries;
