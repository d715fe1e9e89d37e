//! Local times on the command line: `2026-12-01 09:55`, `09:55`, `tomorrow 09:55`, by the clock of this machine's zone.
//!
//! The user sees how a local time was read. A time that the clock shows twice or never is refused with both readings: a
//! guess would be wrong by an hour, twice a year, and nobody would notice.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tenure_calendar::{ClockReading, LocalTime, Toward, Zone};
use tenure_core::time::Moment;

use crate::machine_zone;
use crate::output::clock;

/// How local times were read, for [`tell`]. A parser can return nothing but a value.
static READ: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The moment that a local time names; `None` if the text is no local time.
pub fn moment(text: &str, toward: Toward) -> Option<Result<Moment, String>> {
    let time = LocalTime::parse(text)?;
    let read = match machine_zone::of_this_machine() {
        Ok(zone) => in_zone(text, time, &zone, clock::now(), toward),
        Err(why) => Err(format!(
            "this is a local time, and the zone of this machine is not known: {why}; write the offset, as \
             \"2026-12-01T09:55:00+08:00\""
        )),
    };
    Some(read.map(|(moment, note)| {
        if let Ok(mut read) = READ.lock() {
            read.insert(note);
        }
        moment
    }))
}

/// Says on stderr how the local times of the command line were read.
pub fn tell() {
    let notes = READ.lock().map(|mut read| std::mem::take(&mut *read)).unwrap_or_default();
    notes.iter().for_each(|note| crate::output::tell(note));
}

/// The moment, and how it was read.
fn in_zone(
    text: &str,
    time: LocalTime,
    zone: &Zone,
    now: Moment,
    toward: Toward,
) -> Result<(Moment, String), String> {
    let shown = |moment: Moment| zone.wall_clock(moment).rfc3339();
    match time.reading(zone, now, toward) {
        ClockReading::Once(moment) if moment > Moment::ZERO => {
            let note = format!("'{}' is read as {} ({zone})", text.trim(), shown(moment));
            Ok((moment, note))
        }
        ClockReading::Once(_) => Err("a moment lies in 1970 or later".to_owned()),
        ClockReading::Twice(first, second) => Err(format!(
            "the clock in {zone} shows this time twice, since it is set back: write {} or {}",
            shown(first),
            shown(second)
        )),
        ClockReading::Never(by_new, by_old) => Err(format!(
            "the clock in {zone} never shows this time, since it is set forward: write {} or {}",
            shown(by_new),
            shown(by_old)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String), String> {
        let zone = Zone::parse("Europe/Berlin").unwrap();
        let now = "2026-12-01T12:00:00+01:00".parse().unwrap();
        let time = LocalTime::parse(text).unwrap();
        in_zone(text, time, &zone, now, Toward::Ahead).map(|(at, note)| (at.to_string(), note))
    }

    #[test]
    fn a_local_time_is_read_in_a_zone_that_is_named() {
        let (at, note) = read(" 09:55").unwrap();
        assert_eq!(at, "2026-12-02T08:55:00.000000Z");
        assert_eq!(note, "'09:55' is read as 2026-12-02T09:55:00+01:00 (Europe/Berlin)");
    }

    #[test]
    fn an_ambiguous_or_skipped_time_is_refused_with_both_readings() {
        assert_eq!(
            read("2026-10-25 02:30").unwrap_err(),
            "the clock in Europe/Berlin shows this time twice, since it is set back: write \
             2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"
        );
        assert_eq!(
            read("2026-03-29 02:30").unwrap_err(),
            "the clock in Europe/Berlin never shows this time, since it is set forward: write \
             2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00"
        );
        assert!(read("1969-12-31 02:30").is_err());
    }
}
