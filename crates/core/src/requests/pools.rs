//! Requests about pools: their settings. What is in a pool is never named here, see `resources`.

use super::{Page, Patch};
use crate::names::PoolName;
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

/// Changes the named settings of a pool; makes it if it is not there.
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

/// Forgets a pool that nobody holds anything of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletePool {
    /// Which.
    pub pool: PoolName,
}
