//! Conversions between moments and the types of the crates that programs use for dates, in both directions.
//!
//! They always succeed, as for the standard library's `SystemTime`: a moment before 1970 becomes the first one here,
//! and a moment that the other crate cannot express becomes the last one there. No moment from an engine is that late.

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{DateTime, TimeZone, Utc};

    use crate::time::Moment;

    /// In whole microseconds; a moment before 1970 becomes the first one.
    impl<Z: TimeZone> From<DateTime<Z>> for Moment {
        fn from(time: DateTime<Z>) -> Self {
            Moment::from_us(u64::try_from(time.timestamp_micros()).unwrap_or_default())
        }
    }
    /// A later moment than chrono can express becomes the last one there.
    impl From<Moment> for DateTime<Utc> {
        fn from(moment: Moment) -> Self {
            let us = i64::try_from(moment.us()).ok();
            us.and_then(DateTime::from_timestamp_micros).unwrap_or(DateTime::<Utc>::MAX_UTC)
        }
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use jiff1::{Timestamp, ZonedDateTime};

    use crate::time::Moment;

    /// In whole microseconds; a moment before 1970 becomes the first one.
    impl From<Timestamp> for Moment {
        fn from(time: Timestamp) -> Self {
            Moment::from_us(u64::try_from(time.as_microsecond()).unwrap_or_default())
        }
    }
    /// Its moment, without the zone.
    impl From<ZonedDateTime> for Moment {
        fn from(time: ZonedDateTime) -> Self {
            time.timestamp().into()
        }
    }
    /// A later moment than jiff can express becomes the last one there.
    impl From<Moment> for Timestamp {
        fn from(moment: Moment) -> Self {
            let us = i64::try_from(moment.us()).ok();
            us.and_then(|us| Timestamp::from_microsecond(us).ok()).unwrap_or(Timestamp::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::time::Moment;

    const MOMENTS: [Moment; 3] =
        [Moment::ZERO, Moment::from_us(1_795_000_000_123_456), Moment::LAST];

    #[cfg(feature = "chrono")]
    #[test]
    fn moments_go_to_chrono_and_come_back() {
        use chrono::{DateTime, FixedOffset, Utc};
        for moment in MOMENTS {
            assert_eq!(Moment::from(DateTime::<Utc>::from(moment)), moment);
        }
        let berlin: DateTime<FixedOffset> = "2026-12-01T10:00:00+01:00".parse().unwrap();
        assert_eq!(Moment::from(berlin), "2026-12-01T09:00:00Z".parse().unwrap());
        assert_eq!(Moment::from(DateTime::<Utc>::MIN_UTC), Moment::ZERO);
        assert_eq!(DateTime::<Utc>::from(Moment::MAX), DateTime::<Utc>::MAX_UTC);
    }

    #[cfg(feature = "jiff")]
    #[test]
    fn moments_go_to_jiff_and_come_back() {
        use jiff1::Timestamp;
        use jiff1::tz::{TimeZone, offset};
        for moment in MOMENTS {
            assert_eq!(Moment::from(Timestamp::from(moment)), moment);
        }
        let noon: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let zoned = noon.to_zoned_datetime(TimeZone::fixed(offset(1)));
        assert_eq!(Moment::from(zoned), "2026-12-01T09:00:00Z".parse().unwrap());
        assert_eq!(Moment::from(Timestamp::MIN), Moment::ZERO);
        assert_eq!(Timestamp::from(Moment::MAX), Timestamp::MAX);
    }
}
