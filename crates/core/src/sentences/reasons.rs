//! Reasons why a job or a caller waits, each in a sentence, and their summary.

use std::fmt;

use crate::count::{self, counted};
use crate::job::JobState;
use crate::lease::{Reason, ReasonKind, RunningLease};
use crate::sentences::phrases::forgotten;
use crate::time::Moment;

/// Makes the enum of causes, with the kind and the sentence of each.
macro_rules! causes {
    (
        $(#[$about:meta])*
        $type:ident:
        $(
            $variant:ident $kind:ident
                $({ $($field:ident: $param:ty),+ $(,)? })?
                detail($detail:literal $(, $told:expr)* $(,)?);
        )+
    ) => {
        $(#[$about])*
        // The sentence of a cause is its doc.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum $type {
            $(
                #[doc = concat!("`", $detail, "`")]
                $variant $({ $($field: $param),+ })?,
            )+
        }

        impl $type {
            /// The kind that programs compare.
            pub fn kind(&self) -> ReasonKind {
                match self { $($type::$variant { .. } => ReasonKind::$kind,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($type::$variant $({ $($field),+ })? => write!(f, $detail $(, $told)*),)+
                }
            }
        }
    };
}

causes! {
    /// A cause of a wait, with the parameters of its sentence. `name` is that of the queue, the limit or the pool.
    WaitCause:

    OtherJobs WaitingOn
        detail("other jobs end first");

    ParentOpen WaitingOn { name: String }
        detail("{name:?} has not ended");

    ParentTelling WaitingOn { name: String }
        detail("{name:?} has ended, and is telling those that wait for it");

    Moment Scheduled { at: Moment }
        detail("it may run at {at}");

    HolderDied Scheduled
        detail("its holder died, so it waits and runs alone");

    HoldersDied Scheduled { times: u32 }
        detail("its holders died {times} times in a row, so it waits and runs alone");

    Behind Behind { name: String, ahead: u64 }
        detail(
            "{} of queue {name:?} {} first",
            counted(*ahead, "job", "jobs"),
            count::of(*ahead, "goes", "go"),
        );

    QueuePaused QueuePaused { name: String }
        detail("queue {name:?} is paused until it is resumed");

    QueuePausedUntil QueuePaused { name: String, until: Moment }
        detail("queue {name:?} is paused until {until}");

    NoWorker NoWorker { name: String }
        detail("nobody asked for queue {name:?} within the last minute");

    WorkerFull WorkersFull { name: String }
        detail("the one worker that asks for queue {name:?} is busy: let it run more at once, or start another");

    WorkersFull WorkersFull { name: String, asking: u64 }
        detail("all {asking} workers that ask for queue {name:?} are busy: let them run more at once, or start more");

    LimitTaken Limit { name: String, in_use: u64, concurrency: u64 }
        detail(
            "{in_use} of {} of {name:?} {} in use",
            counted(*concurrency, "permit", "permits"),
            count::of(*in_use, "is", "are"),
        );

    LimitTakenFor Limit { name: String, in_use: u64, concurrency: u64, weight: u64 }
        detail(
            "{in_use} of {} of {name:?} {} in use, and it needs {weight}",
            counted(*concurrency, "permit", "permits"),
            count::of(*in_use, "is", "are"),
        );

    LimitClosed Limit { name: String }
        detail("the limit {name:?} is closed: its concurrency is 0");

    LimitInLine Limit { name: String }
        detail("others stand before it at {name:?}");

    LimitForgotten Limit { name: String, until: Moment }
        detail("{}", forgotten(name, *until));

    PoolForgotten Pool { name: String, until: Moment }
        detail("{}", forgotten(name, *until));

    Rate Rate { name: String, until: Moment }
        detail("the rate of {name:?} has no token before {until}");

    Gap Gap { name: String }
        detail("the permits of {name:?} that are free still rest");

    LimitPaused LimitPaused { name: String, until: Moment }
        detail("the limit {name:?} is paused until {until}");

    External External { name: String, taken: u64 }
        detail(
            "{} of {name:?} {} taken by work outside",
            counted(*taken, "permit", "permits"),
            count::of(*taken, "is", "are"),
        );

    GaugeUnread External { name: String }
        detail("{name:?} waits until its gauge is read");

    GaugeFailing External { name: String, since: Moment, error: String }
        detail("the gauge of {name:?} could not be read since {since}: {error}");

    PoolTaken Pool { name: String, which: Wanted, there: u64 }
        detail("no resource of pool {name:?}{which} is free ({there} there)");

    PoolTooSmall Pool { name: String, which: Wanted, count: u64, there: u64 }
        detail("it needs {count} of pool {name:?}{which}, which has {there}");

    ReservedForJob Reserved { name: String, kept: u64, job: String, since: Moment }
        detail(
            "{kept} of {name:?} {} kept for job {job:?}, which waited longer, since {since}",
            count::of(*kept, "is", "are"),
        );

    ReservedForCaller Reserved { name: String, kept: u64, since: Moment }
        detail(
            "{kept} of {name:?} {} kept for a caller, which waited longer, since {since}",
            count::of(*kept, "is", "are"),
        );

    NeverFits NeverFits { name: String }
        detail("what it needs of the limit {name:?} is above what the limit can give");

    LimitUnset NeverFits { name: String }
        detail("the limit {name:?} is not set any more");

    PoolGone NeverFits { name: String }
        detail("the pool {name:?} is not there any more");
}

/// The resources of a pool that a need accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// All resources of the pool.
    Any,
    /// Resources with this tag.
    Tag(String),
    /// The resource with this id.
    Id(String),
}

/// The words behind the name of the pool.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Any => Ok(()),
            Wanted::Tag(tag) => write!(f, " with the tag {tag:?}"),
            Wanted::Id(id) => write!(f, " with the id {id:?}"),
        }
    }
}

impl WaitCause {
    /// For a scheduled job: its moment, or the deaths of its holders. `lost` counts these in a row.
    pub fn scheduled(lost: u32, at: Moment) -> Self {
        match lost {
            0 => WaitCause::Moment { at },
            1 => WaitCause::HolderDied,
            times => WaitCause::HoldersDied { times },
        }
    }
    /// For a job that waits for a parent; `ended` is true once the parent has ended.
    pub fn parent(name: String, ended: bool) -> Self {
        if ended { WaitCause::ParentTelling { name } } else { WaitCause::ParentOpen { name } }
    }
    /// For a job whose queue is paused; without `until` the pause has no end.
    pub fn queue_paused(name: String, until: Option<Moment>) -> Self {
        match until {
            Some(until) => WaitCause::QueuePausedUntil { name, until },
            None => WaitCause::QueuePaused { name },
        }
    }
    /// For a job whose queue has only busy workers, `asking` of them.
    pub fn workers_full(name: String, asking: u64) -> Self {
        match asking {
            1 => WaitCause::WorkerFull { name },
            asking => WaitCause::WorkersFull { name, asking },
        }
    }
    /// For a need of `weight` permits of a limit that has too few free ones.
    pub fn limit_taken(name: String, in_use: u64, concurrency: u64, weight: u64) -> Self {
        match (concurrency, weight) {
            (0, _) => WaitCause::LimitClosed { name },
            (_, 1) => WaitCause::LimitTaken { name, in_use, concurrency },
            _ => WaitCause::LimitTakenFor { name, in_use, concurrency, weight },
        }
    }
    /// For a need of `count` resources of a pool, where `there` resources would fit if they were free.
    pub fn pool_taken(name: String, which: Wanted, count: u64, there: u64) -> Self {
        if there < count {
            WaitCause::PoolTooSmall { name, which, count, there }
        } else {
            WaitCause::PoolTaken { name, which, there }
        }
    }
    /// For a need whose free units are reserved for a job or a caller that has waited longer.
    pub fn reserved(name: String, kept: u64, job: Option<String>, since: Moment) -> Self {
        match job {
            Some(job) => WaitCause::ReservedForJob { name, kept, job, since },
            None => WaitCause::ReservedForCaller { name, kept, since },
        }
    }
}

/// A reason with its sentence; the caller fills in the other fields.
impl From<WaitCause> for Reason {
    fn from(cause: WaitCause) -> Self {
        Reason::told(cause.kind(), cause.to_string())
    }
}

/// The summary of a job that failed because its store could not read it.
pub const UNREADABLE_SUMMARY: &str = "it failed because it is unreadable: what the store holds of it is not what was written; \
                                      `tenure audit --deep` names what is damaged";

/// Sums the state and the reasons up in one sentence, which does not repeat the state.
pub(crate) fn summary(state: JobState, reasons: &[Reason], lease: Option<&RunningLease>) -> String {
    if state.is_finished() {
        return "it is finished, and waits for nothing".to_owned();
    }
    match (lease, reasons) {
        (Some(lease), _) => format!("{:?} holds it since {}", lease.holder, lease.since),
        (None, []) => "the next worker that asks gets it".to_owned(),
        (None, [first]) => first.detail.clone(),
        (None, [first, others @ ..]) => {
            let more = counted(others.len() as u64, "more reason", "more reasons");
            format!("{} (and {more})", first.detail)
        }
    }
}

#[cfg(test)]
mod tests;
