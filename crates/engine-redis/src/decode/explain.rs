//! Why something waits: the library says which, how many and who, of which `tenure_core::sentences` makes the
//! sentences of every engine.

use serde::Deserialize;
use tenure_core::job::JobState;
use tenure_core::lease::{Explained, Reason, ReasonKind, RunningLease};
use tenure_core::names::JobId;
use tenure_core::sentences::{WaitCause, Wanted};
use tenure_core::time::Moment;

use super::jobs::{Noted, State, moment};
use super::lenient::Maybe;
use super::settings::{HolderReply, holders};
use super::{Blobs, FromWire, Malformed};
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
    /// Of a gauge: it was not read, or since when it cannot be (`since`), and why.
    #[serde(default)]
    unread: bool,
    #[serde(default)]
    error: Maybe<Noted>,
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
    /// Of a parent: it has ended, and is telling those that wait for it.
    #[serde(default)]
    ended: bool,
}

impl ReasonReply {
    /// `lost`: how often in a row the holder of the job died.
    pub(crate) fn read(self, lost: u32, blobs: &Blobs) -> Result<Reason, Malformed> {
        let told = match &self.kind {
            // A word of another release: it is all that is known.
            ReasonKind::Other(word) => Reason::told(self.kind.clone(), word.clone()),
            _ => self.cause(lost).into(),
        };
        Ok(Reason {
            name: self.name.0,
            in_use: self.in_use.0,
            capacity: self.capacity.0,
            holders: holders(self.holders, blobs)?,
            position: self.position.0,
            ahead: self.ahead.0,
            earliest: moment(self.earliest),
            ..told
        })
    }

    fn cause(&self, lost: u32) -> WaitCause {
        let name = self.name.0.clone().unwrap_or_default();
        let at = moment(self.earliest).unwrap_or(Moment::MAX);
        if self.learns {
            return match self.kind {
                ReasonKind::Pool => WaitCause::PoolForgotten { name, until: at },
                _ => WaitCause::LimitForgotten { name, until: at },
            };
        }
        match &self.kind {
            ReasonKind::External if self.unread => WaitCause::GaugeUnread { name },
            ReasonKind::WaitingOn => WaitCause::parent(name, self.ended),
            ReasonKind::Other(_) => WaitCause::OtherJobs,
            ReasonKind::Scheduled => WaitCause::scheduled(lost, at),
            ReasonKind::QueuePaused => WaitCause::queue_paused(name, moment(self.earliest)),
            ReasonKind::Behind => WaitCause::Behind { name, ahead: self.ahead.0.unwrap_or(0) },
            ReasonKind::NoWorker => WaitCause::NoWorker { name },
            ReasonKind::WorkersFull => WaitCause::workers_full(name, self.capacity.0.unwrap_or(0)),
            ReasonKind::Limit if self.behind => WaitCause::LimitInLine { name },
            ReasonKind::Limit => {
                let held = self.held.0.or(self.in_use.0).unwrap_or(0);
                let (cap, weight) = (self.capacity.0.unwrap_or(0), self.weight.0.unwrap_or(1));
                WaitCause::limit_taken(name, held, cap, weight)
            }
            ReasonKind::Rate => WaitCause::Rate { name, until: at },
            ReasonKind::Gap => WaitCause::Gap { name },
            ReasonKind::LimitPaused => WaitCause::LimitPaused { name, until: at },
            ReasonKind::External => match &self.error.0 {
                Some(error) => {
                    let since = moment(self.since).unwrap_or_default();
                    WaitCause::GaugeFailing { name, since, error: error.to_string() }
                }
                None => WaitCause::External { name, taken: self.external.0.unwrap_or(0) },
            },
            ReasonKind::Pool => self.at_pool(name),
            ReasonKind::Reserved => {
                let (kept, job) = (self.kept.0.unwrap_or(0), self.for_job.0.clone());
                WaitCause::reserved(name, kept, job, moment(self.since).unwrap_or_default())
            }
            ReasonKind::NeverFits => match self.why.0.as_deref() {
                Some("unset") => WaitCause::LimitUnset { name },
                Some("pool") => WaitCause::PoolGone { name },
                _ => WaitCause::NeverFits { name },
            },
        }
    }

    fn at_pool(&self, name: String) -> WaitCause {
        let which = match (&self.id.0, &self.tag.0) {
            (Some(id), _) => Wanted::Id(id.clone()),
            (None, Some(tag)) => Wanted::Tag(tag.clone()),
            (None, None) => Wanted::Any,
        };
        let there = self.there.0.or(self.capacity.0).unwrap_or(0);
        WaitCause::pool_taken(name, which, self.count.0.unwrap_or(1), there)
    }
}

impl FromWire for Explained {
    type Wire = ExplainedReply;
    fn read(wire: ExplainedReply, blobs: &Blobs) -> Result<Self, Malformed> {
        let state = wire.state.0;
        let running =
            |(fence, seq, holder, since, expires_at, held): (_, _, Maybe<String>, _, _, _)| {
                let holder = holder.0.unwrap_or_else(|| ANONYMOUS.to_owned());
                let job = Some(wire.id.as_str());
                let lease =
                    blobs.lease_id(Named { fence, seq, holder: &holder, job, held: &held })?;
                let (since, expires_at) = (Moment::from_us(since), Moment::from_us(expires_at));
                Ok(RunningLease { lease, holder, since, expires_at })
            };
        let lease = wire.lease.0.map(running).transpose()?;
        let reasons = wire.reasons.into_iter().map(|reason| reason.read(wire.lost, blobs));
        let mut reasons: Vec<Reason> = reasons.collect::<Result<_, _>>()?;
        if state == JobState::Scheduled && reasons.is_empty() {
            // What a scheduled job waits for is its moment.
            let name = Maybe(None);
            let reason = ReasonReply { earliest: wire.run_at, ..scheduled(name) };
            reasons.push(reason.read(wire.lost, blobs)?);
        }
        Ok(Explained::new(wire.id, state, reasons, lease))
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
        unread: false,
        error: Maybe(None),
        kept: Maybe(None),
        for_job: Maybe(None),
        since: Maybe(None),
        count: Maybe(None),
        there: Maybe(None),
        tag: Maybe(None),
        id: Maybe(None),
        why: Maybe(None),
        ended: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(kind: ReasonKind) -> ReasonReply {
        ReasonReply { kind, ..scheduled(Maybe(Some("n".to_owned()))) }
    }

    #[test]
    fn what_the_library_says_makes_the_sentences_of_every_engine() {
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
        let unread = ReasonReply { unread: true, ..reason(ReasonKind::External) };
        let failing = ReasonReply {
            error: Maybe(Some(Noted::Text("http status 503".to_owned()))),
            since: one(0),
            ..reason(ReasonKind::External)
        };
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
            (unread, "\"n\" waits until its gauge is read".to_owned()),
            (
                failing,
                format!("the gauge of \"n\" could not be read since {start}: http status 503"),
            ),
            (
                learns,
                format!(
                    "the store may have forgotten its last writes, and so who holds \"n\": nothing of it \
                     is granted before {start}, when each lease that was forgotten is over"
                ),
            ),
            (never, "the limit \"n\" is not set any more".to_owned()),
        ] {
            assert_eq!(reason.cause(0).to_string(), said);
        }
    }
}
