//! The views of the screen.

use tenure_core::names::{JobId, LimitName, PoolName, QueueName, WorkerId};

/// The overview, or a thing that a row of another view opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum View {
    /// The namespace as it stands.
    Overview,
    /// The unfinished jobs of a queue.
    Queue(QueueName),
    /// The holders of a limit, and the jobs that wait for it.
    Limit(LimitName),
    /// The holders of a pool's resources.
    Pool(PoolName),
    /// The leases of a worker.
    Worker(WorkerId),
    /// Why a job waits.
    Job(JobId),
}

impl View {
    /// Its title in the first line; empty for the overview.
    pub fn title(&self) -> String {
        match self {
            View::Overview => String::new(),
            View::Queue(name) => format!("queue '{name}'"),
            View::Limit(name) => format!("limit '{name}'"),
            View::Pool(name) => format!("pool '{name}'"),
            View::Worker(id) => format!("worker {}", tenure::ids::holder_shown(id.as_str())),
            View::Job(id) => format!("job '{id}'"),
        }
    }
}
