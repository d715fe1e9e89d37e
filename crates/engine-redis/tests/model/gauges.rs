//! Gauges in random programs: what both engines claim is the same, and both are brought the same answers.

use tenure_core::gauge::{
    Gauge, GaugeAddress, GaugeClaim, GaugeResult, GaugeSource, OnStale, Reading,
};
use tenure_core::names::Namespace;
use tenure_core::time::Span;
use tenure_engine::{Engine, GaugeFeed};
use tenure_engine_embedded::Embedded;
use tenure_engine_redis::RedisEngine;

/// So many of the last claims may be answered.
const KEPT: usize = 8;

/// One reader on each engine, and what it claimed.
pub struct Gauges {
    feeds: [GaugeFeed; 2],
    claims: Vec<GaugeClaim>,
}

/// One of some gauges.
pub fn gauge(how: u8) -> Gauge {
    let url = GaugeAddress::parse("http://host").expect("an address");
    let source = if how & 1 == 0 {
        GaugeSource::Count { url, count: vec!["/n".to_owned()] }
    } else {
        GaugeSource::Scrapyd { scrapyd: url, project: None }
    };
    let every = Span::from_ms(if how & 2 == 0 { 500 } else { 2_000 });
    let lag = Span::from_ms([0, 300, 1_500, 10_000][usize::from(how >> 2 & 3)]);
    let stale = Span::from_s(if how & 16 == 0 { 6 } else { 20 });
    let on_stale = if how & 32 == 0 { OnStale::Keep } else { OnStale::Hold };
    Gauge { source, every, lag, stale, on_stale }
}

impl Gauges {
    pub fn of(machine: &Embedded, redis: &RedisEngine) -> Self {
        let feed = |engine: &dyn Engine| engine.gauges().expect("it has gauges read");
        Gauges { feeds: [feed(machine), feed(redis)], claims: Vec::new() }
    }

    /// The same was claimed on both.
    pub fn compare(&mut self, namespace: &Namespace) -> Result<(), String> {
        let claimed = self.feeds.each_mut().map(|feed| {
            let mut all = Vec::new();
            while let Some(claimed) = feed.try_next() {
                // (A program before this one may have had gauges.)
                if claimed.namespace == *namespace {
                    all.push(claimed.claim);
                }
            }
            // What is due at one moment is claimed in no order.
            all.sort_by(|a, b| (a.asked_at, &a.limit).cmp(&(b.asked_at, &b.limit)));
            all
        });
        let [machine, redis] = claimed;
        if machine != redis {
            return Err(format!("claimed by the state machine: {machine:?}\nredis: {redis:?}"));
        }
        self.claims.extend(machine);
        let over = self.claims.len().saturating_sub(KEPT);
        self.claims.drain(..over);
        Ok(())
    }

    /// An answer to one of the last claims, the newest first.
    pub fn reading(&self, claim: u8, what: u8) -> Option<Reading> {
        let claim = self.claims.iter().nth_back(usize::from(claim) / 3)?;
        let n = u64::from(what >> 3);
        Some(claim.answered(match (what & 7, &claim.gauge.source) {
            (0, _) => GaugeResult::failed("http status 503"),
            (1, _) => GaugeResult::failed("no route"),
            // One of the other kind.
            (2, GaugeSource::Count { .. }) => GaugeResult::Ids(Vec::new()),
            (2, _) => GaugeResult::Sum(n),
            (_, GaugeSource::Count { .. }) => GaugeResult::Sum(n % 5),
            (_, GaugeSource::Scrapyd { .. }) => {
                // Jobs of the program, one of them perhaps twice, and a stranger.
                let ids = (0..n % 4).map(|at| format!("j{}", n / 2 + at));
                let more = [format!("j{}", n / 2), "stranger".to_owned()];
                GaugeResult::Ids(ids.chain(more.into_iter().take((n % 3) as usize)).collect())
            }
        }))
    }
}
