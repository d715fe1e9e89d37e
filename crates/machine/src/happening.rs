//! What happened, as events: how a step says it. Which event a change makes stands where the change is made.

use super::state::{Job, LiveJobId, LiveResourceId, Space};
use super::stored::lease_id;
use tenure_core::events::{About, EventType, Happened};
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, JobId, QueueName, ScheduleId};
use tenure_core::time::Moment;

/// What an event of a job names.
pub(crate) struct JobNames {
    pub job: JobId,
    pub queue: Option<QueueName>,
    pub flow: Option<FlowName>,
    pub schedule: Option<ScheduleId>,
}

impl JobNames {
    /// The names, for an event to add to.
    pub fn about(self) -> About {
        let JobNames { job, queue, flow, schedule } = self;
        About { job: Some(job), queue, flow, schedule, ..About::default() }
    }
}

impl Space {
    /// This happened now, in this step.
    pub(crate) fn happens(&mut self, kind: EventType, about: About, now: Moment) {
        self.out.events.push(Happened::new(now, kind, about));
    }

    /// What events name of a job that lives.
    pub(crate) fn names_of_job(&self, slot: LiveJobId) -> JobNames {
        self.names_of(&self.jobs[slot])
    }

    /// The same of a job that has just left the index.
    pub(crate) fn names_of(&self, job: &Job) -> JobNames {
        JobNames {
            job: job.id.clone(),
            queue: self.queues[self.shapes[job.shape].queue].name.clone(),
            flow: job.flow().cloned(),
            schedule: job.origin.as_ref().map(|origin| origin.by.id.clone()),
        }
    }

    /// Something happened to a job that lives, of which there is nothing to say but who it is.
    pub(crate) fn job_happens(&mut self, slot: LiveJobId, kind: EventType, now: Moment) {
        let about = self.names_of_job(slot).about();
        self.happens(kind, about, now);
    }

    /// A job that waited may run now.
    pub(crate) fn job_is_ready(&mut self, slot: LiveJobId, why: &'static str, now: Moment) {
        let about = About { why: Some(why.into()), ..self.names_of_job(slot).about() };
        self.happens(EventType::JobReady, about, now);
    }

    /// The id of the lease that a job runs under.
    pub(crate) fn lease_of(&self, slot: LiveJobId, fence: Fence) -> String {
        lease_id(fence, self.jobs[slot].seq)
    }

    /// Something happened to a resource.
    pub(crate) fn resource_happens(
        &mut self,
        slot: LiveResourceId,
        kind: EventType,
        about: About,
        now: Moment,
    ) {
        let r = &self.resources[slot];
        let (pool, resource) = (Some(self.pools[r.pool].name.clone()), Some(r.id.clone()));
        self.happens(kind, About { pool, resource, ..about }, now);
    }
}
