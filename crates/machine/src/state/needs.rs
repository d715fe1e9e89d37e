//! Needs as the state sees them: names are slots. What a need takes is never counted here.

use super::{LimitId, PoolId};
use tenure_core::names::{ResourceId, Tag};

/// A need as the state sees it: names are slots, and a lane's needs are in the one fixed order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum HeldNeed {
    Limit { limit: LimitId, weight: u32, cost: u32, keyed: bool },
    Pool { pool: PoolId, which: Which, prefer: Option<ResourceId>, count: u32 },
}

impl HeldNeed {
    /// Plain needs (limits without a key, pools) park a whole bundle; others a lane.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            HeldNeed::Limit { keyed, .. } => !keyed,
            HeldNeed::Pool { which, .. } => !matches!(which, Which::Id(_)),
        }
    }
}

/// Which resources of a pool would do.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Which {
    Any,
    Tag(Tag),
    Id(ResourceId),
}
