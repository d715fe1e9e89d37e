//! Rates: GCRA (ITU-T I.371), one theoretical arrival time, moved by whole grants so that rounding happens once per
//! grant.

use tenure_core::settings::Rate;
use tenure_core::time::{Moment, Span};

/// The time that `n` tokens of a rate take: one rounding per grant, not per token.
pub(crate) fn tokens(rate: &Rate, n: u32) -> Span {
    let us = u128::from(n) * u128::from(rate.per.us());
    Span::from_us(us.div_ceil(u128::from(rate.count.max(1))) as u64)
}

/// The earliest time at which `n` tokens fit; at or before `now` if they fit now. A debt beyond the burst is only
/// possible after a clock was set back, and is cut.
pub(crate) fn rate_fits_at(rate: &Rate, tat: Moment, n: u32, now: Moment) -> Moment {
    let burst = tokens(rate, rate.burst);
    let tat = tat.max(now);
    tat.plus(tokens(rate, n)).minus(burst).max(Moment::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Rule 2: tokens granted in any span of length w <= burst + ceil(w * count / per) - 1.
        #[test]
        fn no_span_gets_more_than_its_tokens(
            count in 1u32..50, per_us in 1u64..5_000_000, burst in 1u32..20,
            asks in proptest::collection::vec((0u64..500_000, 1u32..5), 1..120),
        ) {
            let rate = Rate { count, per: Span::from_us(per_us), burst };
            let (mut now, mut tat) = (Moment::from_us(1_000_000), Moment::ZERO);
            let mut granted: Vec<(u64, u64)> = Vec::new();
            for (step, cost) in asks {
                now = now.plus(Span::from_us(step));
                let cost = cost.min(burst);
                if rate_fits_at(&rate, tat, cost, now) <= now {
                    tat = tat.max(now).plus(tokens(&rate, cost));
                    granted.push((now.us(), u64::from(cost)));
                }
            }
            for (i, (from, _)) in granted.iter().enumerate() {
                let mut sum = 0;
                for (to, cost) in &granted[i..] {
                    sum += cost;
                    // The shortest half-open span that contains both ends is one microsecond longer.
                    let w = u128::from(to - from + 1);
                    let most = u128::from(burst) + (w * u128::from(count)).div_ceil(u128::from(per_us)) - 1;
                    prop_assert!(u128::from(sum) <= most, "{sum} > {most} in {w}");
                }
            }
        }
    }
}
