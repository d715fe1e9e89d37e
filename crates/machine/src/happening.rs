//! What happened, as events: how a step says it. Which event a change makes stands where the change is made.

use super::state::{LiveJobId, LiveResourceId, Space};
use super::stored::lease_id;
use tenure_core::events::{About, EventType, Happened};
use tenure_core::lease::Fence;
use tenure_core::time::Moment;

impl Space {
    /// This happened now, in this step.
    pub(crate) fn happens(&mut self, kind: EventType, about: About, now: Moment) {
        self.out.events.push(Happened::new(now, kind, about));
    }

    /// What every event of a job that lives names.
    pub(crate) fn about_job(&self, slot: LiveJobId) -> About {
        let job = &self.jobs[slot];
        About {
            job: Some(job.id.clone()),
            queue: self.queues[self.shapes[job.shape].queue].name.clone(),
            flow: job.flow().cloned(),
            schedule: job.origin.as_ref().map(|origin| origin.by.id.clone()),
            ..About::default()
        }
    }

    /// Something happened to a job that lives, of which there is nothing to say but who it is.
    pub(crate) fn job_happens(&mut self, slot: LiveJobId, kind: EventType, now: Moment) {
        let about = self.about_job(slot);
        self.happens(kind, about, now);
    }

    /// A job that waited may run now.
    pub(crate) fn job_is_ready(&mut self, slot: LiveJobId, why: &'static str, now: Moment) {
        let about = About { why: Some(why.into()), ..self.about_job(slot) };
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
