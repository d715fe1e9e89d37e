//! Fates of pushed jobs with dependencies or a flow: decided before any change, parents first, so that no job of a call
//! is decided before the jobs it waits for.

use hashbrown::HashMap;

use crate::jobs::dependencies::ParentNow;
use crate::ops::push_plan::PushPlan;
use crate::rows::Archive;
use crate::state::{Kin, Parent, ParentKey, Seq, Space};
use tenure_core::flow::{KinRef, Kinship, OnParentFailure};
use tenure_core::job::{JobState, NewJob};
use tenure_core::names::{FlowName, JobId, JobRef};
use tenure_core::refusal::Refusal;
use tenure_core::sentences::{FlowRefusal, StoredNote};
use tenure_core::time::Moment;

/// The fate of a new job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    pub kin: Option<Box<Kin>>,
    pub way: Way,
}

/// The first place of a new job.
#[derive(Clone, Debug, Default)]
pub(crate) enum Way {
    /// As usual: it is ready or scheduled.
    #[default]
    Free,
    /// It waits for these parents.
    Waits(Vec<ParentKey>),
    /// It is cancelled at its push, with this error.
    Cancelled(Option<StoredNote>),
}

impl Fate {
    pub fn is_cancelled(&self) -> bool {
        matches!(self.way, Way::Cancelled(_))
    }

    pub fn flow(&self) -> Option<&FlowName> {
        self.kin.as_ref()?.flow.as_ref()
    }
}

/// The flow of a settled job, which its follow-ups join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heir {
    pub flow: FlowName,
    /// The job was asked to stop, so its pushes into its flow are cancelled.
    pub called_off: bool,
}

/// New members of a flow in one call.
#[derive(Clone, Copy, Default)]
struct NewMembers {
    open: u64,
    cancelled: u64,
}

/// The decision state of a call.
struct Deciding<'a> {
    space: &'a Space,
    jobs: &'a [NewJob],
    plans: &'a [PushPlan],
    /// The job of each item.
    items: Vec<(Seq, JobId)>,
    kinship: Kinship,
    fates: Vec<Fate>,
    members: HashMap<FlowName, NewMembers>,
    heir: Option<&'a Heir>,
    archive: &'a dyn Archive,
    now: Moment,
}

impl Space {
    /// The fates of the new items of a push; the other items are `Free`.
    pub(crate) fn fates(
        &self,
        (jobs, kinship): (&[NewJob], Kinship),
        plans: &[PushPlan],
        heir: Option<&Heir>,
        next_seq: Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<Fate>, Refusal> {
        let mut deciding = Deciding {
            space: self,
            jobs,
            plans,
            items: self.items_of(jobs, plans, next_seq, archive),
            kinship,
            fates: vec![Fate::default(); jobs.len()],
            members: HashMap::new(),
            heir,
            archive,
            now,
        };
        let order = if deciding.kinship.is_empty() {
            (0..jobs.len()).collect()
        } else {
            std::mem::take(&mut deciding.kinship.order)
        };
        for index in order.into_iter().filter(|index| matches!(plans[*index], PushPlan::Store(_))) {
            deciding.decide(index).map_err(|no| no.item(index))?;
        }
        Ok(deciding.fates)
    }

    fn items_of(
        &self,
        jobs: &[NewJob],
        plans: &[PushPlan],
        mut next_seq: Seq,
        archive: &dyn Archive,
    ) -> Vec<(Seq, JobId)> {
        let mut items: Vec<(Seq, JobId)> = Vec::with_capacity(jobs.len());
        for (job, plan) in jobs.iter().zip(plans) {
            let item = match plan {
                PushPlan::Store(_) => {
                    let seq = next_seq;
                    next_seq = seq.next();
                    job.id.clone().map(|id| (seq, id))
                }
                PushPlan::Duplicate(seq, id) => Some((*seq, id.clone())),
                PushPlan::Earlier(index) | PushPlan::Again(index) => items.get(*index).cloned(),
                PushPlan::Replace(slot) => {
                    Some((self.jobs[*slot].seq, self.jobs[*slot].id.clone()))
                }
                PushPlan::Revive(seq) => {
                    self.ended_or_kept(*seq, archive).map(|there| (there.seq, there.id))
                }
            };
            let Some(item) = item else { panic!("the engine gives every job an id") };
            items.push(item);
        }
        items
    }
}

impl Deciding<'_> {
    fn decide(&mut self, index: usize) -> Result<(), Refusal> {
        let job = &self.jobs[index];
        let mut kin = Kin { on_failure: job.on_parent_failure, ..Kin::none() };
        let mut parents: Vec<Parent> = Vec::new();
        let mut open = Vec::new();
        let (mut failed, mut inherited) = (false, None);
        let named = self.kinship.parents.get(index).cloned().unwrap_or_default();
        let mut seen = hashbrown::HashSet::new();
        for (named, at, gone_is_done) in named {
            let here = |no: FlowRefusal| Refusal::from(no).at(format!("/after/{at}"));
            let (parent, stands) = match self.look(&named) {
                Some(found) => found,
                None if gone_is_done => match gone(&named) {
                    Some(parent) => (parent, ParentNow::Gone),
                    None => continue,
                },
                None => return Err(here(self.unknown(&named))),
            };
            if !seen.insert(parent.clone()) {
                continue;
            }
            if inherited.is_none() {
                inherited = self.flow_of(&named, &parent);
            }
            match stands {
                ParentNow::Open { above } => {
                    kin.above |= above;
                    open.extend(parent.key());
                }
                ParentNow::Failed(_) | ParentNow::FlowFailed => failed = true,
                ParentNow::Done | ParentNow::Gone => {}
            }
            kin.above |= matches!(parent, Parent::Flow(_));
            parents.push(parent);
        }
        kin.flow = match (kin.above, &job.flow) {
            (true, Some(flow)) => {
                return Err(
                    Refusal::from(FlowRefusal::AboveFlow { flow: flow.clone() }).at("/flow")
                );
            }
            (true, None) => None,
            (false, Some(flow)) => Some(flow.clone()),
            (false, None) => inherited.or_else(|| self.heir.map(|heir| heir.flow.clone())),
        };
        if parents.is_empty() {
            // Without parents the setting means nothing; like a job without a flow, it keeps none.
            kin.on_failure = OnParentFailure::default();
        }
        kin.parents = parents.into();
        let way = if failed && kin.on_failure == OnParentFailure::Cancel {
            Way::Cancelled(Some(StoredNote::ParentFailed))
        } else if kin.flow.as_ref().is_some_and(|flow| self.is_called_off(flow)) {
            Way::Cancelled(None)
        } else if open.is_empty() {
            Way::Free
        } else {
            Way::Waits(open)
        };
        let has_kin = kin.flow.is_some() || !kin.parents.is_empty();
        let fate = Fate { kin: has_kin.then(|| Box::new(kin)), way };
        if let Some(flow) = fate.flow() {
            let members = self.members.entry(flow.clone()).or_default();
            if fate.is_cancelled() {
                members.cancelled += 1;
            } else {
                members.open += 1;
            }
        }
        self.fates[index] = fate;
        Ok(())
    }

    /// The new item behind an item, if there is one.
    fn new_item(&self, item: usize) -> Option<usize> {
        match self.plans[item] {
            PushPlan::Store(_) => Some(item),
            PushPlan::Earlier(index) | PushPlan::Again(index) => self.new_item(index),
            _ => None,
        }
    }

    /// The parent that an entry names, and its state; `None` if it does not exist.
    fn look(&self, named: &KinRef) -> Option<(Parent, ParentNow)> {
        let (seq, id) = match named {
            KinRef::Item(item) => {
                let (seq, id) = self.items[*item].clone();
                if let Some(new) = self.new_item(*item) {
                    let fate = &self.fates[new];
                    let above = fate.kin.as_ref().is_some_and(|kin| kin.above);
                    let stands = if fate.is_cancelled() {
                        ParentNow::Failed(JobState::Cancelled)
                    } else {
                        ParentNow::Open { above }
                    };
                    return Some((Parent::Job(seq, id), stands));
                }
                if matches!(self.plans[*item], PushPlan::Revive(_)) {
                    return Some((Parent::Job(seq, id), ParentNow::Open { above: false }));
                }
                (seq, id)
            }
            KinRef::Job(JobRef::Id(id)) => match self.space.jobs.by_id(id.as_str()) {
                Some(slot) => (self.space.jobs[slot].seq, id.clone()),
                None => (self.space.ended(id, self.archive)?.seq, id.clone()),
            },
            KinRef::Job(JobRef::Key(key)) => {
                let holder = self.space.jobs.keys.get(key)?;
                let holds = holder.by_job || holder.until.is_some_and(|at| at > self.now);
                holds.then(|| (holder.seq, holder.id.clone()))?
            }
            KinRef::Flow(flow) => return self.look_at_flow(flow),
        };
        let parent = Parent::Job(seq, id);
        match self.space.parent_now(&parent, self.archive, self.now) {
            ParentNow::Gone => None,
            stands => Some((parent, stands)),
        }
    }

    fn look_at_flow(&self, flow: &FlowName) -> Option<(Parent, ParentNow)> {
        let parent = Parent::Flow(flow.clone());
        let there = self.space.parent_now(&parent, self.archive, self.now);
        let stands = match (self.members.get(flow), there) {
            (None, ParentNow::Gone) => return None,
            (Some(new), _) if new.open > 0 => ParentNow::Open { above: false },
            (Some(new), ParentNow::Gone | ParentNow::Done) if new.cancelled > 0 => {
                ParentNow::FlowFailed
            }
            (_, ParentNow::Gone) => ParentNow::Done,
            (_, there) => there,
        };
        Some((parent, stands))
    }

    /// The flow of a parent, which its child inherits.
    fn flow_of(&self, named: &KinRef, parent: &Parent) -> Option<FlowName> {
        if let KinRef::Item(item) = named
            && let Some(new) = self.new_item(*item)
        {
            return self.fates[new].flow().cloned();
        }
        let Parent::Job(seq, _) = parent else { return None };
        match self.space.jobs.by_seq(*seq) {
            Some(slot) => self.space.jobs[slot].flow().cloned(),
            None => Space::kin_in(&self.space.ended_or_kept(*seq, self.archive)?.life)?.flow,
        }
    }

    /// A duplicate item may refer to a job that is gone but still holds its unique key for a time.
    fn unknown(&self, named: &KinRef) -> FlowRefusal {
        match named {
            KinRef::Flow(flow) => FlowRefusal::UnknownFlow { flow: flow.clone() },
            KinRef::Job(job) => FlowRefusal::UnknownParent { job: job.to_string() },
            KinRef::Item(item) => {
                FlowRefusal::UnknownParent { job: self.items[*item].1.to_string() }
            }
        }
    }

    /// True if a flow is being cancelled, so that pushes into it are cancelled too.
    fn is_called_off(&self, flow: &FlowName) -> bool {
        self.space.flows.named().get(flow).is_some_and(|flow| flow.cancelling.is_some())
            || self.heir.is_some_and(|heir| heir.called_off && heir.flow == *flow)
    }
}

/// The record of a parent that did not exist; a free key leaves no record.
fn gone(named: &KinRef) -> Option<Parent> {
    match named {
        KinRef::Flow(flow) => Some(Parent::Flow(flow.clone())),
        KinRef::Job(JobRef::Id(id)) => Some(Parent::Gone(id.clone())),
        KinRef::Job(JobRef::Key(_)) | KinRef::Item(_) => None,
    }
}
