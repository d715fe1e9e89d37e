//! Arguments of the calls about jobs.

use std::collections::HashSet;

use serde::ser::{Serialize, SerializeTuple, Serializer};
use tenure_core::flow::{Kinship, OnParentFailure};
use tenure_core::job::{NewJob, Retry, When};
use tenure_core::names::JobRef;
use tenure_core::requests::{
    CancelJob, DeleteJob, ExplainJob, GetJob, JobFilter, Patch, PatchJob, RetryJob, RunJobNow,
};
use tenure_core::time::Moment;

use super::body::body_of;
use super::flows::KinArg;
use super::items::{NeedArg, Patched, RetryArg, UniqueArg, moment, needs, span};
use super::{OneCall, Packed, pack};
use crate::bucket::bucket;

/// What many jobs of a call have in common.
#[derive(serde::Serialize)]
pub(crate) struct SpecArg<'a> {
    q: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    pr: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<NeedArg<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<u64>,
}

/// What is not usual in a job.
#[derive(serde::Serialize)]
struct MoreArg<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ex: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    u: Option<UniqueArg<'a>>,
    /// Its flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    f: Option<&'a str>,
    /// Any end of a parent will do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
}

/// A job as it is pushed: `[id, bucket, body, bytes, spec, more?]`.
pub(crate) struct NewJobArg<'a> {
    id: &'a str,
    bucket: String,
    body: String,
    bytes: usize,
    spec: usize,
    more: Option<MoreArg<'a>>,
}

impl Serialize for NewJobArg<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all = s.serialize_tuple(if self.more.is_some() { 6 } else { 5 })?;
        all.serialize_element(self.id)?;
        all.serialize_element(&self.bucket)?;
        all.serialize_element(&self.body)?;
        all.serialize_element(&self.bytes)?;
        all.serialize_element(&self.spec)?;
        if let Some(more) = &self.more {
            all.serialize_element(more)?;
        }
        all.end()
    }
}

fn is_zero(priority: &i8) -> bool {
    *priority == 0
}

/// When a job may run, as `at` or `dl`.
fn when(when: When) -> (Option<u64>, Option<u64>) {
    match when {
        When::Now => (None, None),
        When::At(at) => (Some(moment(at)), None),
        When::In(delay) => (None, Some(span(delay))),
    }
}

/// What a job's payload and labels count for in the byte budget.
pub(crate) fn content_bytes(payload: &str, labels: &tenure_core::job::Labels) -> usize {
    payload.len() + labels.iter().map(|(key, value)| key.len() + value.len() + 6).sum::<usize>()
}

/// What a row has beside what its job brings, about: for the byte budget.
pub(super) const ROW_BYTES: usize = 160;
/// So many specs are compared with a job's own; one that comes again further on is sent again, which is
/// only longer.
const SPECS_COMPARED: usize = 8;

/// Jobs of one call as they go out, and what they have in common.
#[derive(Default)]
pub(crate) struct Specs<'a> {
    first_of: Vec<&'a NewJob>,
}

impl<'a> Specs<'a> {
    /// Jobs as they are pushed; each has an id by now.
    pub(crate) fn jobs(&mut self, jobs: &'a [NewJob]) -> Vec<NewJobArg<'a>> {
        jobs.iter().map(|job| self.job(job)).collect()
    }

    fn job(&mut self, job: &'a NewJob) -> NewJobArg<'a> {
        // The ids are filled in before this.
        let id = job.id.as_ref().map_or("", |id| id.as_str());
        let (at, dl) = when(job.when);
        let u = job.unique.as_ref().map(|unique| UniqueArg { unique, began: None });
        let ex = job.expires_at.map(moment);
        let f = job.flow.as_ref().map(|flow| flow.as_str());
        let run = job.on_parent_failure == OnParentFailure::Run;
        let usual = at.is_none()
            && dl.is_none()
            && ex.is_none()
            && u.is_none()
            && f.is_none()
            && job.after.is_empty();
        NewJobArg {
            id,
            bucket: bucket(id).to_string(),
            body: body_of(&job.kind, &job.payload, &job.labels, job.traceparent.as_ref()),
            bytes: content_bytes(job.payload.text(), &job.labels) + ROW_BYTES,
            spec: self.number(job),
            more: (!usual).then_some(MoreArg { at, dl, ex, u, f, run }),
        }
    }

    /// The number of what this job has in common with others, from 1.
    fn number(&mut self, job: &'a NewJob) -> usize {
        let same = |other: &&NewJob| {
            other.queue == job.queue
                && other.priority == job.priority
                && other.group == job.group
                && other.needs == job.needs
                && other.retry == job.retry
                && other.timeout == job.timeout
                && other.retain == job.retain
        };
        let known = self.first_of.iter().enumerate().rev().take(SPECS_COMPARED);
        if let Some((at, _)) = known.into_iter().find(|(_, other)| same(other)) {
            return at + 1;
        }
        self.first_of.push(job);
        self.first_of.len()
    }

    /// The specs, in their order.
    pub(crate) fn args(&self) -> Vec<SpecArg<'a>> {
        let arg = |job: &&'a NewJob| SpecArg {
            q: job.queue.as_str(),
            pr: job.priority,
            g: job.group.as_ref().map(|group| group.as_str()),
            needs: job.needs.as_deref().map(needs),
            retry: job.retry.as_ref().map(RetryArg),
            timeout: job.timeout.map(span),
            retain: job.retain.map(span),
        };
        self.first_of.iter().map(arg).collect()
    }
}

/// Of `push`.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(crate) enum PushArgs<'a> {
    /// Jobs of one shape with nothing unusual, each with an id of its own; their texts go beside.
    Blocks {
        spec: SpecArg<'a>,
        blocks: Vec<Block<'a>>,
        dr: RetryArg<'a>,
        /// They are answered as they are stored.
        whole: bool,
        /// No job of it was ever sent before: all their ids were just made.
        fresh: bool,
    },
    /// Any jobs.
    Jobs {
        shapes: Vec<SpecArg<'a>>,
        jobs: Vec<NewJobArg<'a>>,
        dr: RetryArg<'a>,
        whole: bool,
        /// As in `Blocks`.
        fresh: bool,
        /// Who of them waits for whom.
        #[serde(skip_serializing_if = "Option::is_none")]
        kin: Option<KinArg<'a>>,
    },
}

impl<'a> PushArgs<'a> {
    /// And what goes beside them. `whole`: the jobs are answered as they are stored. `fresh`: all their ids
    /// were just made. `together`: as blocks, if they can be.
    pub(crate) fn of(
        jobs: &'a [NewJob],
        kinship: &'a Kinship,
        default: &'a Retry,
        whole: bool,
        fresh: bool,
        together: bool,
    ) -> (Self, Vec<Vec<u8>>) {
        let mut specs = Specs::default();
        let jobs = specs.jobs(jobs);
        let mut shapes = specs.args();
        let dr = RetryArg(default);
        match shapes.pop() {
            Some(spec)
                if together
                    && kinship.is_empty()
                    && shapes.is_empty()
                    && jobs.iter().all(|job| job.more.is_none())
                    && (fresh || are_distinct(&jobs)) =>
            {
                let (blocks, texts) = blocks(jobs);
                (PushArgs::Blocks { spec, blocks, dr, whole, fresh }, texts)
            }
            last => {
                shapes.extend(last);
                let kin = KinArg::of(kinship);
                (PushArgs::Jobs { shapes, jobs, dr, whole, fresh, kin }, Vec::new())
            }
        }
    }
}

impl PushArgs<'_> {
    /// How many jobs each text beside them has.
    pub(crate) fn rows_of_texts(&self) -> Vec<usize> {
        match self {
            PushArgs::Blocks { blocks, .. } => blocks.iter().map(|block| block.0.len()).collect(),
            PushArgs::Jobs { .. } => Vec::new(),
        }
    }
}

fn are_distinct(jobs: &[NewJobArg<'_>]) -> bool {
    let mut seen = HashSet::with_capacity(jobs.len());
    jobs.iter().all(|job| seen.insert(job.id))
}

/// So many rows, and bytes of texts with their index, are a block at most (`lua/machine/blocks.lua`).
const BLOCK_ROWS: usize = 256;
const BLOCK_BYTES: usize = 65_536;

/// Jobs that may lie together: their ids, and how many of them in a row lie in which part of the ids.
#[derive(Default, serde::Serialize)]
pub(crate) struct Block<'a>(Vec<&'a str>, Parts);

/// `[part, how many, …]`.
#[derive(Default)]
struct Parts(Vec<(String, usize)>);

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut seq = s.serialize_seq(Some(self.0.len() * 2))?;
        for (part, many) in &self.0 {
            seq.serialize_element(part)?;
            seq.serialize_element(many)?;
        }
        seq.end()
    }
}

/// The texts of a block, and their index: of each where it ends and the sum of the bytes up to it. Behind them the ids, each on
/// a line.
#[derive(Default)]
struct Texts {
    index: Vec<u8>,
    texts: Vec<u8>,
    ids: Vec<u8>,
    bytes: usize,
}

impl Texts {
    fn has_room_for(&self, text: usize) -> bool {
        let rows = self.index.len() / 8;
        rows == 0
            || rows < BLOCK_ROWS && self.index.len() + 8 + self.texts.len() + text <= BLOCK_BYTES
    }

    fn add(&mut self, id: &str, text: &str, bytes: usize) {
        // A call has less than 4 GiB; what is longer than a block never becomes one.
        let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
        self.texts.extend_from_slice(text.as_bytes());
        self.ids.extend_from_slice(id.as_bytes());
        self.ids.push(b'\n');
        self.bytes += bytes;
        self.index.extend(word(self.texts.len()).into_iter().chain(word(self.bytes)));
    }

    fn finish(mut self) -> Vec<u8> {
        self.index.append(&mut self.texts);
        self.index.append(&mut self.ids);
        self.index
    }
}

/// Jobs as blocks, each with its texts.
fn blocks(jobs: Vec<NewJobArg<'_>>) -> (Vec<Block<'_>>, Vec<Vec<u8>>) {
    let (mut all, mut texts) = (Vec::new(), Vec::new());
    let (mut block, mut its) = (Block::default(), Texts::default());
    for job in jobs {
        // The row of a job from its id on.
        let text = format!("{}\n{}\n\n{}", job.id, job.bucket, job.body);
        if !its.has_room_for(text.len()) {
            all.push(std::mem::take(&mut block));
            texts.push(std::mem::take(&mut its).finish());
        }
        its.add(job.id, &text, job.bytes);
        block.0.push(job.id);
        match block.1.0.last_mut() {
            Some((part, many)) if *part == job.bucket => *many += 1,
            _ => block.1.0.push((job.bucket, 1)),
        }
    }
    all.push(block);
    texts.push(its.finish());
    (all, texts)
}

/// Which job, and for a retry which end of it.
#[derive(serde::Serialize)]
pub(super) struct RefArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<u64>,
}

impl<'a> RefArgs<'a> {
    pub(super) fn of(job: &'a JobRef) -> Self {
        match job {
            JobRef::Id(id) => RefArgs {
                id: Some(id.as_str()),
                b: Some(bucket(id.as_str())),
                key: None,
                finished_at: None,
            },
            JobRef::Key(key) => {
                RefArgs { id: None, b: None, key: Some(key.as_str()), finished_at: None }
            }
        }
    }
}

/// Of `get_result` and `wait_result`: which job, and which row of it once that is known.
#[derive(serde::Serialize)]
pub(crate) struct ResultArgs<'a> {
    #[serde(flatten)]
    job: RefArgs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proc: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<u64>,
}

impl<'a> ResultArgs<'a> {
    /// Of a job as the caller names it.
    pub(crate) fn of(job: &'a JobRef) -> Self {
        ResultArgs { job: RefArgs::of(job), seq: None, proc: None, wait: None }
    }

    /// Of the job of a row.
    pub(crate) fn of_row(id: &'a str, b: u8, seq: u64) -> Self {
        let job = RefArgs { id: Some(id), b: Some(b), key: None, finished_at: None };
        ResultArgs { job, seq: Some(seq), proc: None, wait: None }
    }

    /// The same, for a call of a process that waits for so long (us).
    pub(crate) fn waiting(self, proc: &'a str, wait: u64) -> Self {
        ResultArgs { proc: Some(proc), wait: Some(wait), ..self }
    }
}

impl OneCall for GetJob {
    fn args(&self) -> Packed {
        pack(&RefArgs::of(&self.job))
    }
}

impl OneCall for DeleteJob {
    fn args(&self) -> Packed {
        pack(&RefArgs::of(&self.job))
    }
}

impl OneCall for CancelJob {
    fn args(&self) -> Packed {
        pack(&RefArgs::of(&self.job))
    }
}

impl OneCall for RunJobNow {
    fn args(&self) -> Packed {
        pack(&RefArgs::of(&self.job))
    }
}

impl OneCall for ExplainJob {
    fn args(&self) -> Packed {
        pack(&RefArgs::of(&self.job))
    }
}

impl OneCall for RetryJob {
    fn args(&self) -> Packed {
        pack(&RefArgs { finished_at: self.finished_at.map(moment), ..RefArgs::of(&self.job) })
    }
}

/// Of `patch`.
#[derive(serde::Serialize)]
pub(crate) struct PatchJobArgs<'a> {
    #[serde(flatten)]
    job: RefArgs<'a>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    pr: Patched<i8>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    g: Patched<&'a str>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    needs: Patched<Vec<NeedArg<'a>>>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    timeout: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    ex: Patched<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dl: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    now: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'a str>,
}

/// A body that takes the place of another: what it was, what it is, and what it counts for.
pub(crate) struct NewBody {
    pub was: String,
    pub body: String,
    pub bytes: usize,
}

impl<'a> PatchJobArgs<'a> {
    pub(crate) fn of(patch: &'a PatchJob, body: Option<&'a NewBody>) -> Self {
        let ((at, dl), now) = match patch.when {
            Patch::Keep => ((None, None), false),
            Patch::Reset | Patch::Set(When::Now) => ((None, None), true),
            Patch::Set(to) => (when(to), false),
        };
        PatchJobArgs {
            job: RefArgs::of(&patch.job),
            pr: Patched::of(&patch.priority, |priority| *priority),
            g: Patched::of(&patch.group, |group| group.as_str()),
            needs: Patched::of(&patch.needs, |all| needs(all)),
            timeout: Patched::of(&patch.timeout, |timeout| span(*timeout)),
            ex: Patched::of(&patch.expires_at, |at| moment(*at)),
            at,
            dl,
            now,
            body: body.map(|body| body.body.as_str()),
            n: body.map(|body| body.bytes),
            was: body.map(|body| body.was.as_str()),
        }
    }
}

/// Of `list_jobs`.
#[derive(serde::Serialize)]
pub(crate) struct ListJobsArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<&'static str>,
    /// Only jobs with a last error.
    pub failed: bool,
    #[serde(flatten)]
    pub ends: EndsArgs,
    #[serde(flatten)]
    pub origin: OriginArgs<'a>,
    /// Oldest first, which goes with a flow alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub oldest: bool,
    /// The row behind which it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    pub max: usize,
    pub scan: usize,
    /// Each is answered with what tells whether its content changes, and without what lies beside its row.
    pub seen: bool,
}

/// The flow and the schedule of the jobs that a filter asks for.
#[derive(serde::Serialize)]
pub(crate) struct OriginArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
}

impl<'a> OriginArgs<'a> {
    pub(crate) fn of(filter: &'a JobFilter) -> Self {
        let schedule = filter.schedule.as_ref().map(|schedule| schedule.as_str());
        OriginArgs { flow: filter.flow.as_ref().map(|flow| flow.as_str()), schedule }
    }
}

/// When jobs ended that a filter asks for.
#[derive(serde::Serialize)]
pub(crate) struct EndsArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_before: Option<u64>,
}

impl EndsArgs {
    pub(crate) fn new(from: Option<Moment>, before: Option<Moment>) -> Self {
        EndsArgs { ended_from: from.map(moment), ended_before: before.map(moment) }
    }
}

/// Of `cancel_jobs`, `retry_jobs` and `delete_jobs`.
#[derive(serde::Serialize)]
pub(crate) struct ManyArgs<'a> {
    pub seqs: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<&'a str>,
    pub states: &'a [&'static str],
    #[serde(flatten)]
    pub ends: &'a EndsArgs,
    #[serde(flatten)]
    pub origin: OriginArgs<'a>,
    /// A mark of each job's content as it was seen, where the filter asks for content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<&'a [String]>,
}

/// Arguments of `list_failures`; `after` is the cursor of the page before.
#[derive(serde::Serialize)]
pub(crate) struct ListFailuresArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<&'a str>,
    #[serde(flatten)]
    pub ends: EndsArgs,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<&'a str>,
    pub max: usize,
}
