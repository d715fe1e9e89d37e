//! Rates: tokens per period of a limit, or grants per period of each resource of a pool.

use super::forms::{Duration, Whole};
use super::object::object;
use crate::at::At;
use crate::bounded::{COUNT, Spans};
use crate::refusal::Refusal;
use crate::sentences::LimitRefusal;
use crate::settings::Rate;
use crate::time::Span;

object! {
    RateFields "a rate" "Rate"
    whole Rate;
    rule burst_countable;
    fields {
        count: u32 = Whole(COUNT), required "\"count\": 10",
            "How many tokens there are in each period, 1 to 1,000,000,000.";
        per: Span = Duration(Spans::SOME), required "\"per\": \"1s\"", "The period, more than 0s.";
        burst: u32 = Whole(COUNT), or 1,
            "How many tokens may go at once after a rest, 1 or more; 1 if absent, which is evenly spaced.";
    }
}

/// The least number that a double does not distinguish from the next one. The product of a rate
/// stays below it, so that every engine counts the same.
const EXACT: u64 = 1 << 53;

/// `burst * per` is the greatest of all `n * per` with `n <= burst`.
fn burst_countable(rate: &Rate, at: &At<'_>) -> Result<(), Refusal> {
    let Rate { burst, per, .. } = *rate;
    let product = u64::from(burst).checked_mul(per.us());
    if product.is_some_and(|product| product < EXACT) {
        return Ok(());
    }
    let most = (EXACT - 1) / per.us().max(1);
    Err(At::Member(at, "burst").refuse(LimitRefusal::BurstUncountable { burst, per, most }))
}
