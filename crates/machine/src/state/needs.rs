//! Needs in the state's form: names are slots. Usage is never counted here.

use super::{LimitId, PoolId};
use tenure_core::names::{ResourceId, Tag};

/// A need in the state's form: names are slots, and a lane's needs are in the one fixed order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum HeldNeed {
    Limit { limit: LimitId, weight: u32, cost: u32, keyed: bool },
    Pool { pool: PoolId, which: Which, prefer: Option<ResourceId>, count: u32 },
}

impl HeldNeed {
    /// True for plain needs (limits without a key, pools), which block a whole lane group; others
    /// block a lane.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            HeldNeed::Limit { keyed, .. } => !keyed,
            HeldNeed::Pool { which, .. } => !matches!(which, Which::Id(_)),
        }
    }
}

/// The resources of a pool that would do.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Which {
    Any,
    Tag(Tag),
    Id(ResourceId),
}
