//! Retry policies: for a run that fails and a holder that dies. A given policy replaces the whole old one; absent
//! members have their defaults.

use serde::{Serialize, Serializer};

use super::fields::Value;
use super::forms::{Duration, Flag, Form, List, ValueKind, Whole, Words};
use super::object::object;
use crate::at::At;
use crate::bounded::{AMOUNT, Spans};
use crate::bounds::DELAYS_MAX;
use crate::job::{Backoff, Retry};
use crate::refusal::Refusal;
use crate::time::Span;

object! {
    RetryFields "a retry" "Retry"
    whole Retry;
    fields {
        max_attempts: u32 = Whole(AMOUNT), or Retry::default().max_attempts,
            "How many runs may fail, 0 to 1,000,000,000; 0 is without end, 20 the default.";
        max_lost: u32 = Whole(AMOUNT), or Retry::default().max_lost,
            "How many times in a row the worker may be lost before the job fails as poison; 0 is never, 3 the default.";
        max_snoozes: u32 = Whole(AMOUNT), nullable,
            "How often a job may snooze before it fails, 0 to 1,000,000,000; absent is without end.";
        backoff: Backoff = BackoffFields, default, "How long a job waits between attempts.";
    }
}

object! {
    BackoffFields "a backoff" "Backoff"
    fields {
        kind: BackoffKind = Words("a kind of backoff", KINDS), optional,
            "How the waits grow: exponential (the default), fixed, or a list.";
        base: Span = Duration(Spans::ANY), optional,
            "The first wait, or the only one of kind fixed; 1s if absent.";
        max: Span = Duration(Spans::ANY), optional, "The longest wait of kind exponential; 1h if absent.";
        delays: Vec<Span> = List(1..=DELAYS_MAX, Duration(Spans::ANY)), optional,
            "The waits of kind list, 1 to 100; the last one repeats.";
        jitter: bool = Flag, optional,
            "Whether each wait is drawn evenly between half of it and the whole; true if absent.";
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum BackoffKind {
    Exponential,
    Fixed,
    List,
}

const KINDS: &[(&str, BackoffKind)] = &[
    ("exponential", BackoffKind::Exponential),
    ("fixed", BackoffKind::Fixed),
    ("list", BackoffKind::List),
];

impl Form<Backoff> for BackoffFields {
    fn read(&self, value: Value<'_, '_>) -> Result<Backoff, Refusal> {
        let fields = value.fields(Self::SHAPE)?;
        let kind = fields.read(&Self::kind())?;
        let jitter = fields.read(&Self::jitter())?.unwrap_or(true);
        let base = || fields.read(&Self::base()).map(|base| base.unwrap_or(Span::from_s(1)));
        match kind.unwrap_or(BackoffKind::Exponential) {
            BackoffKind::Exponential => {
                fields.none_of(&["delays"], "the kind \"exponential\"")?;
                let max = fields.read(&Self::max())?.unwrap_or(Span::from_s(3_600));
                Ok(Backoff::Exponential { base: base()?, max, jitter })
            }
            BackoffKind::Fixed => {
                fields.none_of(&["max", "delays"], "the kind \"fixed\"")?;
                Ok(Backoff::Fixed { base: base()?, jitter })
            }
            BackoffKind::List => {
                fields.none_of(&["base", "max"], "the kind \"list\"")?;
                let example = "\"delays\": [\"1s\", \"10s\", \"1m\"]";
                Ok(Backoff::List {
                    delays: fields.read_required(&Self::delays(), example)?,
                    jitter,
                })
            }
        }
    }
    fn check(&self, value: &Backoff, at: &At<'_>) -> Result<(), Refusal> {
        match value {
            Backoff::Exponential { base, max, jitter: _ } => {
                Self::base().check(base, at)?;
                Self::max().check(max, at)
            }
            Backoff::Fixed { base, jitter: _ } => Self::base().check(base, at),
            Backoff::List { delays, jitter: _ } => Self::delays().check(delays, at),
        }
    }
    fn write<S: Serializer>(&self, value: &Backoff, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Object("Backoff")
    }
}
