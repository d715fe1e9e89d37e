//! Calls on all jobs that match a filter, and what failed jobs have in common: steps of the store, each of bounded work,
//! that this side continues.
//!
//! One call looks at no more than 10,000 jobs, those included that it looks at twice, and says where the next call goes on.

use tenure_core::bounds::{LIST_SCAN_MAX, MANY_PORTION};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    BulkChange, CancelJobs, DeleteJobs, DoneMany, FailureCounts, Failures, ListFailures, ManyJobs,
    RetryJobs,
};
use tenure_engine::CallError;

use crate::alphabet::state;
use crate::answer::Answerable;
use crate::call::Caller;
use crate::decode::{Answered, FailuresReply, ManyReply};
use crate::encode::{EndsArgs, ListFailuresArgs, ManyArgs, OriginArgs, pack};
use crate::function::Function;
use crate::lists::{From, LookAs, Looked, look};

const LIST_FAILURES: Function = Function::of::<ListFailures>();

impl Answerable for CancelJobs {
    async fn answer(self, caller: Caller) -> Result<DoneMany, CallError> {
        many(&caller, self).await
    }
}

impl Answerable for RetryJobs {
    async fn answer(self, caller: Caller) -> Result<DoneMany, CallError> {
        many(&caller, self).await
    }
}

impl Answerable for DeleteJobs {
    async fn answer(self, caller: Caller) -> Result<DoneMany, CallError> {
        many(&caller, self).await
    }
}

/// Changes up to `max` jobs that match.
async fn many(
    caller: &Caller,
    asked: impl TryInto<ManyJobs, Error = Refusal>,
) -> Result<DoneMany, CallError> {
    let asked: ManyJobs = asked.try_into()?;
    if asked.matches_nothing() {
        return Ok(DoneMany::all(0));
    }
    let max = asked.max as u64;
    let mut from = if asked.oldest_first { From::Above(asked.row) } else { From::Below(asked.row) };
    let (mut done, mut left, mut later) = (0, LIST_SCAN_MAX, None);
    loop {
        let wanted = max.saturating_sub(done) as usize;
        let looked = look(caller, &asked.filter, LookAs::Bare, from, (wanted, left)).await?;
        // A look that looked at nothing and has more would never end.
        left = left.saturating_sub(looked.scanned.max(1));
        let changed = change(caller, &asked, &looked).await?;
        done += changed.done;
        later = later.or(changed.later);
        let next = match changed.stopped_at {
            // Its row as it is by now is looked at again, and then those behind it.
            Some(seq) => Some(from.in_front_of(seq)),
            None => looked.next,
        };
        // Those that could not be retried yet are looked at once more by the call that goes on.
        let again = later.map(|seq| from.in_front_of(seq));
        match next {
            None => {
                return Ok(again.map_or(DoneMany::all(done), |row| DoneMany::stopped(done, row)));
            }
            Some(next) if done >= max || left == 0 => {
                return Ok(DoneMany::stopped(done, again.unwrap_or(next)));
            }
            Some(next) => from = from.behind(next),
        }
    }
}

/// What became of jobs that were found.
#[derive(Default)]
struct Changed {
    done: u64,
    /// The job in front of which it stopped.
    stopped_at: Option<u64>,
    /// The first that could not be changed yet.
    later: Option<u64>,
}

/// Changes jobs that were found, in portions: each may be the last of its queue, its lane and its limits, and takes up to
/// 80 us of the store then.
async fn change(caller: &Caller, asked: &ManyJobs, looked: &Looked) -> Result<Changed, CallError> {
    let function = match asked.change {
        BulkChange::Cancel => Function::of::<CancelJobs>(),
        BulkChange::Retry => Function::of::<RetryJobs>(),
        BulkChange::Delete => Function::of::<DeleteJobs>(),
    };
    let filter = &asked.filter;
    let states: Vec<&str> = filter.states.iter().map(|state| state::letter(*state)).collect();
    let ends = EndsArgs::new(filter.finished_after, filter.finished_before);
    let seqs: Vec<u64> = looked.found.iter().map(|job| job.0).collect();
    let mut changed = Changed::default();
    for (nth, seqs) in seqs.chunks(MANY_PORTION).enumerate() {
        let from = nth * MANY_PORTION;
        let seen = looked.seen.get(from..from + seqs.len()).filter(|_| filter.asks_for_content());
        let queue = filter.queue.as_ref().map(|queue| queue.as_str());
        let origin = OriginArgs::of(filter);
        let args = ManyArgs { seqs, queue, states: &states, ends: &ends, origin, seen };
        let step = caller.reply::<ManyReply>(function, &args).await?;
        changed.done += step.done;
        changed.later = changed.later.or(step.later.0);
        changed.stopped_at = step.stopped_at.0;
        if changed.stopped_at.is_some() {
            break;
        }
    }
    Ok(changed)
}

impl Answerable for ListFailures {
    async fn answer(self, caller: Caller) -> Result<Failures, CallError> {
        failures(&caller, self).await
    }
}

/// The groups of failed jobs.
async fn failures(caller: &Caller, asked: ListFailures) -> Result<Failures, CallError> {
    let queue = asked.queue.clone();
    let from = asked.finished_after;
    let mut counts = FailureCounts::new(asked);
    let mut after: Option<String> = None;
    loop {
        let args = ListFailuresArgs {
            queue: queue.as_ref().map(|queue| queue.as_str()),
            ends: EndsArgs::new(from, None),
            after: after.as_deref(),
            max: counts.left().min(MANY_PORTION),
        };
        let answered = caller.ask::<FailuresReply>(LIST_FAILURES, pack(&args)).await?;
        let Answered { reply: FailuresReply { jobs, scanned, next }, blobs, .. } = answered;
        counts.pass_over(scanned.saturating_sub(jobs.len()));
        for job in jobs {
            match job.failed(&blobs) {
                Ok(one) => counts.look_at(one),
                // The others are counted all the same.
                Err(_) => counts.pass_over(1),
            }
        }
        match next.0 {
            None => return Ok(counts.finish(false)),
            Some(_) if counts.left() == 0 => return Ok(counts.finish(true)),
            next if next == after => return Ok(counts.finish(true)),
            next => after = next,
        }
    }
}
