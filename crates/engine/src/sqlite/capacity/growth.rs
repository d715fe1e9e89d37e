//! The growth of the store by each operation.
//!
//! No arm covers several unnamed operations: a new one does not compile until somebody has thought about its rows. It
//! never looks at the store.

use tenure_core::bounds::PAYLOAD_BYTES_MAX;
use tenure_core::job::{Labels, NewJob};
use tenure_core::names::{LimitName, PoolName, QueueName, ScheduleId};
use tenure_core::requests::{Patch, PatchJob, PatchResource, Request};
use tenure_core::schedule::{ScheduleSettings, ScheduledJob};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;

use crate::sqlite::pages::PAGE_BYTES;

/// Bytes of a row beside its texts: its indexes, and partly filled pages. A job has two rows.
pub(crate) const ROW_BYTES: u64 = 1 << 10;
/// Bytes of a need, or of a parent, within its job.
const PART_BYTES: u64 = 128;
/// A page is written twice: to the log, and from there to the store.
pub(crate) const WRITTEN_TIMES: u64 = 2;
/// Bytes that a call writes beside its rows: the page with its events, and that of their stream.
const EVENT_PAGES_BYTES: u64 = 2 * PAGE_BYTES;

/// The growth of the store by an operation, in bytes of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth<'r> {
    /// It reads, ends or frees something, or changes a few bytes. It always goes on.
    Nothing,
    /// It makes something small that ends by itself. A folder always takes it; a journal, in which each change is an
    /// entry until the next snapshot, takes it while there is room.
    Begins,
    /// It adds this many bytes.
    Adds(u64),
    /// It writes this many bytes over older ones, if there are any. Only the difference counts.
    Replaces(u64, Replaced<'r>),
}

/// The rows that an operation overwrites.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replaced<'r> {
    /// These fields of a job.
    Job(&'r PatchJob),
    /// The data of a resource.
    Data(&'r PatchResource),
    /// These resources of a pool.
    Resources(&'r PoolName, &'r [NewResource]),
    /// The job of a schedule.
    Schedule(&'r ScheduleId),
    /// The jobs of these schedules.
    Schedules(&'r [(ScheduleId, ScheduleSettings)]),
    /// The settings or the pause of a queue.
    Queue(&'r QueueName),
    /// The settings, the pause or the observation of a limit.
    Limit(&'r LimitName),
    /// The settings of a pool.
    Pool(&'r PoolName),
}

impl Growth<'_> {
    /// The growth that is left when this many bytes are replaced.
    pub(crate) fn beyond(self, replaced_bytes: u64) -> Self {
        match self {
            Growth::Replaces(bytes, _) if bytes <= replaced_bytes => Growth::Nothing,
            Growth::Replaces(bytes, _) => Growth::Adds(bytes - replaced_bytes),
            Growth::Nothing | Growth::Begins | Growth::Adds(_) => self,
        }
    }

    /// The growth where contents are sealed, which makes them a third longer.
    pub(crate) fn sealed(self) -> Self {
        let sealed = |bytes: u64| bytes + bytes / 3;
        match self {
            Growth::Adds(bytes) => Growth::Adds(sealed(bytes)),
            Growth::Replaces(bytes, replaced) => Growth::Replaces(sealed(bytes), replaced),
            Growth::Nothing | Growth::Begins => self,
        }
    }

    /// The most bytes that may be written for it.
    pub(crate) fn written_bytes(self) -> u64 {
        match self {
            Growth::Nothing | Growth::Begins | Growth::Adds(0) | Growth::Replaces(0, _) => 0,
            Growth::Adds(bytes) | Growth::Replaces(bytes, _) => {
                bytes * WRITTEN_TIMES + EVENT_PAGES_BYTES
            }
        }
    }
}

/// The growth by one request.
pub(crate) fn growth(request: &Request) -> Growth<'_> {
    match request {
        Request::Push(push) => Growth::Adds(push.jobs.iter().map(of_job).sum()),
        // Follow-up jobs are stored with the settle or not at all. A settle without them always goes on.
        Request::Settle(settle) => {
            let pushed = settle.settle.iter().flat_map(|item| item.push.iter());
            Growth::Adds(pushed.map(of_job).sum())
        }
        Request::PatchJob(patch) => {
            let texts = set(&patch.payload, text) + set(&patch.labels, of_labels);
            let bytes = texts + set(&patch.needs, |needs| parts(needs.len()));
            Growth::Replaces(bytes, Replaced::Job(patch))
        }
        Request::AddResources(add) => of_resources(&add.pool, &add.resources),
        Request::SyncResources(sync) => of_resources(&sync.pool, &sync.resources),
        Request::PatchResource(patch) => {
            Growth::Replaces(set(&patch.data, text), Replaced::Data(patch))
        }
        Request::PutSchedule(put) => {
            Growth::Replaces(of_scheduled(&put.settings.job), Replaced::Schedule(&put.schedule))
        }
        Request::PatchSchedule(patch) => {
            let bytes = set(&patch.job, |job| of_scheduled(job));
            Growth::Replaces(bytes, Replaced::Schedule(&patch.schedule))
        }
        Request::SyncSchedules(sync) => {
            let bytes = sync.schedules.iter().map(|(_, settings)| of_scheduled(&settings.job));
            Growth::Replaces(bytes.sum(), Replaced::Schedules(&sync.schedules))
        }
        // The payload is that of the schedule, which only the machine knows.
        Request::RunScheduleNow(_) => Growth::Adds(PAYLOAD_BYTES_MAX as u64 + ROW_BYTES),
        // Each may use a new name, and names are not bounded.
        Request::PutQueue(put) => Growth::Replaces(ROW_BYTES, Replaced::Queue(&put.queue)),
        Request::PauseQueue(pause) => Growth::Replaces(ROW_BYTES, Replaced::Queue(&pause.queue)),
        Request::PutLimit(put) => Growth::Replaces(ROW_BYTES, Replaced::Limit(&put.limit)),
        Request::PauseLimit(pause) => Growth::Replaces(ROW_BYTES, Replaced::Limit(&pause.limit)),
        Request::ObserveLimit(seen) => Growth::Replaces(ROW_BYTES, Replaced::Limit(&seen.limit)),
        Request::PutPool(put) => Growth::Replaces(ROW_BYTES, Replaced::Pool(&put.pool)),
        Request::Lease(_) => Growth::Begins,
        // Change a few bytes of existing rows.
        Request::PatchQueue(_)
        | Request::PatchLimit(_)
        | Request::PatchPool(_)
        | Request::ResumeQueue(_)
        | Request::ResumeLimit(_)
        | Request::PauseSchedule(_)
        | Request::ResumeSchedule(_)
        | Request::CoolResource(_)
        | Request::BanResource(_)
        | Request::RestoreResource(_)
        | Request::RetryJob(_)
        | Request::RetryJobs(_)
        | Request::RunJobNow(_)
        | Request::Extend(_) => Growth::Nothing,
        // End or free something.
        Request::DeleteJob(_)
        | Request::DeleteJobs(_)
        | Request::CancelJob(_)
        | Request::CancelJobs(_)
        | Request::CancelFlow(_)
        | Request::ForceLease(_)
        | Request::DeleteQueue(_)
        | Request::DeleteLimit(_)
        | Request::DeletePool(_)
        | Request::DeleteResource(_)
        | Request::DeleteSchedule(_) => Growth::Nothing,
        // Only read.
        Request::GetJob(_)
        | Request::ListJobs(_)
        | Request::GetResult(_)
        | Request::ListParents(_)
        | Request::ListChildren(_)
        | Request::ExplainJob(_)
        | Request::ListLeases(_)
        | Request::ListQueues(_)
        | Request::GetQueue(_)
        | Request::ListLimits(_)
        | Request::GetLimit(_)
        | Request::ListPools(_)
        | Request::GetPool(_)
        | Request::ListResources(_)
        | Request::GetResource(_)
        | Request::ListFlows(_)
        | Request::GetFlow(_)
        | Request::ListFailures(_)
        | Request::ListSchedules(_)
        | Request::GetSchedule(_)
        | Request::ListWorkers(_)
        | Request::GetStats(_)
        | Request::ReadEvents(_)
        | Request::Audit(_) => Growth::Nothing,
    }
}

/// The bytes of a new value; 0 for a value that is kept or removed.
fn set<T>(patch: &Patch<T>, bytes: impl FnOnce(&T) -> u64) -> u64 {
    match patch {
        Patch::Set(value) => bytes(value),
        Patch::Keep | Patch::Reset => 0,
    }
}

pub(crate) fn text(json: &Json) -> u64 {
    json.text().len() as u64
}

fn of_resources<'r>(pool: &'r PoolName, resources: &'r [NewResource]) -> Growth<'r> {
    let bytes = resources.iter().map(|one| of_resource(&one.data)).sum();
    Growth::Replaces(bytes, Replaced::Resources(pool, resources))
}

pub(crate) fn of_resource(data: &Json) -> u64 {
    text(data) + ROW_BYTES
}

pub(crate) fn of_labels(labels: &Labels) -> u64 {
    labels.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
}

pub(crate) fn parts(count: usize) -> u64 {
    count as u64 * PART_BYTES
}

fn of_job(job: &NewJob) -> u64 {
    let needs = job.needs.as_ref().map_or(0, Vec::len);
    text(&job.payload) + of_labels(&job.labels) + parts(needs + job.after.len()) + ROW_BYTES
}

pub(crate) fn of_scheduled(job: &ScheduledJob) -> u64 {
    let needs = job.needs.as_ref().map_or(0, Vec::len);
    job.payload.as_ref().map_or(0, text) + of_labels(&job.labels) + parts(needs) + ROW_BYTES
}

#[cfg(test)]
mod tests {
    use tenure_core::lease::{Ending, SettleItem};
    use tenure_core::names::JobRef;
    use tenure_core::requests::{CancelJob, DeleteJob, Extend, Push, PushAnswer, Settle};

    use super::*;

    fn long(bytes: usize) -> Json {
        Json::from("x".repeat(bytes).as_str())
    }

    fn job() -> JobRef {
        JobRef::parse("j").unwrap()
    }

    #[test]
    fn a_patch_counts_its_difference() {
        let patch = PatchJob { payload: Patch::Set(long(1_000)), ..PatchJob::new(job()) };
        let request = Request::from(patch);
        let growth = growth(&request);
        assert!(growth.written_bytes() > 2_000);
        let small = 2 * 2 + EVENT_PAGES_BYTES;
        for (replaced, written) in
            [(2_000, 0), (1_002, 0), (1_000, small), (0, growth.written_bytes())]
        {
            assert_eq!(growth.beyond(replaced).written_bytes(), written, "{replaced}");
        }
    }

    #[test]
    fn what_ends_or_frees_always_goes_on() {
        let item = SettleItem::new("l".to_owned(), Ending::Succeeded { result: Some(long(1_000)) });
        for request in [
            Settle::of(vec![item]).into(),
            Request::from(CancelJob { job: job() }),
            DeleteJob { job: job() }.into(),
            Extend { leases: Vec::new(), ttl: None }.into(),
        ] {
            assert_eq!(growth(&request).written_bytes(), 0, "{request:?}");
            assert_ne!(growth(&request), Growth::Begins, "{request:?}");
        }
    }

    #[test]
    fn labels_needs_and_parents_of_a_job_count() {
        let plain = NewJob::new(QueueName::parse("q").unwrap());
        let labels = Labels::from([("k".repeat(64), "v".repeat(256))]);
        let with_labels = NewJob { labels, ..plain.clone() };
        let bytes = |job: NewJob| {
            growth(&Push { jobs: vec![job], answer: PushAnswer::Ids }.into()).written_bytes()
        };
        assert_eq!(bytes(with_labels) - bytes(plain), 320 * WRITTEN_TIMES);
    }
}
