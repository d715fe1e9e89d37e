//! Requests about pools: their settings. What is in a pool is never named here, see `resources`.

use super::{Change, Page, Patch};
use crate::names::PoolName;
use crate::refusal::Code;
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
