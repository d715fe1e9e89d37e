//! Requests about pools: their settings. Requests about their resources are in `resources`.

use super::{Change, Page, Patch};
use crate::bounded::unbounded;
use crate::names::PoolName;
use crate::refusal::Code;
use crate::settings::{Pick, PoolSettings, PoolView, Rate};
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
    type Shows = GetPool;
    const ABSENT: Code = Code::PoolNotFound;
    fn shows(&self) -> GetPool {
        GetPool { pool: self.pool.clone() }
    }
    fn has_own(_: &PoolView) -> bool {
        true
    }
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

/// A patch that names every setting.
impl From<&PutPool> for PatchPool {
    fn from(put: &PutPool) -> Self {
        let set = &put.settings;
        PatchPool {
            pool: put.pool.clone(),
            quarantine: Patch::Set(set.quarantine),
            cooldown: Patch::Set(set.cooldown),
            rate: set.rate.into(),
            max_uses: set.max_uses.into(),
            pick: Patch::Set(set.pick),
        }
    }
}

/// Forgets a pool that no lease uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletePool {
    pub pool: PoolName,
}

unbounded! { GetPool DeletePool }
