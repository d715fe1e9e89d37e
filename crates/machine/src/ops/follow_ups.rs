//! The jobs that a settle pushes: stored before its lease is ended, in the same step.
//!
//! Except one under the id of the very job that is settled, where that job goes with its end: its id
//! is free only then. It must never refuse after the first of them is stored.

use std::borrow::Cow;

use crate::ops::after::Heir;
use crate::ops::push::{Goes, PushedOne};
use crate::rows::Archive;
use crate::state::{Seq, Space};
use tenure_core::flow::Parent;
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, Fence};
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::time::{Moment, Span};

/// Follow-ups of one settle, by when they are stored. Each knows its place in the item.
pub(crate) struct FollowUps {
    before: Vec<NewJob>,
    after: Vec<NewJob>,
    /// For each of the item, whether it is stored after the end.
    is_after: Vec<bool>,
}

impl FollowUps {
    pub(crate) fn of(mut jobs: Vec<NewJob>, goes: Option<&Goes>) -> Self {
        let is_after = stored_after(&jobs, goes);
        if is_after.contains(&true) {
            name_by_ids(&mut jobs);
        }
        let (mut before, mut after) = (Vec::with_capacity(jobs.len()), Vec::new());
        for (job, is_after) in jobs.into_iter().zip(&is_after) {
            if *is_after { after.push(job) } else { before.push(job) }
        }
        FollowUps { before, after, is_after }
    }

    pub(crate) fn take_before(&mut self) -> Vec<NewJob> {
        std::mem::take(&mut self.before)
    }

    pub(crate) fn take_after(&mut self) -> Vec<NewJob> {
        std::mem::take(&mut self.after)
    }

    /// What became of them, in the order of the item.
    pub(crate) fn in_order(self, before: Vec<PushedOne>, after: Vec<PushedOne>) -> Vec<PushedOne> {
        let (mut before, mut after) = (before.into_iter(), after.into_iter());
        let one = |is_after| if is_after { after.next() } else { before.next() };
        self.is_after.into_iter().filter_map(one).collect()
    }
}

/// Which follow-ups are stored after the end: the one that takes the id of the settled job, and those that wait for it.
fn stored_after(jobs: &[NewJob], goes: Option<&Goes>) -> Vec<bool> {
    let Some(goes) = goes else { return vec![false; jobs.len()] };
    let mut after: Vec<bool> = jobs.iter().map(|job| job.id.as_ref() == Some(&goes.id)).collect();
    let names = |job: &NewJob, other: &NewJob| {
        job.after.iter().any(|entry| match &entry.parent {
            Parent::Job(JobRef::Id(id)) => other.id.as_ref() == Some(id),
            Parent::Item(name) => other.reference.as_ref() == Some(name),
            Parent::Job(JobRef::Key(_)) | Parent::Flow(_) => false,
        })
    };
    loop {
        let waits = |job| jobs.iter().zip(&after).any(|(other, after)| *after && names(job, other));
        match (0..jobs.len()).find(|at| !after[*at] && waits(&jobs[*at])) {
            Some(at) => after[at] = true,
            None => return after,
        }
    }
}

/// Those that are stored before the end and those that are stored after it are two pushes, which cannot know each other
/// by their refs. What one of them names may be gone by its turn: it was checked before the first of them was stored.
fn name_by_ids(jobs: &mut [NewJob]) {
    let named = jobs.iter().filter_map(|job| Some((job.reference.clone()?, job.id.clone()?)));
    let ids: std::collections::HashMap<_, _> = named.collect();
    for job in jobs {
        job.reference = None;
        for entry in &mut job.after {
            if let Parent::Item(name) = &entry.parent
                && let Some(id) = ids.get(name)
            {
                entry.parent = Parent::Job(JobRef::Id(id.clone()));
            }
            entry.gone_is_done = true;
        }
    }
}

impl Space {
    /// The job of a lease, if such a settle finishes it and nothing of it is kept.
    pub(crate) fn goes_with_its_end(&self, fence: Fence, ending: &Ending) -> Option<Goes> {
        let job = &self.jobs[self.leases.get(&fence)?.job?];
        let shape = &self.shapes[job.shape];
        let is_last = shape.retry.max_attempts > 0 && job.ended + 1 >= shape.retry.max_attempts;
        let is_finished = match ending {
            Ending::Succeeded { .. } => true,
            Ending::Failed { last, .. } => *last || is_last || job.cancel_requested,
            Ending::Snoozed { .. } | Ending::Released => job.cancel_requested,
        };
        let is_kept = shape.retain != Some(Span::ZERO);
        (is_finished && !is_kept).then(|| Goes { seq: job.seq, id: job.id.clone() })
    }

    /// The flow of the job of a lease, to which its follow-ups belong.
    pub(crate) fn heir(&self, fence: Fence) -> Option<Heir> {
        let job = &self.jobs[self.leases.get(&fence)?.job?];
        let flow = job.flow()?.clone();
        Some(Heir { flow, called_off: job.cancel_requested })
    }

    /// Checks follow-ups in the order in which they are stored; a refusal names the place in the item.
    pub(crate) fn check_follow_ups(
        &self,
        jobs: &[NewJob],
        goes: Option<&Goes>,
        heir: Option<&Heir>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        if jobs.is_empty() {
            return Ok(());
        }
        let is_after = stored_after(jobs, goes);
        let (after, before): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|at| is_after[*at]);
        let stored: Cow<'_, [NewJob]> = match after.is_empty() {
            true => jobs.into(),
            false => before.iter().chain(&after).map(|at| jobs[*at].clone()).collect(),
        };
        let order = [before, after].concat();
        self.check_push(&stored, goes, heir, archive, now).map_err(|mut no| {
            no.index = no.index.and_then(|index| order.get(index).copied());
            let at = no.index.map_or_else(|| "/push".to_owned(), |index| format!("/push/{index}"));
            no.below(&at)
        })
    }

    /// A repeated settle pushes nothing again; it shows what its jobs are, where they are kept.
    pub(crate) fn pushed_before(
        &self,
        jobs: &[NewJob],
        archive: &dyn Archive,
        now: Moment,
    ) -> Vec<PushedOne> {
        let one = |job: &NewJob| {
            let id = job.id.clone()?;
            let seq: Seq = match self.job_by_id(id.as_str()) {
                Some(slot) => self.jobs[slot].seq,
                None => self.ended(&id, archive).filter(|there| there.until > now)?.seq,
            };
            let known = self.known_job(seq, &id, archive);
            Some(PushedOne { seq, id, duplicate: true, replaced: false, unasked: false, known })
        };
        jobs.iter().filter_map(one).collect()
    }
}
