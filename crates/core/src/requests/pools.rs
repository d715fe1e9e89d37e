//! Requests about pools: their settings. Requests about their resources are in `resources`.

use super::{Change, Page, Patch};
use crate::at::At;
use crate::bounded::settings::{patched, rate, span};
use crate::bounded::{Bounded, COUNT, Spans, bounded_pages, unbounded};
use crate::names::PoolName;
use crate::refusal::{Code, Refusal};
use crate::settings::{Pick, PoolSettings, Rate};
use crate::time::Span;

/// Lists all pools of the namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPools {
    pub page: Page,
}

/// Shows one pool, with its counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPool {
    pub pool: PoolName,
}

/// Replaces all settings of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutPool {
    pub pool: PoolName,
    pub settings: PoolSettings,
}

/// Changes the named settings of a pool that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchPool {
    pub pool: PoolName,
    /// Rest of a resource that was taken back from a dead holder; `Reset` means none.
    pub quarantine: Patch<Span>,
    /// Rest after every use; `Reset` means none.
    pub cooldown: Patch<Span>,
    /// Grants of one resource per period; `Reset` means no bound.
    pub rate: Patch<Rate>,
    /// Grants after which a resource is banned; `Reset` means never.
    pub max_uses: Patch<u32>,
    /// `Reset` means the default, [`Pick::Lru`].
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

/// Forgets a pool that no lease uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletePool {
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
