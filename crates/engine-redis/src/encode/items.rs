//! The parts that many calls share: needs, retries, unique keys, patches, moments to come.

use serde::ser::{Serialize, SerializeSeq, SerializeTuple, Serializer};
use tenure_core::job::{Backoff, Need, Retry, Unique};
use tenure_core::requests::Patch;
use tenure_core::settings::Rate;
use tenure_core::time::{Moment, Span};

use super::FOREVER_US;
use crate::alphabet::{backoff, conflict, need, until};

/// A value inside of a list, where `false` stands for none.
pub(super) struct OrFalse<T>(pub Option<T>);

impl<T: Serialize> Serialize for OrFalse<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => value.serialize(s),
            None => s.serialize_bool(false),
        }
    }
}

pub(super) fn moment(at: Moment) -> u64 {
    at.us().min(FOREVER_US)
}

pub(super) fn span(span: Span) -> u64 {
    span.us().min(FOREVER_US)
}

/// A need: `[LIMIT, limit, weight, cost]` or `[POOL, pool, tag, prefer, id, count]`.
pub(super) struct NeedArg<'a>(&'a Need);

impl Serialize for NeedArg<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Need::Limit { limit, weight, cost } => (need::limit, limit, weight, cost).serialize(s),
            Need::Pool { pool, tag, prefer, id, count } => {
                let (tag, prefer) = (OrFalse(tag.as_ref()), OrFalse(prefer.as_ref()));
                (need::pool, pool, tag, prefer, OrFalse(id.as_ref()), count).serialize(s)
            }
        }
    }
}

pub(super) fn needs(needs: &[Need]) -> Vec<NeedArg<'_>> {
    needs.iter().map(NeedArg).collect()
}

/// A retry: `[max_attempts, max_lost, kind, a, b, jitter]`.
pub(crate) struct RetryArg<'a>(pub &'a Retry);

impl Serialize for RetryArg<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all = s.serialize_tuple(6)?;
        all.serialize_element(&self.0.max_attempts)?;
        all.serialize_element(&self.0.max_lost)?;
        let jitter = match &self.0.backoff {
            Backoff::Exponential { base, max, jitter } => {
                all.serialize_element(backoff::exponential)?;
                all.serialize_element(&span(*base))?;
                all.serialize_element(&span(*max))?;
                jitter
            }
            Backoff::Fixed { base, jitter } => {
                all.serialize_element(backoff::fixed)?;
                all.serialize_element(&span(*base))?;
                all.serialize_element(&false)?;
                jitter
            }
            Backoff::List { delays, jitter } => {
                all.serialize_element(backoff::list)?;
                all.serialize_element(&Spans(delays))?;
                all.serialize_element(&false)?;
                jitter
            }
        };
        all.serialize_element(jitter)?;
        all.end()
    }
}

struct Spans<'a>(&'a [Span]);

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all = s.serialize_seq(Some(self.0.len()))?;
        for one in self.0 {
            all.serialize_element(&span(*one))?;
        }
        all.end()
    }
}

/// A unique key: `[key, until, hold, on_conflict, within?, began?]`. `began` comes with a job that is copied.
pub(super) struct UniqueArg<'a> {
    pub unique: &'a Unique,
    pub began: Option<Moment>,
}

impl Serialize for UniqueArg<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Unique { key, until, hold, on_conflict, within } = self.unique;
        let (within, began) = (within.map(span), self.began.map(moment));
        let fields = 4 + if began.is_some() { 2 } else { usize::from(within.is_some()) };
        let mut all = s.serialize_tuple(fields)?;
        all.serialize_element(key)?;
        all.serialize_element(until::letter(*until))?;
        all.serialize_element(&OrFalse(hold.map(span)))?;
        all.serialize_element(conflict::letter(*on_conflict))?;
        if fields > 4 {
            all.serialize_element(&OrFalse(within))?;
        }
        if let Some(began) = began {
            all.serialize_element(&began)?;
        }
        all.end()
    }
}

/// A rate: `[count, per, burst]`.
pub(super) fn rate(rate: Rate) -> (u32, u64, u32) {
    (rate.count, span(rate.per), rate.burst)
}

/// A field of a patch: left out, `false` for back to the default, or its value.
pub(crate) enum Patched<T> {
    /// It is not named.
    Keep,
    /// Back to the default.
    Reset,
    /// It is given.
    Set(T),
}

impl<T> Patched<T> {
    pub(super) fn of<'a, U>(patch: &'a Patch<U>, arg: impl FnOnce(&'a U) -> T) -> Self {
        match patch {
            Patch::Keep => Patched::Keep,
            Patch::Reset => Patched::Reset,
            Patch::Set(value) => Patched::Set(arg(value)),
        }
    }
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Patched::Keep)
    }
}

impl<T: Serialize> Serialize for Patched<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            // Fields that are kept are left out by those who hold them.
            Patched::Keep => s.serialize_none(),
            Patched::Reset => s.serialize_bool(false),
            Patched::Set(value) => value.serialize(s),
        }
    }
}

/// How long something lasts, or until when; neither is without end.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Later {
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub span: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Later {
    pub(crate) fn of(later: tenure_core::lease::Later) -> Self {
        match later {
            tenure_core::lease::Later::For(of) => Later { span: Some(span(of)), until: None },
            tenure_core::lease::Later::Until(at) => Later { span: None, until: Some(moment(at)) },
        }
    }
}
