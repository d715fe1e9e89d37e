//! Why something waits, in words: the library says which, how many and who; the sentences are made
//! here, and are those of every engine.

use serde::Deserialize;
use tenure_core::count::{self, counted};
use tenure_core::job::JobState;
use tenure_core::lease::{Explained, Reason, ReasonKind, RunningLease};
use tenure_core::names::JobId;
use tenure_core::time::Moment;

use super::jobs::{State, moment};
use super::lenient::Maybe;
use super::settings::{HolderReply, holders};
use super::{Blobs, Malformed};
use crate::lease_id::{ANONYMOUS, Held, Named};

/// What a job waits for.
#[derive(Deserialize)]
pub(crate) struct ExplainedReply {
    id: JobId,
    state: State,
    /// `[fence, seq, holder, since, expires_at, what the lease holds]`.
    #[serde(default)]
    lease: Maybe<(u64, u64, Maybe<String>, u64, u64, Held)>,
    #[serde(default)]
    lost: u32,
    #[serde(default)]
    run_at: Maybe<u64>,
    #[serde(default)]
    reasons: Vec<ReasonReply>,
}

/// One reason.
#[derive(Deserialize)]
pub(crate) struct ReasonReply {
    kind: ReasonKind,
    #[serde(default)]
    name: Maybe<String>,
    #[serde(default)]
    in_use: Maybe<u64>,
    #[serde(default)]
    capacity: Maybe<u64>,
    #[serde(default)]
    holders: Vec<HolderReply>,
    #[serde(default)]
    position: Maybe<u64>,
    #[serde(default)]
    ahead: Maybe<u64>,
    #[serde(default)]
    earliest: Maybe<u64>,
    /// Of a limit: what is needed.
    #[serde(default)]
    weight: Maybe<u64>,
    /// Of a limit: permits of live leases, without resting ones.
    #[serde(default)]
    held: Maybe<u64>,
    /// Nothing exclusive is granted yet, after another run of the server.
    #[serde(default)]
    learns: bool,
    /// Of a limit: it fits, but others stand before it.
    #[serde(default)]
    behind: bool,
    /// Permits taken outside.
    #[serde(default)]
    external: Maybe<u64>,
    /// Units kept for another.
    #[serde(default)]
    kept: Maybe<u64>,
    /// The job they are kept for.
    #[serde(default)]
    for_job: Maybe<String>,
    /// Since when.
    #[serde(default)]
    since: Maybe<u64>,
    /// Of a pool: how many are needed, and how many match.
    #[serde(default)]
    count: Maybe<u64>,
    #[serde(default)]
    there: Maybe<u64>,
    #[serde(default)]
    tag: Maybe<String>,
    #[serde(default)]
    id: Maybe<String>,
    /// Of what never fits: `unset`, `above` or `pool`.
    #[serde(default)]
    why: Maybe<String>,
}

impl ReasonReply {
    /// `lost`: how often in a row the holder of the job died.
    pub(crate) fn read(self, lost: u32, blobs: &Blobs) -> Result<Reason, Malformed> {
        let detail = self.detail(lost);
        Ok(Reason {
            kind: self.kind,
            name: self.name.0,
            in_use: self.in_use.0,
            capacity: self.capacity.0,
            holders: holders(self.holders, blobs)?,
            position: self.position.0,
            ahead: self.ahead.0,
            earliest: moment(self.earliest),
            detail,
        })
    }

    fn detail(&self, lost: u32) -> String {
        let name = self.name.0.as_deref().unwrap_or_default();
        let at = moment(self.earliest).unwrap_or(Moment::MAX);
        if self.learns {
            return format!(
                "redis was started anew or replaced and may have forgotten who holds {name:?}: \
                 nothing of it is granted before {at}, while holders claim what they hold"
            );
        }
        match &self.kind {
            ReasonKind::WaitingOn => "other jobs end first".to_owned(),
            ReasonKind::Scheduled => match lost {
                0 => format!("it may run at {at}"),
                1 => "its holder died, so it waits and runs alone".to_owned(),
                n => format!("its holders died {n} times in a row, so it waits and runs alone"),
            },
            ReasonKind::QueuePaused if self.earliest.0.is_none() => {
                format!("queue {name:?} is paused until it is resumed")
            }
            ReasonKind::QueuePaused => format!("queue {name:?} is paused until {at}"),
            ReasonKind::Behind => {
                let ahead = self.ahead.0.unwrap_or(0);
                let (jobs, go) = (counted(ahead, "job", "jobs"), count::of(ahead, "goes", "go"));
                format!("{jobs} of queue {name:?} {go} first")
            }
            ReasonKind::NoWorker => {
                format!("nobody asked for queue {name:?} within the last minute")
            }
            ReasonKind::WorkersFull => match self.capacity.0.unwrap_or(0) {
                1 => format!(
                    "the one worker that asks for queue {name:?} is busy: let it run more at once, \
                     or start another"
                ),
                asking => format!(
                    "all {asking} workers that ask for queue {name:?} are busy: let them run more \
                     at once, or start more"
                ),
            },
            ReasonKind::Limit => self.at_limit(name),
            ReasonKind::Rate => format!("the rate of {name:?} has no token before {at}"),
            ReasonKind::Gap => format!("the permits of {name:?} that are free still rest"),
            ReasonKind::LimitPaused => format!("the limit {name:?} is paused until {at}"),
            ReasonKind::External => {
                let n = self.external.0.unwrap_or(0);
                let (permits, are) = (counted(n, "permit", "permits"), count::of(n, "is", "are"));
                format!("{permits} of {name:?} {are} taken by work outside")
            }
            ReasonKind::Pool => self.at_pool(name),
            ReasonKind::Reserved => {
                let kept = self.kept.0.unwrap_or(0);
                let are = count::of(kept, "is", "are");
                let who = match &self.for_job.0 {
                    Some(job) => format!("job {job:?}"),
                    None => "a caller".to_owned(),
                };
                let since = moment(self.since).unwrap_or_default();
                format!(
                    "{kept} of {name:?} {are} kept for {who}, which waited longer, since {since}"
                )
            }
            ReasonKind::NeverFits => match self.why.0.as_deref() {
                Some("unset") => format!("the limit {name:?} is not set any more"),
                Some("pool") => format!("the pool {name:?} is not there any more"),
                _ => {
                    format!("what it needs of the limit {name:?} is above what the limit can give")
                }
            },
            ReasonKind::Other(word) => word.clone(),
        }
    }

    fn at_limit(&self, name: &str) -> String {
        if self.behind {
            return format!("others stand before it at {name:?}");
        }
        let cap = self.capacity.0.unwrap_or(0);
        if cap == 0 {
            return format!("the limit {name:?} is closed: its concurrency is 0");
        }
        let held = self.held.0.or(self.in_use.0).unwrap_or(0);
        let (permits, are) = (counted(cap, "permit", "permits"), count::of(held, "is", "are"));
        let more = match self.weight.0 {
            None | Some(1) => String::new(),
            Some(weight) => format!(", and it needs {weight}"),
        };
        format!("{held} of {permits} of {name:?} {are} in use{more}")
    }

    fn at_pool(&self, name: &str) -> String {
        let count = self.count.0.unwrap_or(1);
        let there = self.there.0.or(self.capacity.0).unwrap_or(0);
        let which = match (&self.id.0, &self.tag.0) {
            (Some(id), _) => format!(" with the id {id:?}"),
            (None, Some(tag)) => format!(" with the tag {tag:?}"),
            (None, None) => String::new(),
        };
        if there < count {
            format!("it needs {count} of pool {name:?}{which}, which has {there}")
        } else {
            format!("no resource of pool {name:?}{which} is free ({there} there)")
        }
    }
}

impl ExplainedReply {
    pub(crate) fn read(self, blobs: &Blobs) -> Result<Explained, Malformed> {
        let state = self.state.0;
        let running =
            |(fence, seq, holder, since, expires_at, held): (_, _, Maybe<String>, _, _, _)| {
                let holder = holder.0.unwrap_or_else(|| ANONYMOUS.to_owned());
                let job = Some(self.id.as_str());
                let lease =
                    blobs.lease_id(Named { fence, seq, holder: &holder, job, held: &held })?;
                let (since, expires_at) = (Moment::from_us(since), Moment::from_us(expires_at));
                Ok(RunningLease { lease, holder, since, expires_at })
            };
        let lease = self.lease.0.map(running).transpose()?;
        let reasons = self.reasons.into_iter().map(|reason| reason.read(self.lost, blobs));
        let mut reasons: Vec<Reason> = reasons.collect::<Result<_, _>>()?;
        if state == JobState::Scheduled && reasons.is_empty() {
            // What a scheduled job waits for is its moment.
            let name = Maybe(None);
            let reason = ReasonReply { earliest: self.run_at, ..scheduled(name) };
            reasons.push(reason.read(self.lost, blobs)?);
        }
        let summary = summary(state, lease.as_ref(), &reasons);
        Ok(Explained { id: self.id, state, summary, reasons, lease })
    }
}

fn scheduled(name: Maybe<String>) -> ReasonReply {
    ReasonReply {
        kind: ReasonKind::Scheduled,
        name,
        in_use: Maybe(None),
        capacity: Maybe(None),
        holders: Vec::new(),
        position: Maybe(None),
        ahead: Maybe(None),
        earliest: Maybe(None),
        weight: Maybe(None),
        held: Maybe(None),
        learns: false,
        behind: false,
        external: Maybe(None),
        kept: Maybe(None),
        for_job: Maybe(None),
        since: Maybe(None),
        count: Maybe(None),
        there: Maybe(None),
        tag: Maybe(None),
        id: Maybe(None),
        why: Maybe(None),
    }
}

fn summary(state: JobState, lease: Option<&RunningLease>, reasons: &[Reason]) -> String {
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
mod tests {
    use super::*;

    fn reason(kind: ReasonKind) -> ReasonReply {
        ReasonReply { kind, ..scheduled(Maybe(Some("n".to_owned()))) }
    }

    #[test]
    fn the_sentences_are_those_of_every_engine() {
        let one = |n| Maybe(Some(n));
        let text = |text: &str| Maybe(Some(text.to_owned()));
        let taken = |held, cap, weight| ReasonReply {
            held: one(held),
            capacity: one(cap),
            weight: one(weight),
            ..reason(ReasonKind::Limit)
        };
        let pool = |count, there| ReasonReply {
            count: one(count),
            there: one(there),
            tag: text("t"),
            ..reason(ReasonKind::Pool)
        };
        let kept = |job: Option<&str>| ReasonReply {
            kept: one(1),
            for_job: Maybe(job.map(str::to_owned)),
            since: one(0),
            ..reason(ReasonKind::Reserved)
        };
        let ahead = ReasonReply { ahead: one(1), ..reason(ReasonKind::Behind) };
        let learns = ReasonReply { learns: true, earliest: one(0), ..taken(0, 1, 1) };
        let outside = ReasonReply { external: one(2), ..reason(ReasonKind::External) };
        let never = ReasonReply { why: text("unset"), ..reason(ReasonKind::NeverFits) };
        let start = "1970-01-01T00:00:00.000000Z";
        for (reason, said) in [
            (taken(1, 2, 1), "1 of 2 permits of \"n\" is in use".to_owned()),
            (taken(3, 4, 2), "3 of 4 permits of \"n\" are in use, and it needs 2".to_owned()),
            (taken(0, 0, 1), "the limit \"n\" is closed: its concurrency is 0".to_owned()),
            (pool(3, 2), "it needs 3 of pool \"n\" with the tag \"t\", which has 2".to_owned()),
            (
                pool(1, 2),
                "no resource of pool \"n\" with the tag \"t\" is free (2 there)".to_owned(),
            ),
            (
                kept(Some("j")),
                format!("1 of \"n\" is kept for job \"j\", which waited longer, since {start}"),
            ),
            (
                kept(None),
                format!("1 of \"n\" is kept for a caller, which waited longer, since {start}"),
            ),
            (ahead, "1 job of queue \"n\" goes first".to_owned()),
            (outside, "2 permits of \"n\" are taken by work outside".to_owned()),
            (
                learns,
                format!(
                    "redis was started anew or replaced and may have forgotten who holds \"n\": \
                     nothing of it is granted before {start}, while holders claim what they hold"
                ),
            ),
            (never, "the limit \"n\" is not set any more".to_owned()),
        ] {
            assert_eq!(reason.detail(0), said);
        }
    }
}
