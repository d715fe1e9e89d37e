//! One line of payload per job for lists, if the queue's `show_payload` was not turned off. A queue that is gone has no
//! setting, so its jobs show none.

use std::collections::{HashMap, HashSet};

use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::job::JobView;
use tenure_core::names::{JobId, JobRef, QueueName};
use tenure_core::refusal::Code;
use tenure_core::requests::{GetJob, GetQueue};

use crate::show::payload_line;
use crate::visit::{Unanswered, Visit};

/// Lines by job; a job without an entry shows none.
#[derive(Default)]
pub(crate) struct PayloadLines {
    lines: HashMap<JobId, String>,
}

impl PayloadLines {
    /// The lines of these jobs. Payloads that the list left out are read one by one, at most `LIST_DEFAULT` of them.
    pub(crate) async fn of(visit: &Visit, jobs: &[JobView]) -> Result<Self, Unanswered> {
        let shown = shown_queues(visit, jobs.iter().map(|job| &job.queue)).await?;
        let mut all = PayloadLines::default();
        let (listed, bare): (Vec<_>, Vec<_>) = jobs
            .iter()
            .filter(|job| shown.contains(&job.queue))
            .partition(|job| job.payload.is_some());
        for job in listed {
            all.add(job);
        }
        for job in bare.into_iter().take(LIST_DEFAULT) {
            all.read(visit, &job.id).await?;
        }
        Ok(all)
    }

    /// The lines of these jobs, given by id and queue only.
    pub(crate) async fn named(
        visit: &Visit,
        jobs: &[(&JobId, &QueueName)],
    ) -> Result<Self, Unanswered> {
        let shown = shown_queues(visit, jobs.iter().map(|(_, queue)| *queue)).await?;
        let mut all = PayloadLines::default();
        for (job, _) in jobs.iter().filter(|(_, queue)| shown.contains(*queue)) {
            all.read(visit, job).await?;
        }
        Ok(all)
    }

    /// The line of a job, if it may be shown and is not empty.
    pub(crate) fn get(&self, job: &JobId) -> Option<&str> {
        self.lines.get(job).map(String::as_str)
    }

    fn add(&mut self, job: &JobView) {
        if let Some(line) = job.payload.as_ref().and_then(payload_line) {
            self.lines.insert(job.id.clone(), line);
        }
    }

    async fn read(&mut self, visit: &Visit, id: &JobId) -> Result<(), Unanswered> {
        match visit.ask(GetJob { job: JobRef::Id(id.clone()) }).await {
            Ok(job) => self.add(&job),
            // The job was deleted since.
            Err(Unanswered::Refused(no)) if no.code == Code::JobNotFound => {}
            Err(stop) => return Err(stop),
        }
        Ok(())
    }
}

async fn shown_queues(
    visit: &Visit,
    queues: impl Iterator<Item = &QueueName>,
) -> Result<HashSet<QueueName>, Unanswered> {
    let all: HashSet<&QueueName> = queues.collect();
    let mut queues_shown = HashSet::new();
    for queue in all {
        match visit.ask(GetQueue { queue: queue.clone() }).await {
            Ok(view) if view.settings.show_payload => {
                queues_shown.insert(queue.clone());
            }
            Ok(_) => {}
            Err(Unanswered::Refused(no)) if no.code == Code::QueueNotFound => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(queues_shown)
}
