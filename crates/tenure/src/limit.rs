//! A limit that is set in a sentence.

use std::time::Duration;

use tenure_core::names::LimitName;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Patch, PatchLimit};
use tenure_core::settings::{LimitView, Rate};
use tenure_core::time::Span;
use tenure_engine::CallError;

use crate::client::Client;

/// What [`Client::limit`] begins: the settings that are said are changed by [`SetLimit::set`], the others stay.
#[derive(Debug)]
#[must_use = "nothing is set until `set` is awaited"]
pub struct SetLimit {
    client: Client,
    change: Result<PatchLimit, Refusal>,
}

impl Client {
    /// Sets a limit: `gpu`, `site:example.com`, or the template `site:*` for all sites that have none of their own.
    ///
    /// ```no_run
    /// # async fn example(client: tenure::Client) -> Result<(), tenure::CallError> {
    /// use std::time::Duration;
    ///
    /// client.limit("site:*").concurrency(2).rate(10, Duration::from_secs(1)).set().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(&self, name: &str) -> SetLimit {
        let change = LimitName::parse(name).map(|limit| PatchLimit {
            limit,
            concurrency: Patch::Keep,
            rate: Patch::Keep,
            gap: Patch::Keep,
            quarantine: Patch::Keep,
            gauge: Patch::Keep,
        });
        SetLimit { client: self.clone(), change }
    }
}

impl SetLimit {
    /// So many at once; 0 closes it for now. A higher number lets the next in at once, a lower one takes from nobody.
    pub fn concurrency(self, permits: u32) -> Self {
        self.with(|change| change.concurrency = Patch::Set(permits))
    }
    /// So many each `per`, evenly spaced: one may go at once after a rest. Say [`SetLimit::burst`] after it for more.
    pub fn rate(self, count: u32, per: Duration) -> Self {
        self.with(|change| change.rate = Patch::Set(Rate { count, per: per.into(), burst: 1 }))
    }
    /// So many of the rate may go at once after a rest, 1 or more. It belongs to a [`SetLimit::rate`] that was said before.
    pub fn burst(self, burst: u32) -> Self {
        self.with(|change| {
            if let Patch::Set(rate) = &mut change.rate {
                rate.burst = burst;
            }
        })
    }
    /// Each permit rests so long after its release.
    pub fn gap(self, gap: Duration) -> Self {
        self.with(|change| change.gap = Patch::Set(gap.into()))
    }
    /// Each permit rests so long after its holder died: what that started may still run.
    pub fn quarantine(self, quarantine: Duration) -> Self {
        self.with(|change| change.quarantine = Patch::Set(Span::from(quarantine)))
    }

    /// Makes the limit so, for all who use this namespace, from now on. One that is not there is made.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for a name that is none, or if nothing bounds it.
    pub async fn set(self) -> Result<LimitView, CallError> {
        Ok(self.client.run(self.change?).await?.view)
    }

    fn with(mut self, put: impl FnOnce(&mut PatchLimit)) -> Self {
        if let Ok(change) = &mut self.change {
            put(change);
        }
        self
    }
}
