//! The whole set of a pool, in parts: a large one is laid beside the pool first, and takes the place of
//! the old one when it is complete. Its data is often secret and is never logged.

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::requests::SyncResources;
use tenure_core::settings::{NewResource, Synced};
use tenure_engine::{CallError, Fault};

use crate::answer::Answerable;
use crate::call::Caller;
use crate::decode::SyncedReply;
use crate::encode::{SyncArgs, SyncBeginArgs, SyncEndArgs, SyncItemsArgs, new_resources};
use crate::function::{Function, SYNC_BEGIN, SYNC_END, SYNC_ITEMS};

/// Bytes of data that one call carries at most, beyond its first resource.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Steps in which a set takes its place beyond which something is wrong.
pub(crate) const STEPS_MAX: usize = 1_000_000;

impl Answerable for SyncResources {
    async fn answer(self, caller: Caller) -> Result<Synced, CallError> {
        sync(&caller, self).await
    }
}

/// Makes a set the whole set of its pool.
async fn sync(caller: &Caller, sync: SyncResources) -> Result<Synced, CallError> {
    let pool = sync.pool.as_str();
    let mut step: SyncedReply = if parts(&sync) <= 1 {
        caller.reply(Function::of::<SyncResources>(), &SyncArgs::of(&sync)).await?
    } else {
        let args = SyncBeginArgs { pool, version: sync.version };
        let begun: SyncedReply = caller.reply(SYNC_BEGIN, &args).await?;
        let number = begun.sync;
        let mut rest = sync.resources.as_slice();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part(rest));
            let resources = new_resources(part);
            let args = SyncItemsArgs { pool, sync: number, resources };
            caller.reply::<serde::de::IgnoredAny>(SYNC_ITEMS, &args).await?;
            rest = after;
        }
        end(caller, &sync, number).await?
    };
    for _ in 0..STEPS_MAX {
        if step.done {
            return Ok(step.view());
        }
        step = end(caller, &sync, step.sync).await?;
    }
    Err(Fault::Broken("a set of resources never took its place".to_owned()).into())
}

async fn end(caller: &Caller, sync: &SyncResources, number: u64) -> Result<SyncedReply, CallError> {
    let args = SyncEndArgs::of(sync.pool.as_str(), number, sync.meant, sync.version);
    caller.reply(SYNC_END, &args).await
}

/// How many resources go in one call.
fn part(resources: &[NewResource]) -> usize {
    fitting(resources.iter().map(|resource| resource.data.text().len()).take(ITEMS_MAX))
}

/// How many things of so many bytes each go in one call: at least one.
pub(crate) fn fitting(each: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fit = each.take_while(|more| {
        bytes += more;
        bytes <= BYTES_MAX
    });
    fit.count().max(1)
}

fn parts(sync: &SyncResources) -> usize {
    let first = part(&sync.resources);
    1 + usize::from(sync.resources.len() > first)
}

#[cfg(test)]
mod tests {
    use tenure_core::names::ResourceId;
    use tenure_core::secret::Json;

    use super::*;

    fn resources(n: usize, bytes: usize) -> Vec<NewResource> {
        let one = |n: usize| NewResource {
            id: ResourceId::parse(&format!("r{n}")).unwrap(),
            data: Json::from("x".repeat(bytes).as_str()),
            tags: Vec::new(),
            slots: 1,
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn a_part_is_bounded_by_number_and_by_bytes_and_never_empty() {
        assert_eq!(part(&resources(2_500, 1)), ITEMS_MAX);
        assert_eq!(part(&resources(3, 1)), 3);
        assert_eq!(part(&resources(100, 64 * 1024)), BYTES_MAX / (64 * 1024 + 2));
        assert_eq!(part(&resources(1, BYTES_MAX + 1)), 1);
    }
}
