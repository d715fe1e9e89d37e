//! Rates: tokens per period of a limit, or grants per period of each resource of a pool.

use super::fields::{ObjectShape, Value};
use crate::bounded::{COUNT, Spans, burst_countable};
use crate::refusal::Refusal;
use crate::settings::Rate;

static RATE: ObjectShape<3> =
    ObjectShape { what: "a rate", fields: ["count", "per", "burst"], answered: &[] };

pub(super) fn rate(value: Value<'_, '_>) -> Result<Rate, Refusal> {
    let fields = value.fields(&RATE)?;
    let count = fields.required("count", "\"count\": 10")?.integer(COUNT)?;
    let per = fields.required("per", "\"per\": \"1s\"")?.span(Spans::SOME)?;
    let burst: u32 = fields.take("burst", |v| v.integer(COUNT))?.unwrap_or(1);
    let rate = Rate { count, per, burst };
    burst_countable(&rate, &fields.at)?;
    Ok(rate)
}
