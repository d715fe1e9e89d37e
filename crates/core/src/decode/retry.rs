//! Retry policies: for a run that fails and a holder that dies. A given policy replaces the whole old one; absent
//! members have their defaults.

use super::fields::{ObjectShape, Value};
use crate::bounded::{AMOUNT, Spans};
use crate::bounds::DELAYS_MAX;
use crate::job::{Backoff, Retry};
use crate::refusal::Refusal;
use crate::time::Span;

static RETRY: ObjectShape<4> = ObjectShape {
    what: "a retry",
    fields: ["max_attempts", "max_lost", "max_snoozes", "backoff"],
    answered: &[],
};
static BACKOFF: ObjectShape<5> = ObjectShape {
    what: "a backoff",
    fields: ["kind", "base", "max", "delays", "jitter"],
    answered: &[],
};

#[derive(Clone, Copy)]
enum BackoffKind {
    Exponential,
    Fixed,
    List,
}

pub(super) fn retry(value: Value<'_, '_>) -> Result<Retry, Refusal> {
    let fields = value.fields(&RETRY)?;
    let default = Retry::default();
    let count = |name| fields.take(name, |v| v.integer(AMOUNT));
    Ok(Retry {
        max_attempts: count("max_attempts")?.unwrap_or(default.max_attempts),
        max_lost: count("max_lost")?.unwrap_or(default.max_lost),
        max_snoozes: count("max_snoozes")?,
        backoff: fields.take("backoff", backoff)?.unwrap_or(default.backoff),
    })
}

fn backoff(value: Value<'_, '_>) -> Result<Backoff, Refusal> {
    let fields = value.fields(&BACKOFF)?;
    let kinds = [
        ("exponential", BackoffKind::Exponential),
        ("fixed", BackoffKind::Fixed),
        ("list", BackoffKind::List),
    ];
    let kind = fields.take("kind", |v| v.one_of("a kind of backoff", &kinds))?;
    let jitter = fields.take("jitter", |v| v.boolean())?.unwrap_or(true);
    let span = |name, default: u64| {
        let given = fields.take(name, |v| v.span(Spans::ANY));
        given.map(|span| span.unwrap_or(Span::from_s(default)))
    };
    match kind.unwrap_or(BackoffKind::Exponential) {
        BackoffKind::Exponential => {
            fields.none_of(&["delays"], "the kind \"exponential\"")?;
            Ok(Backoff::Exponential { base: span("base", 1)?, max: span("max", 3_600)?, jitter })
        }
        BackoffKind::Fixed => {
            fields.none_of(&["max", "delays"], "the kind \"fixed\"")?;
            Ok(Backoff::Fixed { base: span("base", 1)?, jitter })
        }
        BackoffKind::List => {
            fields.none_of(&["base", "max"], "the kind \"list\"")?;
            let delays = fields.required("delays", "\"delays\": [\"1s\", \"10s\", \"1m\"]")?;
            let delays = delays.each(1..=DELAYS_MAX, |item| item.span(Spans::ANY))?;
            Ok(Backoff::List { delays, jitter })
        }
    }
}
