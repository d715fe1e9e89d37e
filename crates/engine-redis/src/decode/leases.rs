//! Leases in replies: granted, extended, settled, listed.

use serde::Deserialize;
use tenure_core::job::JobState;
use tenure_core::lease::{
    Extended, ExtendedLease, HeldResource, LeaseSummary, LeaseView, LeasedResource, SettledLease,
};
use tenure_core::machine::lease_id;
use tenure_core::names::{JobId, LimitName, PoolName, QueueName, ResourceId, Tag};
use tenure_core::refusal::Code;
use tenure_core::requests::{Extend, Settle};
use tenure_core::time::Moment;

use super::explain::ReasonReply;
use super::jobs::{PushedReply, State, Stored, first_run, moment, pushed_jobs};
use super::lenient::Maybe;
use super::{Blobs, Malformed};

/// A lease call's answer.
#[derive(Deserialize)]
pub(crate) struct LeasedReply {
    #[serde(default)]
    leases: Vec<GrantReply>,
    /// Grants that have nothing unusual: how many of `leases` stand before them, and they.
    #[serde(default)]
    runs: Vec<(usize, RunReply)>,
    #[serde(default)]
    holder: Maybe<String>,
    #[serde(default)]
    pub next_at: Maybe<u64>,
    #[serde(default)]
    pub reasons: Vec<ReasonReply>,
    /// The call is registered and waits for a signal.
    #[serde(default)]
    pub waits: bool,
    /// Another call under the same request id waits now.
    #[serde(default)]
    pub over: bool,
    /// The bounded work was not enough: call again at once.
    #[serde(default)]
    pub more: bool,
}

/// Grants of one moment, of jobs that were never granted before: `[granted_at, expires_at, deadline,
/// shape, [fence, seq, row, …]]`.
#[derive(Deserialize)]
struct RunReply(u64, u64, Maybe<u64>, usize, Vec<u64>);

impl RunReply {
    fn each(&self) -> impl Iterator<Item = (u64, u64, usize)> {
        self.4.chunks_exact(3).map(|one| (one[0], one[1], usize::try_from(one[2]).unwrap_or(0)))
    }

    fn view(&self, holder: &str, blobs: &Blobs, all: &mut Vec<LeaseView>) -> Result<(), Malformed> {
        for (fence, seq, row) in self.each() {
            all.push(LeaseView {
                lease: Some(lease_id(fence, seq)),
                fence,
                holder: holder.to_owned(),
                granted_at: Moment::from_us(self.0),
                expires_at: Moment::from_us(self.1),
                deadline: self.2.0.map(Moment::from_us),
                job: Some(first_run(blobs, self.3, row, (fence, seq), self.0)?),
                resources: Vec::new(),
                limits: Vec::new(),
            });
        }
        Ok(())
    }
}

impl LeasedReply {
    /// Whether something was granted.
    pub(crate) fn has_leases(&self) -> bool {
        !self.leases.is_empty() || !self.runs.is_empty()
    }

    /// What undoes all that was granted: fences and row numbers.
    pub(crate) fn names(&self) -> Vec<(u64, u64)> {
        let runs = self.runs.iter().flat_map(|(_, run)| run.each());
        let short = runs.map(|(fence, seq, _)| (fence, seq));
        self.leases.iter().filter_map(GrantReply::name).chain(short).collect()
    }

    /// The leases as their holder sees them, in the order in which they were granted.
    pub(crate) fn views(self, blobs: &Blobs) -> Result<Vec<LeaseView>, Malformed> {
        let holder = holder(self.holder);
        let mut runs = self.runs.into_iter().peekable();
        let mut all = Vec::new();
        for (before, grant) in self.leases.into_iter().enumerate() {
            while let Some((_, run)) = runs.next_if(|(at, _)| *at <= before) {
                run.view(&holder, blobs, &mut all)?;
            }
            all.push(grant.view(holder.clone(), blobs)?);
        }
        for (_, run) in runs {
            run.view(&holder, blobs, &mut all)?;
        }
        Ok(all)
    }
}

/// One grant: `[fence, seq, granted_at, expires_at, deadline, job, limits, resources, token]`. `token`:
/// it was granted and given back in one step, there is no lease.
#[derive(Deserialize)]
struct GrantReply(
    u64,
    u64,
    u64,
    u64,
    Maybe<u64>,
    Maybe<Stored>,
    Vec<LimitName>,
    Vec<GrantedResource>,
    bool,
);

/// `[pool, id, tags, data]`.
#[derive(Deserialize)]
struct GrantedResource(PoolName, ResourceId, Vec<Tag>, Maybe<usize>);

/// What leases of who did not say who they are show.
const ANONYMOUS: &str = "anonymous";

fn holder(holder: Maybe<String>) -> String {
    holder.0.unwrap_or_else(|| ANONYMOUS.to_owned())
}

impl GrantReply {
    fn view(self, holder: String, blobs: &Blobs) -> Result<LeaseView, Malformed> {
        let GrantReply(fence, seq, granted_at, expires_at, deadline, job, limits, held, token) =
            self;
        let resource = |GrantedResource(pool, id, tags, data)| {
            let data = data.0.map(|number| blobs.json(number)).transpose()?;
            Ok(LeasedResource { pool, id, data: data.unwrap_or_default(), tags })
        };
        Ok(LeaseView {
            lease: (!token).then(|| lease_id(fence, seq)),
            fence,
            holder,
            granted_at: Moment::from_us(granted_at),
            expires_at: Moment::from_us(expires_at),
            deadline: moment(deadline),
            job: job.0.map(|job| job.view(blobs, true)).transpose()?,
            resources: held.into_iter().map(resource).collect::<Result<_, _>>()?,
            limits,
        })
    }

    /// What undoes it: its fence and its row number, unless there is nothing to undo.
    fn name(&self) -> Option<(u64, u64)> {
        (!self.8).then_some((self.0, self.1))
    }
}

/// An extend's answer; places count from 1.
#[derive(Deserialize)]
pub(crate) struct ExtendedReply {
    #[serde(default)]
    ok: Vec<(usize, u64)>,
    #[serde(default)]
    lost: Vec<usize>,
    #[serde(default)]
    cancel: Vec<usize>,
}

/// The answer to an extend, in the words of its call.
pub(crate) fn extended(asked: &Extend, reply: ExtendedReply) -> Result<Extended, Malformed> {
    let named = |at: usize| {
        let item = at.checked_sub(1).and_then(|at| asked.leases.get(at));
        item.map(|item| item.lease.clone()).ok_or(Malformed("the place of a lease"))
    };
    let alive = |(at, expires_at): (usize, u64)| {
        Ok(ExtendedLease { lease: named(at)?, expires_at: Moment::from_us(expires_at) })
    };
    Ok(Extended {
        extended: reply.ok.into_iter().map(alive).collect::<Result<_, _>>()?,
        lost: reply.lost.into_iter().map(named).collect::<Result<_, _>>()?,
        cancel: reply.cancel.into_iter().map(named).collect::<Result<_, _>>()?,
    })
}

/// What became of one settled lease.
#[derive(Deserialize)]
pub(crate) struct SettledReply {
    #[serde(default)]
    ok: bool,
    #[serde(default)]
    state: Maybe<State>,
    #[serde(default)]
    run_at: Maybe<u64>,
    #[serde(default)]
    code: Maybe<String>,
    #[serde(default)]
    pushed: Vec<PushedReply>,
}

/// What a settle was answered.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum SettleReply {
    /// All succeeded, and nothing else is to be told.
    All { all: usize },
    /// One answer each.
    Each(Vec<SettledReply>),
}

/// The answer to a settle, in the words of its call.
pub(crate) fn settled(
    asked: Settle,
    reply: SettleReply,
    blobs: &Blobs,
) -> Result<Vec<SettledLease>, Malformed> {
    let reply = match reply {
        SettleReply::Each(reply) => reply,
        SettleReply::All { all } if all == asked.settle.len() => {
            let one = |item: tenure_core::lease::SettleItem| SettledLease {
                lease: item.lease,
                ok: true,
                state: Some(JobState::Succeeded),
                run_at: None,
                code: None,
                pushed: Vec::new(),
            };
            return Ok(asked.settle.into_iter().map(one).collect());
        }
        SettleReply::All { .. } => return Err(Malformed("the answer to one of its items")),
    };
    if asked.settle.len() != reply.len() {
        return Err(Malformed("the answer to one of its items"));
    }
    let read = |code: String| code.parse::<Code>().map_err(|()| Malformed("a code"));
    let one = |(item, one): (tenure_core::lease::SettleItem, SettledReply)| {
        Ok(SettledLease {
            lease: item.lease,
            ok: one.ok,
            state: one.state.0.map(|state| state.0),
            run_at: moment(one.run_at),
            code: if one.ok { None } else { one.code.0.map(read).transpose()? },
            pushed: pushed_jobs(one.pushed, blobs, false)?,
        })
    };
    asked.settle.into_iter().zip(reply).map(one).collect()
}

/// A page of live leases.
#[derive(Deserialize)]
pub(crate) struct LeasesReply {
    fence: u64,
    #[serde(default)]
    seq: Maybe<u64>,
    #[serde(default)]
    holder: Maybe<String>,
    granted_at: u64,
    expires_at: u64,
    #[serde(default)]
    deadline: Maybe<u64>,
    #[serde(default)]
    job: Maybe<JobId>,
    #[serde(default)]
    queue: Maybe<QueueName>,
    #[serde(default)]
    limits: Vec<LimitName>,
    #[serde(default)]
    resources: Vec<(PoolName, ResourceId)>,
    #[serde(default)]
    cancel: bool,
}

/// Live leases as lists show them.
pub(crate) fn leases_listed(leases: Vec<LeasesReply>) -> Vec<LeaseSummary> {
    let resource = |(pool, id)| HeldResource { pool, id };
    let all = leases.into_iter().map(|lease| LeaseSummary {
        lease: lease_id(lease.fence, lease.seq.0.unwrap_or(0)),
        fence: lease.fence,
        holder: holder(lease.holder),
        granted_at: Moment::from_us(lease.granted_at),
        expires_at: Moment::from_us(lease.expires_at),
        deadline: moment(lease.deadline),
        job: lease.job.0,
        queue: lease.queue.0,
        resources: lease.resources.into_iter().map(resource).collect(),
        limits: lease.limits,
        cancel_requested: lease.cancel,
    });
    all.collect()
}
