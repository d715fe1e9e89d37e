//! How many per period, of a limit or of each resource of a pool.

use super::fields::{ObjectShape, Value};
use super::words::Spans;
use crate::bounds::COUNT_MAX;
use crate::refusal::Refusal;
use crate::sentences::LimitRefusal;
use crate::settings::Rate;

static RATE: ObjectShape<3> =
    ObjectShape { what: "a rate", fields: ["count", "per", "burst"], answered: &[] };

/// The least number that a double does not tell from the next: what a rate multiplies stays below
/// it, so that every engine counts the same.
const EXACT: u64 = 1 << 53;

pub(super) fn rate(value: Value<'_, '_>) -> Result<Rate, Refusal> {
    let fields = value.fields(&RATE)?;
    let count = fields.required("count", "\"count\": 10")?.integer(1..=COUNT_MAX)?;
    let per = fields.required("per", "\"per\": \"1s\"")?.span(Spans::SOME)?;
    let burst: u32 = fields.take("burst", |v| v.integer(1..=COUNT_MAX))?.unwrap_or(1);
    // `burst * per` is the greatest of all `n * per` with `n <= burst`.
    let product = u64::from(burst).checked_mul(per.us());
    if product.is_none_or(|product| product >= EXACT) {
        let most = (EXACT - 1) / per.us().max(1);
        let no: Refusal = LimitRefusal::BurstUncountable { burst, per, most }.into();
        return Err(no.at(format!("{}/burst", fields.at)));
    }
    Ok(Rate { count, per, burst })
}
