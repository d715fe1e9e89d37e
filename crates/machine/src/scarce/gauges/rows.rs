//! Rows of gauges: the settings beside those of the limit, and the state beside that of the limit.

use serde::{Deserialize, Serialize};
use tenure_core::gauge::Gauge;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Moment;

use crate::rows::times::moment;
use crate::state::{GaugeRest, GaugeState, GoodReading, OpenClaim, ReadingFailure};

/// The settings of a limit.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct SettingRow {
    #[serde(flatten)]
    pub settings: LimitSettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<Box<Gauge>>,
}

/// The state of a gauge. All times are in microseconds.
#[derive(Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct GaugeRow {
    pub number: u64,
    pub asked_at: Option<u64>,
    /// The time of the open claim.
    pub claimed_at: Option<u64>,
    /// The last good reading: the time of its request, its count, and the outside work in it.
    pub reading: Option<(u64, u64, u32)>,
    /// Failing readings: the time of the first, the time of the last, and the reason.
    pub failure: Option<(u64, u64, String)>,
    pub rests: Vec<StoredRest>,
}

/// Resting permits: the end of their lease, its grant if that end was no settle, their number, the end of their gap.
type StoredRest = (u64, Option<u64>, u32, u64);

impl GaugeRow {
    /// The row of a gauge's state.
    pub(crate) fn of(g: &GaugeState) -> Self {
        let rest = |rest: &GaugeRest| {
            let GaugeRest { ended_at, unsettled, weight, until } = rest;
            (ended_at.us(), unsettled.map(Moment::us), *weight, until.us())
        };
        GaugeRow {
            number: g.number,
            asked_at: g.asked_at.map(Moment::us),
            claimed_at: g.claim.as_ref().map(|claim| claim.asked_at.us()),
            reading: g.reading.map(|read| (read.asked_at.us(), read.sum, read.external)),
            failure: g.failure.clone().map(|no| (no.since.us(), no.at.us(), no.error)),
            rests: g.rests.iter().map(rest).collect(),
        }
    }

    /// The state from a row.
    pub(crate) fn read(self, gauge: Box<Gauge>) -> GaugeState {
        let rest = |(ended_at, unsettled, weight, until): StoredRest| GaugeRest {
            ended_at: moment(ended_at),
            unsettled: unsettled.map(moment),
            weight,
            until: moment(until),
        };
        let reading =
            |(asked_at, sum, external)| GoodReading { asked_at: moment(asked_at), sum, external };
        let failure =
            |(since, at, error)| ReadingFailure { since: moment(since), at: moment(at), error };
        // The process that should answer is gone, or has another name now.
        let claim = |at| OpenClaim { asked_at: moment(at), reader: String::new() };
        GaugeState {
            number: self.number,
            asked_at: self.asked_at.map(moment),
            claim: self.claimed_at.map(claim),
            reading: self.reading.map(reading),
            failure: self.failure.map(failure),
            rests: self.rests.into_iter().map(rest).collect(),
            ..GaugeState::new(gauge)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::gauge::{GaugeAddress, GaugeSource, OnStale};
    use tenure_core::time::Span;

    fn gauge() -> Box<Gauge> {
        let scrapyd = GaugeAddress::parse("http://me:p@host").unwrap();
        let (every, lag, stale) = (Span::from_s(2), Span::from_s(10), Span::from_s(30));
        let source = GaugeSource::Scrapyd { scrapyd, project: None };
        Box::new(Gauge { source, every, lag, stale, on_stale: OnStale::Hold })
    }

    fn at(s: u64) -> Moment {
        Moment::from_us(s * 1_000_000)
    }

    #[test]
    fn what_is_known_of_a_gauge_is_read_as_it_was_written() {
        let mut state = GaugeState::new(gauge());
        state.number = 7;
        state.asked_at = Some(at(5));
        state.claim = Some(OpenClaim { asked_at: at(5), reader: String::new() });
        state.reading = Some(GoodReading { asked_at: at(3), sum: 9, external: 2 });
        state.failure =
            Some(ReadingFailure { since: at(4), at: at(5), error: "http status 503".to_owned() });
        let rest = GaugeRest { ended_at: at(4), unsettled: Some(at(1)), weight: 2, until: at(6) };
        state.rests = vec![rest, GaugeRest { unsettled: None, ..rest }];
        let row = serde_json::to_string(&GaugeRow::of(&state)).unwrap();
        let read = serde_json::from_str::<GaugeRow>(&row).unwrap().read(gauge());
        assert_eq!(format!("{read:?}"), format!("{state:?}"));
    }
}
