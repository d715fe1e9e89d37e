//! Follow-ups: jobs that a settle pushes, stored before its lease ends, in the same step.
//!
//! One is stored after the end: a job with the id of the settled job, if that job goes with its end and only then frees
//! its id. It must never refuse after the first of them is stored.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::ops::after::Heir;
use crate::ops::push_plan::{Goes, JobsAndKinship, PushedOne};
use crate::rows::Archive;
use crate::state::{Seq, Space};
use tenure_core::flow::{KinRef, Kinship};
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, Fence};
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::time::{Moment, Span};

/// Follow-ups of one settle, by the time of their storage. Each knows its place in the item.
pub(crate) struct FollowUps {
    before: JobsAndKinship,
    after: JobsAndKinship,
    /// For each follow-up of the item, true if it is stored after the end.
    is_after: Vec<bool>,
}

impl FollowUps {
    pub(crate) fn of(jobs: Vec<NewJob>, kinship: &Kinship, goes: Option<&Goes>) -> Self {
        let is_after = stored_after(&jobs, kinship, goes);
        let (after, before): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|at| is_after[*at]);
        let of_before = part_of(kinship, &jobs, &before);
        let of_after = part_of(kinship, &jobs, &after);
        let (mut before, mut after) = (Vec::with_capacity(before.len()), Vec::new());
        for (job, is_after) in jobs.into_iter().zip(&is_after) {
            if *is_after { after.push(job) } else { before.push(job) }
        }
        FollowUps { before: (before, of_before), after: (after, of_after), is_after }
    }

    pub(crate) fn take_before(&mut self) -> JobsAndKinship {
        std::mem::take(&mut self.before)
    }

    pub(crate) fn take_after(&mut self) -> JobsAndKinship {
        std::mem::take(&mut self.after)
    }

    /// The results, in the order of the item.
    pub(crate) fn in_order(self, before: Vec<PushedOne>, after: Vec<PushedOne>) -> Vec<PushedOne> {
        let (mut before, mut after) = (before.into_iter(), after.into_iter());
        let one = |is_after| if is_after { after.next() } else { before.next() };
        self.is_after.into_iter().filter_map(one).collect()
    }
}

/// Marks the follow-ups to store after the end: the one with the id of the settled job, and those that wait for it.
fn stored_after(jobs: &[NewJob], kinship: &Kinship, goes: Option<&Goes>) -> Vec<bool> {
    let Some(goes) = goes else { return vec![false; jobs.len()] };
    let mut after: Vec<bool> = jobs.iter().map(|job| job.id.as_ref() == Some(&goes.id)).collect();
    loop {
        let waits = |(at, parents): (usize, &Vec<_>)| {
            let is_later = |(named, ..): &(KinRef, usize, bool)| match named {
                KinRef::Item(item) => after[*item],
                KinRef::Job(_) | KinRef::Flow(_) => false,
            };
            (!after[at] && parents.iter().any(is_later)).then_some(at)
        };
        match kinship.parents.iter().enumerate().find_map(waits) {
            Some(at) => after[at] = true,
            None => return after,
        }
    }
}

/// Some items of a call, at these places, as a call of their own. They name the other items by their ids, which may be
/// gone by then: the check came before the first was stored. The dependencies are not computed again, because items of
/// one id are one job in the whole call, and a part may have only one of them.
fn part_of(kinship: &Kinship, jobs: &[NewJob], places: &[usize]) -> Kinship {
    if kinship.is_empty() {
        return Kinship::default();
    }
    let is_whole = places.len() == jobs.len();
    let at_of: HashMap<usize, usize> =
        places.iter().enumerate().map(|(at, place)| (*place, at)).collect();
    let named = |(named, at, gone): &(KinRef, usize, bool)| {
        let named = match named {
            KinRef::Item(item) => match (at_of.get(item), &jobs[*item].id) {
                (None, Some(id)) => KinRef::Job(JobRef::Id(id.clone())),
                (there, _) => KinRef::Item(there.copied().unwrap_or(*item)),
            },
            other => other.clone(),
        };
        (named, *at, *gone || !is_whole)
    };
    let parents = |place: &usize| kinship.parents[*place].iter().map(named).collect();
    Kinship {
        parents: places.iter().map(parents).collect(),
        order: kinship.order.iter().filter_map(|place| at_of.get(place).copied()).collect(),
    }
}

/// The dependencies between these follow-ups, from the call alone.
pub(crate) fn kinship_of(jobs: &[NewJob]) -> Result<Kinship, Refusal> {
    Kinship::of(jobs).map_err(|no| {
        let at = no.index.map_or_else(|| "/push".to_owned(), |index| format!("/push/{index}"));
        no.below(&at)
    })
}

impl Space {
    /// The job of a lease, if such a settle finishes it without keeping it.
    pub(crate) fn goes_with_its_end(&self, fence: Fence, ending: &Ending) -> Option<Goes> {
        let job = &self.jobs[self.leases.get(fence)?.job?];
        let shape = self.jobs.shape(job.shape);
        let is_last = shape.retry.max_attempts > 0 && job.ended + 1 >= shape.retry.max_attempts;
        let is_finished = match ending {
            Ending::Succeeded { .. } => true,
            Ending::Failed { last, .. } => *last || is_last || job.cancel_requested,
            Ending::Snoozed { .. } => {
                let most = shape.retry.max_snoozes;
                job.cancel_requested || most.is_some_and(|most| job.snoozed >= most)
            }
            Ending::Released => job.cancel_requested,
        };
        let is_kept = shape.retain != Some(Span::ZERO);
        (is_finished && !is_kept).then(|| Goes { seq: job.seq, id: job.id.clone() })
    }

    /// The flow of a lease's job, which its follow-ups join.
    pub(crate) fn heir(&self, fence: Fence) -> Option<Heir> {
        let job = &self.jobs[self.leases.get(fence)?.job?];
        let flow = job.flow()?.clone();
        Some(Heir { flow, called_off: job.cancel_requested })
    }

    /// Checks follow-ups in the order of their storage; a refusal names the place in the item.
    pub(crate) fn check_follow_ups(
        &self,
        (jobs, kinship): (&[NewJob], &Kinship),
        goes: Option<&Goes>,
        heir: Option<&Heir>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        if jobs.is_empty() {
            return Ok(());
        }
        let is_after = stored_after(jobs, kinship, goes);
        let (after, before): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|at| is_after[*at]);
        let stored: Cow<'_, [NewJob]> = if after.is_empty() {
            jobs.into()
        } else {
            before.iter().chain(&after).map(|at| jobs[*at].clone()).collect()
        };
        let first_after = before.len();
        let order = [before, after].concat();
        let mut kinship = part_of(kinship, jobs, &order);
        // With equal unique keys, the first one to be stored is the job, and may be a later item.
        kinship.order.sort_by_key(|at| *at >= first_after);
        self.check_push((&stored, kinship), goes, heir, archive, now).map_err(|mut no| {
            no.index = no.index.and_then(|index| order.get(index).copied());
            let at = no.index.map_or_else(|| "/push".to_owned(), |index| format!("/push/{index}"));
            no.below(&at)
        })
    }

    /// A repeated settle pushes nothing again; it shows its jobs that are still kept, and those whose content they
    /// replaced.
    pub(crate) fn pushed_before(
        &self,
        jobs: &[NewJob],
        archive: &dyn Archive,
        now: Moment,
    ) -> Vec<PushedOne> {
        let one = |job: &NewJob| {
            let id = job.id.clone()?;
            let there = match self.jobs.by_id(id.as_str()) {
                Some(slot) => Some(self.jobs[slot].seq),
                None => self.ended(&id, archive).filter(|there| there.until > now).map(|it| it.seq),
            };
            let (seq, id, past): (Seq, _, _) = match there {
                Some(seq) => (seq, id, None),
                None => {
                    let past = self.replaced_before(job, now)?;
                    (past.seq, past.id.clone(), Some(past))
                }
            };
            let known = self.known_job(seq, &id, archive);
            let known = known.or_else(|| Some(Box::new(past?.view())));
            Some(PushedOne { seq, id, duplicate: true, replaced: false, unasked: false, known })
        };
        jobs.iter().filter_map(one).collect()
    }
}
