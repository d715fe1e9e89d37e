//! Shows jobs and resources in answers, from rows.

use rusqlite::Connection;
use tenure_core::job::{JobState, JobView, PushedJob, ResultView};
use tenure_core::lease::{Explained, Leased, SettledLease};
use tenure_core::names::{Namespace, PoolName};
use tenure_core::redact::redacted;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    Audited, DoneMany, EventStats, EventsRead, Failures, Listed, Pushed, PushedId, Put, Settled,
    Stats, StoreStats,
};
use tenure_core::schedule::ScheduleView;
use tenure_core::secret::Json;
use tenure_core::sentences::{JobRefusal, UNREADABLE_SUMMARY};
use tenure_core::settings::ResourceView;
use tenure_engine_api::schedules::show_next;
use tenure_engine_api::{CallError, Fault};
use tenure_journal::StoreFacts;
use tenure_machine::{
    Compared, Done, Elsewhere, ExplainedAt, JobAt, Known, PushedAt, PushedOne, RetriedAt, Seq,
    SettledOne, Stands, Totals, WithoutData, WithoutNext,
};

use crate::batch::{Answer, PushedShown, SettledShown, Shown};
use crate::shared::Shared;
use crate::sqlite::rows::{self, Data, FoundJob, unreadable_part};
use crate::sqlite::scan::audit;
use crate::sqlite::scan::damage::{UNREADABLE, damaged};
use crate::sqlite::write::streams;

/// A row that the machine wrote and that cannot be read again.
pub(crate) fn unreadable(seq: Seq) -> CallError {
    Fault::Broken(format!("the row of job number {seq} is not of the format")).into()
}

/// The machine's part of a reply, to which the rows add theirs. The compiler checks the pairs: an operation whose reply
/// cannot be made from its machine's part has no `Show`.
pub(crate) trait Show<R> {
    fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> impl Future<Output = Result<R, CallError>> + Send;
}

/// The machine's part is the whole reply.
impl<R: Send> Show<R> for R {
    async fn show(self, _: &Shared, _: &Namespace) -> Result<R, CallError> {
        Ok(self)
    }
}

impl Show<Box<JobView>> for JobAt {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Box<JobView>, CallError> {
        let view = job(shared, namespace, self.seq, self.stands).await?;
        let gone = JobRefusal::ForgottenMeanwhile { job: self.job.to_string() };
        view.map(Box::new).ok_or_else(|| Refusal::from(gone).into())
    }
}

impl Show<Box<JobView>> for RetriedAt {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Box<JobView>, CallError> {
        let RetriedAt { at, cancelled_children } = self;
        let mut view = Show::<Box<JobView>>::show(at, shared, namespace).await?;
        view.cancelled_children = Some(cancelled_children).filter(|cancelled| *cancelled > 0);
        Ok(view)
    }
}

impl Show<Box<ResultView>> for JobAt {
    async fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> Result<Box<ResultView>, CallError> {
        let view = Show::<Box<JobView>>::show(self, shared, namespace).await?;
        Ok(Box::new(ResultView::from(*view)))
    }
}

/// Adds the reason why an unreadable job failed, which only its row knows.
impl Show<Explained> for ExplainedAt {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Explained, CallError> {
        let ExplainedAt(mut explained, at) = self;
        if explained.state != JobState::Failed {
            return Ok(explained);
        }
        let error = job(shared, namespace, at.seq, at.stands).await?.and_then(|view| view.error);
        if error.is_some_and(|error| error.starts_with(UNREADABLE)) {
            explained.summary = UNREADABLE_SUMMARY.to_owned();
        }
        Ok(explained)
    }
}

impl Show<Pushed> for Vec<PushedOne> {
    async fn show(self, _: &Shared, _: &Namespace) -> Result<Pushed, CallError> {
        let ids = self.into_iter().map(|job| PushedId {
            id: job.id,
            duplicate: job.duplicate,
            replaced: job.replaced,
            workers: job.unasked.then_some(0),
        });
        Ok(Pushed::Ids(ids.collect()))
    }
}

/// The reply to settles, made from the state's answer.
pub(crate) async fn settled(
    shared: &Shared,
    namespace: &Namespace,
    answer: Answer,
) -> Result<Settled, CallError> {
    match answer {
        Answer::Settled(items) => Show::<Settled>::show(items, shared, namespace).await,
        Answer::Done(Done::Request(Known::Settle(items))) => {
            Show::<Settled>::show(items, shared, namespace).await
        }
        _ => Err(Fault::Broken("a settle got another operation's answer".to_owned()).into()),
    }
}

impl Show<Settled> for Vec<SettledOne> {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Settled, CallError> {
        let plain = self.into_iter().map(|one| SettledShown {
            lease: one.lease,
            result: one.result,
            pushed: Vec::new(),
        });
        Show::<Settled>::show(plain.collect::<Vec<_>>(), shared, namespace).await
    }
}

impl Show<Settled> for Vec<SettledShown> {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Settled, CallError> {
        let mut settled = Vec::with_capacity(self.len());
        for SettledShown { lease, result, pushed } in self {
            let pushed = self::pushed(shared, namespace, pushed, false).await?;
            settled.push(match result {
                Ok(known) => SettledLease {
                    lease,
                    ok: true,
                    state: known.state,
                    run_at: known.run_at,
                    next_at: known.next_at,
                    code: None,
                    pushed,
                },
                Err(code) => SettledLease {
                    lease,
                    ok: false,
                    state: None,
                    run_at: None,
                    next_at: None,
                    code: Some(code),
                    pushed,
                },
            });
        }
        Ok(Settled { settled, lease: None })
    }
}

impl Show<Vec<ResourceView>> for WithoutData<Vec<ResourceView>> {
    async fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> Result<Vec<ResourceView>, CallError> {
        resources(shared, namespace, self.pool, self.reply).await
    }
}

impl Show<Listed<ResourceView>> for WithoutData<Listed<ResourceView>> {
    async fn show(
        self,
        shared: &Shared,
        namespace: &Namespace,
    ) -> Result<Listed<ResourceView>, CallError> {
        let Listed { items, next, partial } = self.reply;
        let items = resources(shared, namespace, self.pool, items).await?;
        let mut listed = Listed { items, next, partial };
        listed.cut_by_data();
        Ok(listed)
    }
}

impl Show<ResourceView> for WithoutData<ResourceView> {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<ResourceView, CallError> {
        let mut views = resources(shared, namespace, self.pool, vec![self.reply]).await?;
        let lost = || Fault::Broken("a resource was lost while it was read".to_owned()).into();
        views.pop().ok_or_else(lost)
    }
}

impl Show<Stats> for Totals {
    async fn show(self, shared: &Shared, ns: &Namespace) -> Result<Stats, CallError> {
        let Totals(mut stats) = self;
        if shared.keeps_events() {
            let ns = ns.clone();
            let stream = shared.read(move |conn| streams::stream(conn, &ns)).await?;
            stats.events = EventStats::of(stream.stands, stream.bytes);
        }
        let StoreFacts { kind, bytes } = shared.facts();
        stats.store = StoreStats { kind: kind.to_owned(), bytes };
        Ok(stats)
    }
}

impl Show<Audited> for Compared {
    async fn show(self, shared: &Shared, namespace: &Namespace) -> Result<Audited, CallError> {
        let Compared { mut found, deep } = self;
        if deep {
            audit::read_all(shared, namespace, &mut found).await?;
        }
        found.faults.extend(shared.damage.faults(namespace));
        found.ok = found.faults.is_empty();
        Ok(found)
    }
}

impl Show<Box<ScheduleView>> for WithoutNext {
    async fn show(self, _: &Shared, _: &Namespace) -> Result<Box<ScheduleView>, CallError> {
        Ok(with_next(self, true))
    }
}

impl Show<Put<Box<ScheduleView>>> for Put<WithoutNext> {
    async fn show(self, _: &Shared, _: &Namespace) -> Result<Put<Box<ScheduleView>>, CallError> {
        Ok(Put { view: with_next(self.view, true), created: self.created })
    }
}

impl Show<Listed<ScheduleView>> for Listed<WithoutNext> {
    async fn show(self, _: &Shared, _: &Namespace) -> Result<Listed<ScheduleView>, CallError> {
        let Listed { items, next, partial } = self;
        let items = items.into_iter().map(|item| *with_next(item, false)).collect();
        Ok(Listed { items, next, partial })
    }
}

impl Show<Box<PushedJob>> for PushedAt {
    async fn show(self, shared: &Shared, ns: &Namespace) -> Result<Box<PushedJob>, CallError> {
        let PushedAt { one, stands } = self;
        let PushedOne { seq, id: _, duplicate, replaced, unasked, known } = one;
        let shown = Shown::Read(seq, stands);
        let one = PushedShown { shown, duplicate, replaced, unasked, known };
        let shown = pushed(shared, ns, vec![one], true).await?.pop();
        shown.map(Box::new).ok_or_else(|| unreadable(seq))
    }
}

fn with_next(shown: WithoutNext, whole: bool) -> Box<ScheduleView> {
    let WithoutNext { mut view, basis } = shown;
    show_next(&mut view, &basis, whole);
    view
}

macro_rules! elsewhere {
    ($($reply:ty),*) => {
        $(impl Show<$reply> for Elsewhere {
            async fn show(self, _: &Shared, _: &Namespace) -> Result<$reply, CallError> {
                let why = "the machine was asked for what only the engine answers";
                Err(Fault::Broken(why.to_owned()).into())
            }
        })*
    };
}
elsewhere!(Listed<JobView>, DoneMany, Failures, EventsRead, Leased);

/// One job; `None` if its row is gone by now.
pub(crate) async fn job(
    shared: &Shared,
    namespace: &Namespace,
    seq: Seq,
    stands: Stands,
) -> Result<Option<JobView>, CallError> {
    let (ns, seal) = (namespace.clone(), shared.seal.clone());
    match shared.read(move |conn| rows::job(conn, (&ns, &seal), seq, true)).await? {
        FoundJob::Job(row) => {
            let job = row.noted(&shared.damage, namespace);
            job.view(stands).map(Some).ok_or_else(|| unreadable(seq))
        }
        FoundJob::Gone => Ok(None),
        FoundJob::Unreadable => {
            shared.damage.note(Some(namespace), seq, damaged(seq, None, "row"));
            Err(unreadable(seq))
        }
    }
}

/// Pushed jobs, in their order; reads rows for jobs that existed before.
pub(crate) async fn pushed(
    shared: &Shared,
    namespace: &Namespace,
    jobs: Vec<PushedShown>,
    full: bool,
) -> Result<Vec<PushedJob>, CallError> {
    let there = |job: &PushedShown| match job.shown {
        Shown::Read(seq, _) => Some(seq),
        Shown::Built(..) => None,
    };
    let wanted: Vec<Seq> = jobs.iter().filter_map(there).collect();
    let mut read = Vec::new();
    if !wanted.is_empty() {
        let (ns, seal) = (namespace.clone(), shared.seal.clone());
        let all = move |conn: &Connection| {
            wanted.iter().map(|seq| rows::job(conn, (&ns, &seal), *seq, full)).collect()
        };
        read = shared.read::<Vec<FoundJob>>(all).await?;
    }
    let mut read = read.into_iter();
    let mut views = Vec::with_capacity(jobs.len());
    for PushedShown { shown, duplicate, replaced, unasked, known } in jobs {
        let (seq, stored, stands) = match shown {
            Shown::Built(job, stands) => (job.seq, Some(*job), stands),
            Shown::Read(seq, stands) => match read.next() {
                Some(FoundJob::Job(row)) => {
                    (seq, Some(row.noted(&shared.damage, namespace)), stands)
                }
                Some(FoundJob::Unreadable) => return Err(unreadable(seq)),
                Some(FoundJob::Gone) | None => (seq, None, stands),
            },
        };
        let job = match (stored, known) {
            (Some(stored), _) => stored.view(stands).ok_or_else(|| unreadable(seq))?,
            (None, Some(known)) => *known,
            (None, None) => {
                let why = "a job that was there already went while it was read: push again";
                return Err(Fault::Unknown(why.to_owned()).into());
            }
        };
        views.push(PushedJob { job, duplicate, replaced, workers: unasked.then_some(0) });
    }
    Ok(views)
}

/// Puts the redacted data into views of resources.
async fn resources(
    shared: &Shared,
    namespace: &Namespace,
    pool: PoolName,
    mut views: Vec<ResourceView>,
) -> Result<Vec<ResourceView>, CallError> {
    if views.is_empty() {
        return Ok(views);
    }
    let (namespace, seal) = (namespace.clone(), shared.seal.clone());
    let read = move |conn: &Connection| {
        for view in &mut views {
            let key = (namespace.clone(), pool.clone(), view.id.clone());
            match rows::data(conn, &seal, &key)? {
                Data::Known(data) => view.data = redacted(&data),
                Data::Gone => view.data = Json::null(),
                Data::Unreadable => {
                    view.data = Json::null();
                    view.reason = view.reason.take().or_else(|| Some(unreadable_part("data")));
                }
            }
        }
        Ok(views)
    };
    shared.read(read).await
}
