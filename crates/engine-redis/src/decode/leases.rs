//! Leases in replies: granted, extended, settled, listed.

use std::borrow::Cow;

use serde::Deserialize;
use tenure_core::job::JobState;
use tenure_core::lease::{
    Ending, Extended, ExtendedLease, Fence, HeldResource, LeaseSummary, LeaseView, LeasedResource,
    ResourceVerdict, SettleItem, SettledLease, Verdict,
};
use tenure_core::names::{JobId, LimitName, PoolName, QueueName, ResourceId, Tag};
use tenure_core::refusal::Code;
use tenure_core::requests::{Extend, Settle};
use tenure_core::time::Moment;

use super::explain::ReasonReply;
use super::jobs::{PushedReply, State, Stored, UNREADABLE, first_run, moment, pushed_jobs};
use super::lenient::Maybe;
use super::row::Row;
use super::{Blobs, Malformed};
use crate::lease_id::{ANONYMOUS, Held, Named};

/// What was granted.
#[derive(Default)]
pub(crate) struct Views {
    /// As its holder sees it.
    pub leases: Vec<LeaseView>,
    /// What cannot be read, and so cannot be handed out: how these leases are to be settled, so that
    /// nobody waits behind them.
    pub unreadable: Vec<SettleItem>,
}

/// A job that cannot be read has failed for good.
fn unreadable_job(lease: String) -> SettleItem {
    let error = UNREADABLE.to_owned();
    let ending = Ending::Failed { error, retry_in: None, last: true };
    SettleItem::new(lease, ending)
}

/// A resource whose data cannot be read is banned; its job goes on with another.
fn unreadable_resource(lease: String, pool: PoolName, id: ResourceId) -> SettleItem {
    let verdict = Verdict::Ban { reason: Some(UNREADABLE.to_owned()) };
    let resources = vec![ResourceVerdict { pool, id, verdict }];
    SettleItem { ending: Ending::Released, resources, ..unreadable_job(lease) }
}

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
    /// With `more`, of a call that was granted some: the bytes of all that it was granted.
    #[serde(default)]
    pub bytes: u64,
    /// It was sent to this very call under this number.
    #[serde(default)]
    pub parcel: Maybe<u64>,
}

/// Grants of one moment, of jobs that were never granted before: `[granted_at, expires_at, deadline,
/// shape, how many, their names, the first row, limits]`. The names are one text, the rows one after the
/// other; the limits with weight and booked cost.
#[derive(Deserialize)]
struct RunReply(u64, u64, Maybe<u64>, Shapes, usize, usize, usize, Vec<(LimitName, u64, u64)>);

/// The shape of all jobs of a run, or that of each. In the second case each lease holds the limits that its shape needs,
/// with nothing booked of a rate.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the number of a shape, or of each")]
enum Shapes {
    All(usize),
    Each(Vec<usize>),
}

/// A fence, eight bytes, and a row number, six.
const NAME_BYTES: usize = 14;
/// The same, and when the jobs were pushed, seven: rows of a block, which have one fence and one number after
/// the other. Their texts are one, behind an index (`lua/machine/blocks.lua`).
const BLOCK_NAME_BYTES: usize = NAME_BYTES + 7;

/// Of each of a run: its fence, its row number, and its row, if that can be read.
type Runner<'a> = (u64, u64, Result<Row<'a>, Malformed>);

impl RunReply {
    /// The fence and the row number of each.
    fn names(&self, blobs: &Blobs) -> Result<Vec<(u64, u64)>, Malformed> {
        let names = blobs.get(self.5)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let name = |name: &[u8]| {
            let (fence, seq) = name.split_at(8);
            (number(fence), number(seq))
        };
        if names.len() == BLOCK_NAME_BYTES {
            let (fence, seq) = name(&names[..NAME_BYTES]);
            return Ok((0..self.4 as u64).map(|at| (fence + at, seq + at)).collect());
        }
        if names.len() != self.4 * NAME_BYTES {
            return Err(Malformed("the names of leases"));
        }
        Ok(names.chunks_exact(NAME_BYTES).map(name).collect())
    }

    fn each<'a>(&self, blobs: &'a Blobs) -> Result<Vec<Runner<'a>>, Malformed> {
        let rows: Vec<_> = match blobs.get(self.5)?.get(NAME_BYTES..) {
            Some(pushed_at) if pushed_at.len() == BLOCK_NAME_BYTES - NAME_BYTES => {
                let index = blobs.get(self.6)?;
                let block = Row::read_block(index, blobs.get(self.6 + 1)?, self.4, pushed_at);
                match block {
                    Ok(rows) => rows,
                    // Nobody knows where one ends and the next begins.
                    Err(why) => (0..self.4).map(|_| Err(why)).collect(),
                }
            }
            _ => (0..self.4).map(|at| Row::read(blobs.get(self.6 + at)?)).collect(),
        };
        let names = self.names(blobs)?.into_iter();
        Ok(names.zip(rows).map(|((fence, seq), row)| (fence, seq, row)).collect())
    }

    fn view(
        &self,
        (holder, ttl): (&str, u64),
        blobs: &Blobs,
        all: &mut Views,
    ) -> Result<(), Malformed> {
        let timeout = self.2.0.map_or(0, |deadline| deadline.saturating_sub(self.0));
        let holds = |limits: &[(LimitName, u64, u64)]| {
            let limits =
                limits.iter().map(|(name, weight, cost)| (name.to_string(), *weight, *cost));
            Held(ttl, timeout, limits.collect(), Vec::new())
        };
        let (mut limits, mut held) = (Cow::Borrowed(&self.7), holds(&self.7));
        for (at, (fence, seq, row)) in self.each(blobs)?.into_iter().enumerate() {
            let shape = match &self.3 {
                Shapes::All(shape) => *shape,
                Shapes::Each(shapes) => {
                    let shape = *shapes.get(at).ok_or(Malformed("the shape of a lease"))?;
                    limits = Cow::Owned(blobs.shape(shape)?.limits_needed());
                    held = holds(&limits);
                    shape
                }
            };
            let lease = Named { fence, seq, holder, job: None, held: &held };
            let run = row.and_then(|row| first_run(blobs, shape, row, lease, self.0));
            let Ok((job, id)) = run else {
                all.unreadable.push(unreadable_job(blobs.lease_id(lease)?));
                continue;
            };
            all.leases.push(LeaseView {
                lease: Some(id),
                fence: Fence::new(fence),
                holder: holder.to_owned(),
                granted_at: Moment::from_us(self.0),
                expires_at: Moment::from_us(self.1),
                deadline: self.2.0.map(Moment::from_us),
                job: Some(job),
                resources: Vec::new(),
                limits: limits.iter().map(|(limit, ..)| limit.clone()).collect(),
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
    pub(crate) fn names(&self, blobs: &Blobs) -> Result<Vec<(u64, u64)>, Malformed> {
        let mut names: Vec<_> = self.leases.iter().filter_map(GrantReply::name).collect();
        for (_, run) in &self.runs {
            names.extend(run.names(blobs)?);
        }
        Ok(names)
    }

    /// The leases as their holder sees them, in the order in which they were granted. `ttl` is that of
    /// the call, in µs.
    pub(crate) fn views(self, blobs: &Blobs, ttl: u64) -> Result<Views, Malformed> {
        let holder = holder(self.holder);
        let mut runs = self.runs.into_iter().peekable();
        let mut all = Views::default();
        for (before, grant) in self.leases.into_iter().enumerate() {
            while let Some((_, run)) = runs.next_if(|(at, _)| *at <= before) {
                run.view((&holder, ttl), blobs, &mut all)?;
            }
            grant.view(holder.clone(), blobs, &mut all)?;
        }
        for (_, run) in runs {
            run.view((&holder, ttl), blobs, &mut all)?;
        }
        Ok(all)
    }
}

/// One grant: `[fence, seq, granted_at, expires_at, deadline, job, limits, resources, token, what the
/// lease holds]`. `token`: it was granted and given back in one step, there is no lease.
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
    Held,
);

/// `[pool, id, tags, data]`.
#[derive(Deserialize)]
struct GrantedResource(PoolName, ResourceId, Vec<Tag>, Maybe<usize>);

fn holder(holder: Maybe<String>) -> String {
    holder.0.unwrap_or_else(|| ANONYMOUS.to_owned())
}

impl GrantReply {
    fn view(self, holder: String, blobs: &Blobs, all: &mut Views) -> Result<(), Malformed> {
        let GrantReply(
            fence,
            seq,
            granted_at,
            expires_at,
            deadline,
            job,
            limits,
            resources,
            token,
            held,
        ) = self;
        let unnamed = Named { fence, seq, holder: &holder, job: None, held: &held };
        let Ok(job) = job.0.map(|job| job.granted(blobs)).transpose() else {
            all.unreadable.push(unreadable_job(blobs.lease_id(unnamed)?));
            return Ok(());
        };
        let of = job.as_ref().map(|job| job.id.as_str());
        let named = Named { fence, seq, holder: &holder, job: of, held: &held };
        let lease = (!token).then(|| blobs.lease_id(named)).transpose()?;
        let mut held = Vec::with_capacity(resources.len());
        for GrantedResource(pool, id, tags, data) in resources {
            let data = data.0.map(|number| blobs.json(number)).transpose();
            match (data, &lease) {
                (Ok(data), _) => {
                    let data = data.unwrap_or_default();
                    held.push(LeasedResource { pool, id, data, tags });
                }
                (Err(_), Some(lease)) => {
                    all.unreadable.push(unreadable_resource(lease.clone(), pool, id));
                    return Ok(());
                }
                (Err(why), None) => return Err(why),
            }
        }
        all.leases.push(LeaseView {
            lease,
            fence: Fence::new(fence),
            holder,
            granted_at: Moment::from_us(granted_at),
            expires_at: Moment::from_us(expires_at),
            deadline: moment(deadline),
            job,
            resources: held,
            limits,
        });
        Ok(())
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

impl ExtendedReply {
    /// Whether none was extended.
    pub(crate) fn is_all_lost(&self) -> bool {
        self.ok.is_empty()
    }

    /// The places of those that are lost, from 0 on.
    pub(crate) fn lost(&self) -> impl Iterator<Item = usize> {
        self.lost.iter().filter_map(|at| at.checked_sub(1))
    }

    /// What came of asking again for those at these places, from 0 on.
    pub(crate) fn claimed(&mut self, again: ExtendedReply, places: &[usize]) {
        let place = |at: usize| Some(places.get(at.checked_sub(1)?)? + 1);
        for (at, expires_at) in again.ok {
            let Some(at) = place(at) else { continue };
            self.lost.retain(|lost| *lost != at);
            self.ok.push((at, expires_at));
        }
        self.cancel.extend(again.cancel.into_iter().filter_map(place));
        self.ok.sort_unstable();
        self.cancel.sort_unstable();
    }
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
    /// There only if the settle moved the job's schedule; false if that has no moment any more.
    #[serde(default)]
    next_at: Option<Maybe<u64>>,
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

/// What settles were answered, and the lease call after them.
#[derive(Deserialize)]
pub(crate) struct SettledAndLeased {
    pub settled: SettleReply,
    pub leased: LeasedReply,
}

impl SettleReply {
    /// In the order of the call, where they were sent in another: the place of each there.
    pub(crate) fn in_order(self, order: Option<&[usize]>) -> Self {
        match (self, order) {
            (SettleReply::Each(each), Some(order)) if each.len() == order.len() => {
                let mut placed: Vec<_> = order.iter().copied().zip(each).collect();
                placed.sort_by_key(|(at, _)| *at);
                SettleReply::Each(placed.into_iter().map(|(_, one)| one).collect())
            }
            (reply, _) => reply,
        }
    }

    /// The places of those that are lost, from 0 on.
    pub(crate) fn lost(&self) -> impl Iterator<Item = usize> {
        let each = match self {
            SettleReply::All { .. } => &[][..],
            SettleReply::Each(each) => each,
        };
        let is_lost =
            |one: &SettledReply| !one.ok && one.code.0.as_deref() == Some(Code::LeaseLost.as_str());
        each.iter().enumerate().filter(move |(_, one)| is_lost(one)).map(|(at, _)| at)
    }
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
            let one = |item: SettleItem| SettledLease {
                lease: item.lease,
                ok: true,
                state: Some(JobState::Succeeded),
                run_at: None,
                code: None,
                next_at: None,
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
    let one = |(item, one): (SettleItem, SettledReply)| {
        Ok(SettledLease {
            lease: item.lease,
            ok: one.ok,
            state: one.state.0.map(|state| state.0),
            run_at: moment(one.run_at),
            code: if one.ok { None } else { one.code.0.map(read).transpose()? },
            next_at: one.next_at.map(moment),
            pushed: pushed_jobs(one.pushed, blobs, false)?,
        })
    };
    asked.settle.into_iter().zip(reply).map(one).collect()
}

/// A live lease in a list.
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
    held: Held,
}

impl LeasesReply {
    /// A live lease as lists show it.
    pub(crate) fn view(self, blobs: &Blobs) -> Result<LeaseSummary, Malformed> {
        let resource = |(pool, id)| HeldResource { pool, id };
        let holder = holder(self.holder);
        let lease = blobs.lease_id(Named {
            fence: self.fence,
            seq: self.seq.0.unwrap_or(0),
            holder: &holder,
            job: self.job.0.as_ref().map(JobId::as_str),
            held: &self.held,
        });
        Ok(LeaseSummary {
            lease: lease?,
            fence: Fence::new(self.fence),
            holder,
            granted_at: Moment::from_us(self.granted_at),
            expires_at: Moment::from_us(self.expires_at),
            deadline: moment(self.deadline),
            job: self.job.0,
            queue: self.queue.0,
            resources: self.resources.into_iter().map(resource).collect(),
            limits: self.limits,
            cancel_requested: self.cancel,
        })
    }
}
