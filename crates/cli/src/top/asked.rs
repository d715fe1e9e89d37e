//! The calls of each view: a bounded number, and none changes anything.

use tenure::Client;
use tenure_console::standing::NamespaceReplies;
use tenure_core::job::JobState;
use tenure_core::lease::Explained;
use tenure_core::names::{JobId, JobRef};
use tenure_core::requests::{ExplainJob, GetLimit, JobFilter, ListJobs, ListLeases, Listed, Page};
use tenure_core::time::Moment;
use tenure_engine_api::{CallError, Clock, SystemClock};

use crate::top::view::View;

/// Most jobs of one list.
const JOBS: usize = 100;

/// The content of a view.
pub enum Content {
    /// The namespace as it stands.
    Overview(Box<NamespaceReplies>),
    /// Jobs of a queue, a limit, a pool or a worker.
    Jobs(Vec<JobRow>),
    /// Why a job waits, line by line.
    Explained(String),
}

/// A job in a list, or a caller that holds or waits without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRow {
    /// The job; `None` for a caller.
    pub job: Option<JobId>,
    /// `holds` with its resources, or `waits`; in the list of a queue the state of the job.
    pub state: String,
    /// The holder of its lease, if it has one.
    pub holder: Option<String>,
    /// Since when it holds or waits; in the list of a queue when the job was created.
    pub since: Option<Moment>,
}

/// Requests the content of a view, and returns it with the time of the request.
pub async fn ask(
    client: &Client,
    view: View,
    told: fn(&Explained, Moment) -> String,
) -> Result<(Moment, Content), CallError> {
    let now = SystemClock.now();
    let content = match view {
        View::Overview => Content::Overview(Box::new(NamespaceReplies::ask(client).await?)),
        View::Queue(queue) => {
            let states = JobState::ALL.into_iter().filter(|state| !state.is_finished()).collect();
            let filter = JobFilter { queue: Some(queue), states, ..JobFilter::default() };
            let listed = client.run(ListJobs { filter, page: page(), full: false }).await?;
            let row = |job: tenure_core::job::JobView| JobRow {
                job: Some(job.id),
                state: job.state.as_str().to_owned(),
                holder: None,
                since: Some(job.created_at),
            };
            Content::Jobs(listed.items.into_iter().map(row).collect())
        }
        View::Limit(limit) => {
            let view = client.run(GetLimit { limit }).await?;
            let held = view.holders.into_iter().map(|one| JobRow {
                job: one.job,
                state: "holds".to_owned(),
                holder: Some(one.holder),
                since: Some(one.since),
            });
            let line = view.line.into_iter().map(|one| JobRow {
                job: one.job,
                state: "waits".to_owned(),
                holder: None,
                since: Some(one.since),
            });
            Content::Jobs(held.chain(line).collect())
        }
        View::Pool(pool) => {
            let request = ListLeases { pool: Some(pool), page: page(), ..ListLeases::default() };
            Content::Jobs(leases(client.run(request).await?))
        }
        View::Worker(worker) => {
            let worker = Some(worker.to_string());
            let request = ListLeases { worker, page: page(), ..ListLeases::default() };
            Content::Jobs(leases(client.run(request).await?))
        }
        View::Job(job) => {
            let explained = client.run(ExplainJob { job: JobRef::Id(job) }).await?;
            Content::Explained(told(&explained, now))
        }
    };
    Ok((now, content))
}

fn page() -> Page {
    Page { max: JOBS, cursor: None }
}

fn leases(listed: Listed<tenure_core::lease::LeaseSummary>) -> Vec<JobRow> {
    let row = |lease: tenure_core::lease::LeaseSummary| {
        let resources: Vec<_> = lease.resources.iter().map(|one| one.id.to_string()).collect();
        let state = match resources.as_slice() {
            [] => "holds".to_owned(),
            some => format!("holds {}", some.join(" ")),
        };
        JobRow { job: lease.job, state, holder: Some(lease.holder), since: Some(lease.granted_at) }
    };
    listed.items.into_iter().map(row).collect()
}
