//! Requests about pools: their settings. What is in a pool is never named here, see `resources`.

use super::{Change, Page, Patch};
use crate::at::At;
use crate::bounded::settings::{patched, rate, span};
use crate::bounded::{Bounded, COUNT, Spans, bounded_pages, unbounded};
use crate::names::PoolName;
use crate::refusal::{Code, Refusal};
use crate::settings::{Pick, PoolSettings, Rate};
use crate::time::Span;

/// Lists pools.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPools {
    /// The page.
    pub page: Page,
}

/// Shows a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPool {
    /// Which.
    pub pool: PoolName,
}

/// Replaces all settings of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutPool {
    /// Which.
    pub pool: PoolName,
    /// Settings.
    pub settings: PoolSettings,
}

/// Changes the named settings of a pool that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchPool {
    /// Which.
    pub pool: PoolName,
    /// Rest after a dead holder.
    pub quarantine: Patch<Span>,
    /// Rest after every use.
    pub cooldown: Patch<Span>,
    /// Grants per period of one resource.
    pub rate: Patch<Rate>,
    /// Grants after which a resource is banned.
    pub max_uses: Patch<u32>,
    /// Which of the free ones.
    pub pick: Patch<Pick>,
}

impl Change for PatchPool {
    type Whole = PutPool;
    const ABSENT: Code = Code::PoolNotFound;
    fn whole(self) -> PutPool {
        let settings = PoolSettings {
            quarantine: self.quarantine.given().unwrap_or_default(),
            cooldown: self.cooldown.given().unwrap_or_default(),
            rate: self.rate.given(),
            max_uses: self.max_uses.given(),
            pick: self.pick.given().unwrap_or_default(),
        };
        PutPool { pool: self.pool, settings }
    }
}

/// Forgets a pool that nobody holds anything of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletePool {
    /// Which.
    pub pool: PoolName,
}

impl Bounded for PutPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let set = &self.settings;
        span(Some(set.quarantine), "quarantine", Spans::ANY)?;
        span(Some(set.cooldown), "cooldown", Spans::ANY)?;
        set.rate.map_or(Ok(()), |one| rate(&one))?;
        let at = At::Member(&At::Body, "max_uses");
        set.max_uses.map_or(Ok(()), |most| at.number(most, COUNT))
    }
}

impl Bounded for PatchPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        patched(&self.quarantine, "quarantine", Spans::ANY)?;
        patched(&self.cooldown, "cooldown", Spans::ANY)?;
        self.rate.each(rate)?;
        self.max_uses.each(|most| At::Member(&At::Body, "max_uses").number(*most, COUNT))
    }
}

unbounded! { GetPool DeletePool }

bounded_pages! { ListPools }
