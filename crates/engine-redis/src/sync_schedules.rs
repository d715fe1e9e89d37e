//! The whole set of an owner's schedules. A large one is compared with what is there in portions, in the order of ids, and
//! only what differs is laid beside it, until the set is decided.

use tenure_core::bounds::{ITEMS_MAX, TICK_MAX};
use tenure_core::names::ScheduleId;
use tenure_core::requests::{Meant, SyncSchedules};
use tenure_core::schedule::{ScheduleSettings, SyncedSchedules};
use tenure_engine::schedules::check_set;
use tenure_engine::{CallError, Fault};

use crate::answer::Answerable;
use crate::by_itself;
use crate::call::Caller;
use crate::decode::{ComparedReply, SyncedSchedulesReply};
use crate::encode::{
    ScheduleArgs, SyncSchedulesArgs, SyncSchedulesBeginArgs, SyncSchedulesEndArgs,
    SyncSchedulesItemsArgs,
};
use crate::function::{Function, SYNC_SCHEDULES_BEGIN, SYNC_SCHEDULES_END, SYNC_SCHEDULES_ITEMS};
use crate::sync::{STEPS_MAX, fitting};

const AT_ONCE: Function = Function::of::<SyncSchedules>();
/// So often others' sets may come between.
const AGAIN_MAX: u32 = 10;

type Item = (ScheduleId, ScheduleSettings);

impl Answerable for SyncSchedules {
    async fn answer(self, caller: Caller) -> Result<SyncedSchedules, CallError> {
        check_set(&self)?;
        by_itself::note(&caller).await;
        let mut begun = None;
        if part(&self.schedules) == self.schedules.len() {
            let step = at_once(&caller, &self).await?;
            if step.done {
                return Ok(step.read());
            }
            begun = Some(step.sync);
        }
        let mut order: Vec<usize> = (0..self.schedules.len()).collect();
        order.sort_unstable_by_key(|at| self.schedules[*at].0.as_str());
        for _ in 0..AGAIN_MAX {
            let number = match begun.take() {
                Some(number) => number,
                None => begin(&caller, &self).await?.sync,
            };
            if compare(&caller, &self, &order, number).await?
                && let Some(done) = end(&caller, &self, number).await?
            {
                return Ok(done);
            }
        }
        Err(Fault::Unavailable("others sync the schedules of this owner all the time".to_owned())
            .into())
    }
}

/// How many of these go in one call.
fn part(schedules: &[Item]) -> usize {
    fitting(schedules.iter().map(bytes).take(TICK_MAX))
}

fn bytes((_, settings): &Item) -> usize {
    settings.job.payload.as_ref().map_or(0, |payload| payload.text().len())
}

fn item((id, settings): &Item) -> ScheduleArgs<'_> {
    ScheduleArgs::of(id.as_str(), settings, None, None)
}

/// In one step, if there are few; else it is begun.
async fn at_once(caller: &Caller, sync: &SyncSchedules) -> Result<SyncedSchedulesReply, CallError> {
    let args = SyncSchedulesArgs {
        owner: sync.owner.as_str(),
        items: sync.schedules.iter().map(item).collect(),
        meant: sync.meant == Meant::Yes,
        version: sync.version,
    };
    caller.reply(AT_ONCE, &args).await
}

async fn begin(caller: &Caller, sync: &SyncSchedules) -> Result<SyncedSchedulesReply, CallError> {
    let args = SyncSchedulesBeginArgs { owner: sync.owner.as_str(), version: sync.version };
    caller.reply(SYNC_SCHEDULES_BEGIN, &args).await
}

/// Compares all of it, in this order; `false` if another set came between.
async fn compare(
    caller: &Caller,
    sync: &SyncSchedules,
    order: &[usize],
    number: u64,
) -> Result<bool, CallError> {
    let (mut after, mut rest, mut most) = (String::new(), order, TICK_MAX);
    for _ in 0..STEPS_MAX {
        let ahead = rest.iter().take(most).map(|at| bytes(&sync.schedules[*at]));
        let some = &rest[..fitting(ahead).min(rest.len())];
        let args = SyncSchedulesItemsArgs {
            owner: sync.owner.as_str(),
            sync: number,
            after: &after,
            items: some.iter().map(|at| item(&sync.schedules[*at])).collect(),
            last: some.len() == rest.len(),
        };
        let answer: Result<ComparedReply, CallError> =
            caller.reply(SYNC_SCHEDULES_ITEMS, &args).await;
        let compared = answer.map_err(|why| in_the_set(why, some))?;
        if compared.again || compared.whole {
            return Ok(compared.whole);
        }
        after = compared.after;
        let done = rest.iter().take_while(|at| sync.schedules[**at].0.as_str() <= after.as_str());
        let done = done.count();
        // Where little differs a call compares many; where much does it ends sooner, and the rest was sent for nothing.
        most = if done == some.len() { ITEMS_MAX.min(most * 2) } else { TICK_MAX };
        rest = &rest[done..];
    }
    Err(Fault::Broken("a set of schedules was never compared to its end".to_owned()).into())
}

/// A refusal of an item names its place in the set, and not in the portion.
fn in_the_set(why: CallError, portion: &[usize]) -> CallError {
    match why {
        CallError::Refused(no) => {
            let place = no.index.and_then(|at| portion.get(at).copied());
            CallError::Refused(match place {
                Some(place) => no.item(place),
                None => no,
            })
        }
        why @ CallError::Fault(_) => why,
    }
}

/// Decides it, and goes on until it has taken its place; `None` if another set came between.
async fn end(
    caller: &Caller,
    sync: &SyncSchedules,
    number: u64,
) -> Result<Option<SyncedSchedules>, CallError> {
    let args = SyncSchedulesEndArgs {
        owner: sync.owner.as_str(),
        sync: number,
        meant: sync.meant == Meant::Yes,
        version: sync.version,
    };
    for _ in 0..STEPS_MAX {
        let step: SyncedSchedulesReply = caller.reply(SYNC_SCHEDULES_END, &args).await?;
        if step.done || step.again {
            return Ok(step.done.then(|| step.read()));
        }
    }
    Err(Fault::Broken("a set of schedules never took its place".to_owned()).into())
}
