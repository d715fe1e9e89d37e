//! The clock on the wall, by which people read moments: that of this machine's zone, or UTC with `--utc`.
//!
//! Programs read `--json`, which is in UTC always.

use std::sync::OnceLock;

use tenure_calendar::Zone;
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, SystemClock};

use crate::machine_zone;

/// The zone in which this process shows moments. It is a setting of the whole process, as colours are: set once, when
/// the command line was read; until then it is UTC.
static SHOWN_IN: OnceLock<Zone> = OnceLock::new();

/// From now on moments are shown in this machine's zone; in UTC if that is not known.
pub fn show_local_time() {
    let zone = machine_zone::of_this_machine().unwrap_or_else(|_| Zone::utc());
    // A second call finds the same zone: it is the same machine.
    let _ = SHOWN_IN.set(zone);
}

/// This machine's clock, for output to people and for nothing else.
pub fn now() -> Moment {
    SystemClock.now()
}

/// A moment to the second, with its offset: `2026-12-01T09:55:00+08:00`. An option takes it in this form.
pub fn second(moment: Moment) -> String {
    match SHOWN_IN.get() {
        Some(zone) => zone.wall_clock(moment).rfc3339(),
        None => Zone::utc().wall_clock(moment).rfc3339(),
    }
}

/// A moment to the microsecond, with its offset.
pub fn exactly(moment: Moment) -> String {
    let whole = second(moment);
    let (us, offset_at) = (moment.us() % 1_000_000, "2026-12-01T09:55:00".len());
    match whole.split_at_checked(offset_at) {
        Some((time, offset)) => format!("{time}.{us:06}{offset}"),
        None => whole,
    }
}

/// A sentence of a store, which knows no zone but UTC, with its moments as this process shows them. A moment that is a
/// part of a name stays as it is.
pub fn sentence(text: &str) -> String {
    let word = |word: &str| {
        let end = word.trim_end_matches([',', ';', '.', ':', ')']);
        match end.trim_start_matches('(').parse::<Moment>() {
            Ok(moment) => word.replacen(end.trim_start_matches('('), &second(moment), 1),
            Err(_) => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // The zone of the process is not set in tests: they show UTC.
    #[test]
    fn a_moment_is_shown_with_its_offset() {
        let moment = "2026-12-01T09:55:00.120877+08:00".parse().unwrap();
        assert_eq!(second(moment), "2026-12-01T01:55:00Z");
        assert_eq!(exactly(moment), "2026-12-01T01:55:00.120877Z");
    }

    #[test]
    fn moments_in_a_sentence_are_shown_as_all_others_and_names_stay() {
        let text = "news-42@2026-12-01T08:00:00Z runs at 2026-12-01T08:00:00.000000Z; (2026-12-01T09:00:00+01:00).";
        assert_eq!(
            sentence(text),
            "news-42@2026-12-01T08:00:00Z runs at 2026-12-01T08:00:00Z; (2026-12-01T08:00:00Z)."
        );
    }
}
