//! Gauge of a limit: an address that tells how many permits are taken by work that Tenure does not run, its readings,
//! and its view.
//!
//! Nothing here sends a request: the process that serves or works does. The rules of readings are in `tenure-machine`.

mod address;
mod hosts;

use serde::{Deserialize, Serialize};

pub use address::{BadAddress, GaugeAddress, GaugeLogin};
pub use hosts::GaugeHosts;

use crate::bounds::{
    GAUGE_ERROR_BYTES_MAX, GAUGE_FRESH_PERIODS, GAUGE_FRESH_US_MIN, GAUGE_STALE_US_DEFAULT,
};
use crate::names::LimitName;
use crate::time::{Moment, Span};
use crate::view;
use crate::words;

/// The kind of the address, and the way to find work outside in its answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GaugeSource {
    /// Numbers in a JSON document, which include our own work.
    Count {
        /// The address that a GET asks for JSON.
        url: GaugeAddress,
        /// JSON pointers (RFC 6901) to the numbers that are added, 1 to 16.
        count: Vec<String>,
    },
    /// A scrapyd, which lists the ids of pending and running jobs.
    Scrapyd {
        /// Its address; a GET asks for `listjobs.json` below it.
        scrapyd: GaugeAddress,
        /// The one project that counts; `None`: all, which scrapyd before 1.5 does not understand.
        #[serde(default)]
        project: Option<String>,
    },
}

words! {
    /// Policy once the last reading is older than `stale`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnStale {
        /// The last value still counts.
        #[default]
        Keep = "keep",
        /// Nothing is granted until a reading succeeds.
        Hold = "hold",
    }
}

/// The settings of a limit's gauge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gauge {
    #[serde(flatten)]
    pub source: GaugeSource,
    /// How often it is read while the limit is in use: 500 ms to 1 h; 2 s by default.
    pub every: Span,
    /// How long a new run may take to appear at the address: at most 1 h; 10 s by default.
    pub lag: Span,
    /// Age from which `on_stale` applies to the last reading: at least three times `every` and 5 s, at most 1 d.
    pub stale: Span,
    /// Policy from that age on.
    pub on_stale: OnStale,
}

impl Gauge {
    /// Greatest age of a reading with which a permit is granted before a new one was tried.
    pub fn fresh(&self) -> Span {
        fresh(self.every)
    }

    /// The same gauge for showing, without the secret parts of its address.
    pub fn redacted(&self) -> Gauge {
        let source = match &self.source {
            GaugeSource::Count { url, count } => {
                GaugeSource::Count { url: url.redacted(), count: count.clone() }
            }
            GaugeSource::Scrapyd { scrapyd, project } => {
                GaugeSource::Scrapyd { scrapyd: scrapyd.redacted(), project: project.clone() }
            }
        };
        Gauge { source, ..*self }
    }
}

/// How long a reading stays fresh if the gauge is read this often. It is also the least `stale`.
pub fn fresh(every: Span) -> Span {
    Span::from_us((every.us() * GAUGE_FRESH_PERIODS).max(GAUGE_FRESH_US_MIN))
}

/// The `stale` of a gauge that states none.
pub fn default_stale(every: Span) -> Span {
    fresh(every).max(Span::from_us(GAUGE_STALE_US_DEFAULT))
}

view! {
    /// The last good reading of a gauge, and its failure since.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct GaugeReading {
        /// When the last good reading was asked for; null if there is none yet.
        pub asked_at: Option<Moment>,
        /// What the address counted then; null if there is no reading.
        pub sum: Option<u64>,
        /// How many of those are not our own runs; null if there is no reading.
        pub external: Option<u64>,
        /// When the last attempt failed; null if the last attempt was good.
        pub failed_at: Option<Moment>,
        /// Why that attempt failed, at most 256 bytes, without the address.
        pub error: Option<String>,
    }

    /// A gauge as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct GaugeView as "ReadGauge" {
        /// Without the secret parts of its address.
        #[serde(flatten)]
        pub gauge: Gauge,
        /// What was read last; null before the first attempt.
        pub reading: Option<GaugeReading>,
    }
}

impl GaugeView {
    /// The only way from a gauge to its view, so that every view is redacted.
    pub fn new(gauge: &Gauge, reading: Option<GaugeReading>) -> Self {
        GaugeView { gauge: gauge.redacted(), reading }
    }
}

/// A claim: the engine tells one process to read a gauge now. No other process gets one until it answers, or 5 s have
/// passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GaugeClaim {
    pub limit: LimitName,
    /// Greater with each claim of this limit; the answer repeats it.
    pub number: u64,
    /// The engine's time at the claim; the answer repeats it.
    pub asked_at: Moment,
    /// The settings of the gauge at the claim.
    pub gauge: Box<Gauge>,
}

/// The answer of an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GaugeResult {
    /// Of a count: the sum of its numbers.
    Sum(u64),
    /// Of a scrapyd: the id of each pending or running job, as often as it is listed.
    Ids(Vec<String>),
    /// It could not be read, with the error, which shows nothing of the address that is secret.
    Failed(String),
}

impl GaugeResult {
    /// A failure, with its error cut to the bytes that are kept.
    pub fn failed(why: &str) -> Self {
        let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= GAUGE_ERROR_BYTES_MAX;
        GaugeResult::Failed(why.char_indices().take_while(fits).map(|(_, c)| c).collect())
    }
}

/// The answer to a claim. One whose claim is no longer open is dropped silently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// As in the claim.
    pub limit: LimitName,
    /// As in the claim.
    pub number: u64,
    /// As in the claim.
    pub asked_at: Moment,
    pub result: GaugeResult,
}

impl GaugeClaim {
    /// The answer to this claim.
    pub fn answered(&self, result: GaugeResult) -> Reading {
        let GaugeClaim { limit, number, asked_at, .. } = self;
        Reading { limit: limit.clone(), number: *number, asked_at: *asked_at, result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(source: GaugeSource) -> Gauge {
        let (every, lag, stale) = (Span::from_s(2), Span::from_s(10), Span::from_s(30));
        Gauge { source, every, lag, stale, on_stale: OnStale::Hold }
    }

    fn address(text: &str) -> GaugeAddress {
        GaugeAddress::parse(text).unwrap()
    }

    #[test]
    fn a_gauge_is_kept_whole_and_shown_without_its_secrets() {
        let url = || address("http://me:geheim@host/load?token=geheim");
        let count = vec!["/running".to_owned(), "/pending".to_owned()];
        let project = Some("news".to_owned());
        for source in [
            GaugeSource::Count { url: url(), count },
            GaugeSource::Scrapyd { scrapyd: url(), project },
            GaugeSource::Scrapyd { scrapyd: url(), project: None },
        ] {
            let gauge = gauge(source);
            let kept = serde_json::to_string(&gauge).unwrap();
            assert_eq!(serde_json::from_str::<Gauge>(&kept).unwrap(), gauge, "{kept}");
            assert!(kept.contains("geheim"), "{kept}");
            let view = GaugeView::new(&gauge, Some(GaugeReading::default()));
            let shown = serde_json::to_string(&view).unwrap();
            assert_eq!(serde_json::from_str::<GaugeView>(&shown).unwrap(), view, "{shown}");
            let seen = format!("{shown} {gauge:?} {view:?}");
            assert!(seen.contains("•••") && !seen.contains("geheim"), "{seen}");
        }
    }

    #[test]
    fn a_reading_is_fresh_for_three_periods_but_at_least_5_s() {
        for (every_ms, fresh_ms, stale_ms) in
            [(500, 5_000, 30_000), (2_000, 6_000, 30_000), (60_000, 180_000, 180_000)]
        {
            let every = Span::from_ms(every_ms);
            assert_eq!(fresh(every), Span::from_ms(fresh_ms));
            assert_eq!(default_stale(every), Span::from_ms(stale_ms));
        }
    }

    #[test]
    fn of_a_failure_its_beginning_is_kept() {
        let long = "é".repeat(GAUGE_ERROR_BYTES_MAX);
        let GaugeResult::Failed(kept) = GaugeResult::failed(&long) else { panic!("no failure") };
        assert!(kept.len() <= GAUGE_ERROR_BYTES_MAX && long.starts_with(&kept));
    }
}
