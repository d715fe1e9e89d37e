//! Decides whether samples level off. Pure.

/// The mean of the last quarter may be this many percent of that of the second.
///
/// The first quarter warms up: caches, allocators and files grow to what the load needs. A leak grows by a third from
/// the second quarter's mean to the last's, if it leaks as fast as it warmed up; a figure that levels off stays within
/// the noise of garbage that comes and goes.
pub const GROWTH_PERCENT_MAX: f64 = 115.0;

/// The course of a figure.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Level {
    /// The mean of the second quarter.
    pub second_quarter: f64,
    /// The mean of the last quarter.
    pub last_quarter: f64,
    /// The second mean in percent of the first.
    pub percent: f64,
    /// Whether that is at most [`GROWTH_PERCENT_MAX`].
    pub ok: bool,
}

/// Judges samples that were taken at even distances; `None` for fewer than eight.
pub fn level(samples: &[f64]) -> Option<Level> {
    let quarter = samples.len() / 4;
    if quarter < 2 {
        return None;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let second_quarter = mean(samples.get(quarter..2 * quarter)?);
    let last_quarter = mean(samples.get(samples.len() - quarter..)?);
    let percent = if second_quarter > 0.0 {
        last_quarter / second_quarter * 100.0
    } else if last_quarter > 0.0 {
        f64::INFINITY
    } else {
        100.0
    };
    Some(Level { second_quarter, last_quarter, percent, ok: percent <= GROWTH_PERCENT_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_on_and_on_is_told_from_what_levels_off() {
        let of = |f: &dyn Fn(f64) -> f64| {
            let samples: Vec<f64> = (0..60).map(|n| f(f64::from(n))).collect();
            level(&samples).unwrap()
        };
        assert!(of(&|_| 100.0).ok);
        assert!(of(&|n| 100.0 - 90.0 / (n + 1.0)).ok, "it warms up");
        assert!(of(&|n| 100.0 + 30.0 * (n % 2.0)).ok, "it comes and goes");
        assert!(!of(&|n| 10.0 + n).ok, "it leaks");
        assert!(!of(&|n| 100.0 + n).ok, "it leaks slowly");
        assert_eq!(level(&[1.0; 7]), None);
        assert!(!of(&|n| if n < 40.0 { 0.0 } else { 1.0 }).ok);
    }
}
