//! Needs of a job or a guard, as plain text: names are checked when the call is made.

use tenure_core::job::Need as CheckedNeed;
use tenure_core::names::{LimitName, PoolName, ResourceId, Tag};
use tenure_core::refusal::Refusal;

/// Permits of a limit, or resources of a pool. All needs of a job or of a guard are granted together, or not at all.
///
/// ```
/// use tenure::Need;
///
/// let a_call_of_the_api = Need::limit("api:maps").cost(3);
/// let half_of_it = Need::limit("memory").weight(8);
/// let an_account = Need::pool("accounts").tag("cn").prefer("ann");
/// let this_one = Need::pool("accounts").id("ann");
/// let two_proxies = Need::pool("proxies").count(2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need(NeedText);

#[derive(Clone, PartialEq, Eq, Debug)]
enum NeedText {
    Limit {
        limit: String,
        weight: u32,
        cost: u32,
    },
    Pool {
        pool: String,
        tag: Option<String>,
        prefer: Option<String>,
        id: Option<String>,
        count: u32,
    },
}

impl Need {
    /// One permit and one rate token of a limit: `site:example.com`, `gpu`. Never a template.
    pub fn limit(name: impl Into<String>) -> Self {
        Need(NeedText::Limit { limit: name.into(), weight: 1, cost: 1 })
    }
    /// One resource of a pool, any free one.
    pub fn pool(name: impl Into<String>) -> Self {
        let (pool, tag, prefer, id, count) = (name.into(), None, None, None, 1);
        Need(NeedText::Pool { pool, tag, prefer, id, count })
    }
    /// That many permits, 1 or more; of a pool it means nothing.
    pub fn weight(mut self, permits: u32) -> Self {
        if let NeedText::Limit { weight, .. } = &mut self.0 {
            *weight = permits;
        }
        self
    }
    /// That many rate tokens, 0 or more; of a pool it means nothing.
    pub fn cost(mut self, tokens: u32) -> Self {
        if let NeedText::Limit { cost, .. } = &mut self.0 {
            *cost = tokens;
        }
        self
    }
    /// Only resources with this tag. This method and the three that follow mean nothing of a limit.
    pub fn tag(self, wanted: impl Into<String>) -> Self {
        self.of_pool(|tag, _, _, _| *tag = Some(wanted.into()))
    }
    /// This resource if it is free, otherwise another.
    pub fn prefer(self, wanted: impl Into<String>) -> Self {
        self.of_pool(|_, prefer, _, _| *prefer = Some(wanted.into()))
    }
    /// This resource and no other.
    pub fn id(self, wanted: impl Into<String>) -> Self {
        self.of_pool(|_, _, id, _| *id = Some(wanted.into()))
    }
    /// That many different resources, 1 or more.
    pub fn count(self, wanted: u32) -> Self {
        self.of_pool(|_, _, _, count| *count = wanted)
    }

    fn of_pool(
        mut self,
        change: impl FnOnce(&mut Option<String>, &mut Option<String>, &mut Option<String>, &mut u32),
    ) -> Self {
        if let NeedText::Pool { tag, prefer, id, count, .. } = &mut self.0 {
            change(tag, prefer, id, count);
        }
        self
    }

    /// The same with checked names.
    pub(crate) fn checked(self) -> Result<CheckedNeed, Refusal> {
        Ok(match self.0 {
            NeedText::Limit { limit, weight, cost } => {
                CheckedNeed::Limit { limit: LimitName::parse(&limit)?, weight, cost }
            }
            NeedText::Pool { pool, tag, prefer, id, count } => CheckedNeed::Pool {
                pool: PoolName::parse(&pool)?,
                tag: tag.as_deref().map(Tag::parse).transpose()?,
                prefer: prefer.as_deref().map(ResourceId::parse).transpose()?,
                id: id.as_deref().map(ResourceId::parse).transpose()?,
                count,
            },
        })
    }
}
