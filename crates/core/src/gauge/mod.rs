//! The gauge of a limit: where a process asks how many permits are taken by work that Tenure does not run, what it is
//! told, and how that is shown.
//!
//! Nothing here asks. The rules of readings are in `tenure-machine`; the process that serves or works does the asking.

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

/// What the address answers, and how work outside is found in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GaugeSource {
    /// Numbers in a JSON document, which count our own work too.
    Count {
        /// What a GET asks.
        url: GaugeAddress,
        /// Where the numbers stand that are added: JSON pointers (RFC 6901), 1 to 16.
        count: Vec<String>,
    },
    /// A scrapyd, which lists the ids of what is pending or running.
    Scrapyd {
        /// Its address; a GET asks `listjobs.json` below it.
        scrapyd: GaugeAddress,
        /// The one project that counts; all if none is given, which scrapyd before 1.5 does not understand.
        #[serde(default)]
        project: Option<String>,
    },
}

/// What holds once the last reading is older than `stale`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStale {
    /// The last value goes on to count.
    #[default]
    Keep,
    /// Nothing is granted until a reading succeeds.
    Hold,
}

/// The gauge of a limit, as it was set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gauge {
    /// Where it is read, and what is counted there.
    #[serde(flatten)]
    pub source: GaugeSource,
    /// How often it is read while the limit is in use: 500 ms to 1 h.
    pub every: Span,
    /// How long a start may take until the address shows it: at most 1 h.
    pub lag: Span,
    /// From which age on the last reading counts as `on_stale` says: three times `every`, and at least 5 s, to 1 d.
    pub stale: Span,
    /// What holds from that age on.
    pub on_stale: OnStale,
}

impl Gauge {
    /// How old a reading may be on which a permit is granted before a new one was tried.
    pub fn fresh(&self) -> Span {
        fresh(self.every)
    }

    /// The same gauge as it may be shown: without what is secret in its address.
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

/// For how long a reading of a gauge that is read this often is fresh. It is also the least `stale`.
pub fn fresh(every: Span) -> Span {
    Span::from_us((every.us() * GAUGE_FRESH_PERIODS).max(GAUGE_FRESH_US_MIN))
}

/// The `stale` of a gauge that states none.
pub fn default_stale(every: Span) -> Span {
    fresh(every).max(Span::from_us(GAUGE_STALE_US_DEFAULT))
}

/// What was read last, and whether reading fails since.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GaugeReading {
    /// When the last good reading was asked for; null before the first.
    pub asked_at: Option<Moment>,
    /// What it counted: the sum of the numbers, or how many ids were listed.
    pub sum: Option<u64>,
    /// What of that is work outside.
    pub external: Option<u64>,
    /// When reading failed last, unless it succeeded since.
    pub failed_at: Option<Moment>,
    /// Why it failed then.
    pub error: Option<String>,
}

/// A gauge as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GaugeView {
    /// As it was set, without what is secret in its address.
    #[serde(flatten)]
    pub gauge: Gauge,
    /// Null before the first attempt since it was set or changed.
    pub reading: Option<GaugeReading>,
}

impl GaugeView {
    /// The only way from a gauge to what is shown of it.
    pub fn new(gauge: &Gauge, reading: Option<GaugeReading>) -> Self {
        GaugeView { gauge: gauge.redacted(), reading }
    }
}

/// A process is to read a gauge now. Until it answers, or 5 s have gone, no other process is asked to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GaugeClaim {
    /// The limit whose gauge it is.
    pub limit: LimitName,
    /// Greater with each claim of this limit; the answer says it again.
    pub number: u64,
    /// The engine's time at the claim; the answer says it again.
    pub asked_at: Moment,
    /// What is to be read, as it was set when it was claimed.
    pub gauge: Box<Gauge>,
}

/// What an address answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GaugeResult {
    /// Of a count: the sum of its numbers.
    Sum(u64),
    /// Of a scrapyd: each id that is pending or running, as often as it is listed.
    Ids(Vec<String>),
    /// It could not be read, and why. It shows nothing of the address that is secret.
    Failed(String),
}

impl GaugeResult {
    /// A failure, cut to what is kept of it.
    pub fn failed(why: &str) -> Self {
        let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= GAUGE_ERROR_BYTES_MAX;
        GaugeResult::Failed(why.char_indices().take_while(fits).map(|(_, c)| c).collect())
    }
}

/// The answer to a claim. One whose claim is no longer open is dropped without a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// As in the claim.
    pub limit: LimitName,
    /// As in the claim.
    pub number: u64,
    /// As in the claim.
    pub asked_at: Moment,
    /// What came of it.
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
    fn a_reading_is_fresh_for_three_periods_and_at_least_five_seconds() {
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
