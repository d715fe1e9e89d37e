//! Flows: jobs that wait for other jobs, and the name that joins jobs.
//!
//! The dependencies between the jobs of one call, and the order in which their states are decided, follow from the call
//! alone: [`Kinship`] computes them for every engine.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::bounds::AFTER_MAX;
use crate::job::{JobState, NewJob};
use crate::names::{FlowName, JobId, JobRef, Ref};
pub use crate::parents::{After, OnParentFailure, Parent, ShownParent, ShownParents};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::FlowRefusal;
use crate::time::Moment;
use crate::view;
use crate::words;

crate::schemas!(FlowState, ParentState);
crate::schemas!(ParentView = view::named("Parent"));

words! {
    /// State of a flow.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FlowState {
        /// A member is unfinished.
        Open = "open",
        /// No member is unfinished.
        Finished = "finished",
    }
}

view! {
    /// Members of a flow by state. A finished member still counts after its `retain` is over, but not after a call has
    /// deleted it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct FlowCounts {
        /// Jobs that have not ended, in any state.
        #[serde(default)]
        pub unfinished: u64,
        /// Jobs that succeeded; they count on when retain is over, and no longer once they are deleted.
        #[serde(default)]
        pub succeeded: u64,
        /// Jobs that failed for good.
        #[serde(default)]
        pub failed: u64,
        /// Jobs that were cancelled.
        #[serde(default)]
        pub cancelled: u64,
    }

    /// A flow as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct FlowView as "Flow" {
        /// The name of the flow.
        pub flow: FlowName,
        /// finished: none of its jobs is unfinished.
        pub state: FlowState,
        /// Its jobs are being cancelled, and what is pushed into it meanwhile is stored as cancelled.
        #[serde(default)]
        pub cancelling: bool,
        /// Its jobs by where they stand.
        pub counts: FlowCounts,
        /// When its first job came.
        pub created_at: Moment,
        /// When its last job ended; null while one is unfinished.
        pub finished_at: Option<Moment>,
    }
}

impl FlowCounts {
    /// The count of members that ended in this state.
    pub fn ended(&mut self, state: JobState) -> &mut u64 {
        match state {
            JobState::Succeeded => &mut self.succeeded,
            JobState::Failed => &mut self.failed,
            _ => &mut self.cancelled,
        }
    }

    /// True if the flow counts as a failed parent.
    pub fn has_failed(&self) -> bool {
        self.failed > 0 || self.cancelled > 0
    }
}

/// A parent of a job, as `GET /v1/jobs/{id}/parents` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum ParentView {
    /// All jobs of a flow.
    Flow {
        flow: FlowName,
        /// All zero for a flow that is gone.
        counts: FlowCounts,
    },
    /// One job, which may be gone.
    Job(ParentJob),
}

impl ParentView {
    /// A parent that does not exist any more.
    pub fn gone(id: JobId) -> Self {
        let state = ParentState::Gone(Gone::Gone);
        ParentView::Job(ParentJob { id, state, error: None, finished_at: None, result: None })
    }

    /// Bytes of its long parts: their sum bounds a page of parents.
    pub fn bytes(&self) -> usize {
        match self {
            ParentView::Flow { .. } => 0,
            ParentView::Job(job) => {
                let result = job.result.as_ref().map_or(0, |result| result.text().len());
                result + job.error.as_ref().map_or(0, String::len)
            }
        }
    }
}

/// By hand: for an untagged enum, serde's derived code buffers the whole value first, and the buffer does not keep the
/// text of a result.
impl<'de> Deserialize<'de> for ParentView {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Either {
            flow: Option<FlowName>,
            #[serde(default)]
            counts: FlowCounts,
            id: Option<JobId>,
            state: Option<ParentState>,
            error: Option<String>,
            finished_at: Option<Moment>,
            result: Option<Json>,
        }
        let Either { flow, counts, id, state, error, finished_at, result } =
            Either::deserialize(d)?;
        match (flow, id, state) {
            (Some(flow), ..) => Ok(ParentView::Flow { flow, counts }),
            (None, Some(id), Some(state)) => {
                Ok(ParentView::Job(ParentJob { id, state, error, finished_at, result }))
            }
            (None, ..) => Err(D::Error::custom("a parent is a job with a state, or a flow")),
        }
    }
}

view! {
    /// A job that is a parent.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ParentJob {
        /// The id of the parent.
        pub id: JobId,
        /// As of any job; gone: it is not there any more.
        pub state: ParentState,
        /// Why it failed or was cancelled.
        pub error: Option<String>,
        /// When it ended; null until then.
        pub finished_at: Option<Moment>,
        /// Its result; only with full=true.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub result: Option<Json>,
    }
}

/// State of a parent: that of a job, or gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParentState {
    /// The job exists, in this state.
    There(JobState),
    /// Its row is gone, or never existed.
    Gone(Gone),
}

/// The word for a parent that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gone {
    /// The only word, `"gone"`.
    Gone,
}

impl ParentState {
    /// The word of the contract, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            ParentState::There(state) => state.as_str(),
            ParentState::Gone(Gone::Gone) => "gone",
        }
    }
}

view! {
    /// A job that waits, or waited, for another one.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ChildView as "Child" {
        /// The id of the child.
        pub id: JobId,
        /// Where it stands.
        pub state: JobState,
        /// What becomes of it when this job fails or is cancelled.
        #[serde(default)]
        pub on_parent_failure: OnParentFailure,
    }
}

/// An entry of `after`, as far as the call alone resolves it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum KinRef {
    /// An item of the same call, by its index.
    Item(usize),
    /// A job that is no item of the call.
    Job(JobRef),
    Flow(FlowName),
}

/// The dependencies between the items of one call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kinship {
    /// For each item its parents without repeats, each with the index of the entry of `after` that named it first, and
    /// that entry's `gone_is_done`. Empty if no item has parents.
    pub parents: Vec<Vec<(KinRef, usize, bool)>>,
    /// The items in the order in which their states are decided: parents first; among items that can be decided next,
    /// those that wait for a flow come last.
    pub order: Vec<usize>,
}

impl Kinship {
    /// Resolves the parents of all items of a call.
    ///
    /// # Errors
    /// `invalid_field`, `unknown_parent`, `out_of_bounds` or `cycle`, with the item in `index`: nothing may be stored.
    pub fn of(jobs: &[NewJob]) -> Result<Kinship, Refusal> {
        if jobs.iter().all(|job| job.after.is_empty() && job.reference.is_none()) {
            return Ok(Kinship::default());
        }
        let entries: usize = jobs.iter().map(|job| job.after.len()).sum();
        if entries > AFTER_MAX {
            let index = jobs.iter().position(|job| !job.after.is_empty()).unwrap_or_default();
            let no =
                Refusal::from(FlowRefusal::TooManyParents { parents: entries, most: AFTER_MAX });
            return Err(no.at("/after").item(index));
        }
        let (refs, ids) = named(jobs)?;
        let mut parents = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            let mut seen = HashSet::new();
            let mut own = Vec::with_capacity(job.after.len());
            for (at, entry) in job.after.iter().enumerate() {
                let parent = match &entry.parent {
                    Parent::Item(name) => match refs.get(name) {
                        Some(item) => KinRef::Item(*item),
                        None => {
                            let no = Refusal::from(FlowRefusal::UnknownRef { name: name.clone() });
                            return Err(no.at(format!("/after/{at}")).item(index));
                        }
                    },
                    Parent::Job(JobRef::Id(id)) => match ids.get(id) {
                        Some(item) => KinRef::Item(*item),
                        None => KinRef::Job(JobRef::Id(id.clone())),
                    },
                    Parent::Job(key) => KinRef::Job(key.clone()),
                    Parent::Flow(flow) => KinRef::Flow(flow.clone()),
                };
                if seen.insert(parent.clone()) {
                    own.push((parent, at, entry.gone_is_done));
                }
            }
            parents.push(own);
        }
        let order = decided_in_order(jobs, &parents)?;
        Ok(Kinship { parents, order })
    }

    /// True if no item waits for anything.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }
}

type ItemsByName<'j> = (HashMap<&'j Ref, usize>, HashMap<&'j JobId, usize>);

/// The items by their `ref` and by their id. Of items with the same id, the first one counts.
fn named(jobs: &[NewJob]) -> Result<ItemsByName<'_>, Refusal> {
    let (mut refs, mut ids) = (HashMap::new(), HashMap::new());
    for (index, job) in jobs.iter().enumerate() {
        if let Some(name) = &job.reference
            && refs.insert(name, index).is_some()
        {
            let no = Refusal::from(FlowRefusal::RefTwice { name: name.clone() });
            return Err(no.at("/ref").item(index));
        }
        if let Some(id) = &job.id {
            ids.entry(id).or_insert(index);
        }
    }
    Ok((refs, ids))
}

/// Topological sort by Kahn ("Topological sorting of large networks", 1962), with two lines of items that can be
/// decided: items that wait for a flow come when nothing else can. A job that waits for one of them comes after it, and
/// belongs to no flow; so every member of a flow is decided before the first job that waits for that flow.
fn decided_in_order(
    jobs: &[NewJob],
    parents: &[Vec<(KinRef, usize, bool)>],
) -> Result<Vec<usize>, Refusal> {
    let mut members: HashMap<&FlowName, Vec<usize>> = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        if let Some(flow) = &job.flow {
            members.entry(flow).or_default().push(index);
        }
    }
    // A waiter for a flow waits for one point that all stated members of the flow lead to: so a thousand waiters for a
    // flow of a thousand are two thousand steps and not a million.
    let points: Vec<&FlowName> = members.keys().copied().collect();
    let point_of: HashMap<&FlowName, usize> =
        points.iter().enumerate().map(|(at, flow)| (*flow, jobs.len() + at)).collect();
    let mut next = vec![Vec::new(); jobs.len() + points.len()];
    let mut open = vec![0_usize; jobs.len() + points.len()];
    let mut awaits_flow = vec![false; jobs.len()];
    for (flow, items) in &members {
        let point = point_of[flow];
        for item in items {
            next[*item].push(point);
        }
        open[point] = items.len();
    }
    // Items with the same id or unique key become one job, the first of them: a job that waits for one of them may wait
    // for the first.
    let mut last = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let id = job.id.as_ref().map(|id| (Some(id), None));
        let key = job.unique.as_ref().map(|unique| (None, Some(&unique.key)));
        for name in id.into_iter().chain(key) {
            if let Some(before) = last.insert(name, index) {
                next[before].push(index);
                open[index] += 1;
            }
        }
    }
    for (index, own) in parents.iter().enumerate() {
        for (parent, ..) in own {
            let from = match parent {
                KinRef::Item(item) => Some(*item),
                KinRef::Flow(flow) => {
                    awaits_flow[index] = true;
                    point_of.get(flow).copied()
                }
                KinRef::Job(_) => None,
            };
            if let Some(from) = from {
                next[from].push(index);
                open[index] += 1;
            }
        }
    }
    let (mut first, mut last) = (BTreeSet::new(), BTreeSet::new());
    let line = |at: usize, first: &mut BTreeSet<usize>, last: &mut BTreeSet<usize>| {
        let waits = awaits_flow.get(at).copied().unwrap_or_default();
        if waits {
            last.insert(at)
        } else {
            first.insert(at)
        };
    };
    for at in (0..open.len()).filter(|at| open[*at] == 0) {
        line(at, &mut first, &mut last);
    }
    let mut order = Vec::with_capacity(jobs.len());
    while let Some(at) = first.pop_first().or_else(|| last.pop_first()) {
        if at < jobs.len() {
            order.push(at);
        }
        for to in std::mem::take(&mut next[at]) {
            open[to] -= 1;
            if open[to] == 0 {
                line(to, &mut first, &mut last);
            }
        }
    }
    if order.len() == jobs.len() {
        return Ok(order);
    }
    let index = (0..jobs.len()).find(|at| open[*at] > 0).unwrap_or_default();
    Err(Refusal::from(FlowRefusal::Cycle).at("/after").item(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{OnConflict, Unique, Until};
    use crate::names::{QueueName, UniqueKey};
    use crate::refusal::Code;

    /// `id|flow|ref: parents`, where a parent is `=ref`, `~flow` or an id.
    fn job(text: &str) -> NewJob {
        let (name, after) = text.split_once(':').unwrap_or((text, ""));
        let mut name = name.split('|');
        let mut job = NewJob::new(QueueName::parse("q").unwrap());
        let mut part = || name.next().filter(|part| !part.is_empty());
        job.id = part().map(|id| JobId::parse(id).unwrap());
        job.flow = part().map(|flow| FlowName::parse(flow).unwrap());
        job.reference = part().map(|name| Ref::parse(name).unwrap());
        job.after = after
            .split_whitespace()
            .map(|parent| {
                let parent = match (parent.strip_prefix('='), parent.strip_prefix('~')) {
                    (Some(name), _) => Parent::Item(Ref::parse(name).unwrap()),
                    (_, Some(flow)) => Parent::Flow(FlowName::parse(flow).unwrap()),
                    _ => Parent::Job(JobRef::parse(parent).unwrap()),
                };
                After { parent, gone_is_done: false }
            })
            .collect();
        job
    }

    fn order(jobs: &[&str]) -> Result<Vec<usize>, (Code, Option<usize>)> {
        let jobs: Vec<NewJob> = jobs.iter().map(|text| job(text)).collect();
        Kinship::of(&jobs).map(|kin| kin.order).map_err(|no| (no.code, no.index))
    }

    #[test]
    fn parents_are_decided_before_children_and_flow_waiters_last() {
        for (jobs, expected) in [
            (&["a: b", "b: c", "c"][..], &[2, 1, 0][..]),
            (&["||x", ": =x =x x", "a: key:a"], &[0, 1, 2]),
            (&["m: ~f", "a|f", "b|f: a"], &[1, 2, 0]),
            (&["m: ~f", "n: m", "a|g", "b|f"], &[2, 3, 0, 1]),
            (&["m: ~none", "a"], &[1, 0]),
        ] {
            assert_eq!(order(jobs).as_deref(), Ok(expected), "{jobs:?}");
        }
        assert!(Kinship::of(&[job("a|f"), job("b")]).unwrap().is_empty());
    }

    #[test]
    fn a_cycle_of_waiting_jobs_is_refused_under_any_names() {
        for (jobs, index) in [
            (&["a: a"][..], 0),
            (&["z", "a: b", "b: a"], 1),
            (&["||x: =y", "||y: =x"], 0),
            (&["m|f: ~f"], 0),
            (&["z", "m: ~f", "a|f: m"], 1),
            (&["m: ~f", "n: ~g", "a|g: m", "b|f: n"], 0),
        ] {
            assert_eq!(order(jobs), Err((Code::Cycle, Some(index))), "{jobs:?}");
        }
    }

    #[test]
    fn items_that_become_one_job_make_a_circle_together() {
        let holds = |text: &str| NewJob {
            unique: Some(Unique {
                key: UniqueKey::parse("k").unwrap(),
                until: Until::End,
                hold: None,
                on_conflict: OnConflict::Keep,
                within: None,
            }),
            ..job(text)
        };
        let [first, child, again] = [holds("a: b"), job("b: =x"), holds("||x")];
        let no = Kinship::of(&[first, child.clone(), again.clone()]).map_err(|no| no.code);
        assert_eq!(no, Err(Code::Cycle));
        let kin = Kinship::of(&[holds("a"), child, again]).unwrap();
        assert_eq!(kin.order, [0, 2, 1]);
        let same_id = [job("a: b"), job("b: =x"), job("a||x")];
        assert_eq!(Kinship::of(&same_id).map_err(|no| no.code), Err(Code::Cycle));
    }

    #[test]
    fn a_ref_names_one_item_of_the_call() {
        assert_eq!(order(&["||x", "a: =y"]), Err((Code::UnknownParent, Some(1))));
        assert_eq!(order(&["||x", "||x"]), Err((Code::InvalidField, Some(1))));
        let many: Vec<String> = (0..AFTER_MAX + 1).map(|at| format!("p{at}")).collect();
        let many = format!("a: {}", many.join(" "));
        assert_eq!(order(&["z", &many]), Err((Code::OutOfBounds, Some(1))));
    }

    #[test]
    fn an_id_names_its_first_item_and_a_repeated_parent_counts_once() {
        let jobs = [job("a"), job("a"), job("b||r"), job("c: b a =r b x x ~f ~f")];
        let kin = Kinship::of(&jobs).unwrap();
        let flow = KinRef::Flow(FlowName::parse("f").unwrap());
        let other = KinRef::Job(JobRef::parse("x").unwrap());
        let own: Vec<_> = kin.parents[3].iter().map(|(kin, at, _)| (kin.clone(), *at)).collect();
        assert_eq!(own, [(KinRef::Item(2), 0), (KinRef::Item(0), 1), (other, 4), (flow, 6)]);
    }

    #[test]
    fn a_parent_is_read_back_as_it_was_shown() {
        for text in [
            r#"{"id":"a","state":"gone","error":null,"finished_at":null}"#,
            r#"{"id":"a","state":"failed","error":"x","finished_at":null}"#,
            r#"{"id":"a","state":"succeeded","error":null,"finished_at":null,"result":{"n": 1.50}}"#,
            r#"{"flow":"f","counts":{"unfinished":1,"succeeded":0,"failed":0,"cancelled":0}}"#,
        ] {
            let view: ParentView = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&view).unwrap(), text);
        }
        for text in ["{}", r#"{"id":"a"}"#, r#"{"state":"gone"}"#] {
            assert!(serde_json::from_str::<ParentView>(text).is_err(), "{text}");
        }
    }
}
