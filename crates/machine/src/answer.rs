//! Which step a command is: the only place that knows all requests.
//!
//! It finds what a request names, has the step of that subject done and shows what is there now. It
//! never changes state itself.

use super::rows::DataKey;
use super::state::{LiveResourceId, QueueId, Seq, Space};
use super::{Command, Done, Rest};
use tenure_core::job::JobState;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Listed, Put, Request};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

impl Space {
    /// Does one command that is not a tick.
    pub(super) fn run(
        &mut self,
        command: Command,
        next_seq: &mut Seq,
        rest: &dyn Rest,
        now: Moment,
    ) -> Result<Done, Refusal> {
        Ok(match command {
            Command::Request(request) => return self.answer(request, next_seq, rest, now),
            Command::Lease(ask, taker) => Done::Lease(self.lease(&ask, taker, now)?),
            Command::DropWait(taker) => {
                self.drop_wait(taker, now);
                Done::Nothing
            }
            Command::Undo(fences) => {
                self.undo(&fences, now);
                Done::Nothing
            }
            Command::CancelMany(seqs) => Done::Many(self.cancel_many(&seqs, now)),
            Command::RetryMany(seqs) => Done::Many(self.retry_many(&seqs, rest, now)),
            Command::Locate(job) => {
                let (seq, state) = self.locate(&job, rest)?;
                Done::Job(seq, state)
            }
            Command::StatesOf(seqs) => Done::States(
                seqs.iter().map(|seq| Some(self.state_of(self.job_by_seq(*seq)?))).collect(),
            ),
            Command::Tick { .. } => Done::Nothing,
        })
    }

    fn shown(&self, seq: Seq) -> Done {
        let state = self.job_by_seq(seq).map(|slot| self.state_of(slot));
        Done::Job(seq, state.unwrap_or(JobState::Ready))
    }

    fn answer(
        &mut self,
        request: Request,
        next_seq: &mut Seq,
        rest: &dyn Rest,
        now: Moment,
    ) -> Result<Done, Refusal> {
        let has_data = |key: &DataKey, data: &Json| rest.has_data(key, data);
        Ok(match request {
            Request::Push(push) => Done::Pushed(self.push(push.jobs, next_seq, rest, now)?),
            Request::GetJob(get) => {
                let (seq, state) = self.locate(&get.job, rest)?;
                Done::Job(seq, state)
            }
            Request::PatchJob(patch) => {
                let seq = self.patch(patch, rest, now)?;
                self.shown(seq)
            }
            Request::DeleteJob(delete) => {
                self.delete(&delete.job, rest, now)?;
                Done::Nothing
            }
            Request::CancelJob(cancel) => {
                let seq = self.cancel(&cancel.job, rest, now)?;
                self.shown(seq)
            }
            Request::RetryJob(retry) => {
                let seq = self.retry(&retry.job, retry.finished_at, rest, now)?;
                self.shown(seq)
            }
            Request::RunJobNow(run) => {
                let seq = self.run_now(&run.job, rest, now)?;
                self.shown(seq)
            }
            Request::ExplainJob(explain) => {
                Done::Explained(match self.named(&explain.job, rest)? {
                    crate::ops::cancel::Named::Live(slot) => self.explain(slot, now),
                    crate::ops::cancel::Named::Finished(job) => {
                        Space::explain_finished(job.id, job.state)
                    }
                })
            }
            Request::Extend(extend) => Done::Extended(self.extend(extend, now)),
            Request::Settle(settle) => {
                Done::Settled(self.settle(settle.settle, next_seq, rest, now)?)
            }
            Request::ListLeases(list) => Done::Leases(self.list_leases(&list)),
            Request::ForceLease(force) => {
                self.force(&force.lease, now)?;
                Done::Nothing
            }
            Request::ListQueues(list) => Done::Queues(self.list_queues(&list.page, now)),
            Request::GetQueue(get) => {
                let queue = self.queue_named(&get.queue)?;
                self.queue_done(queue, false, now)?
            }
            Request::PutQueue(put) => {
                let (queue, created) = self.put_queue(put, now)?;
                self.queue_done(queue, created, now)?
            }
            Request::PatchQueue(patch) => {
                let (queue, created) = self.patch_queue(patch, now)?;
                self.queue_done(queue, created, now)?
            }
            Request::DeleteQueue(delete) => {
                self.delete_queue(&delete.queue)?;
                Done::Nothing
            }
            Request::PauseQueue(pause) => {
                let queue = self.pause_queue(&pause.queue, pause.until, now);
                self.queue_done(queue, false, now)?
            }
            Request::ResumeQueue(resume) => {
                let queue = self.resume_queue(&resume.queue)?;
                self.queue_done(queue, false, now)?
            }
            Request::ListLimits(list) => Done::Limits(self.list_limits(&list.page, now)),
            Request::GetLimit(get) => {
                if !self.limit_is_known(&get.limit) {
                    return Err(crate::ops::limits::limit_not_found(&get.limit));
                }
                self.limit_done(&get.limit, false, now)
            }
            Request::PutLimit(put) => {
                let name = put.limit.clone();
                let created = self.put_limit(put, now)?;
                self.limit_done(&name, created, now)
            }
            Request::PatchLimit(patch) => {
                let name = patch.limit.clone();
                let created = self.patch_limit(patch, now)?;
                self.limit_done(&name, created, now)
            }
            Request::DeleteLimit(delete) => {
                self.delete_limit(&delete.limit, now)?;
                Done::Nothing
            }
            Request::PauseLimit(pause) => {
                self.pause_limit(&pause.limit, pause.until, now)?;
                self.limit_done(&pause.limit, false, now)
            }
            Request::ResumeLimit(resume) => {
                self.resume_limit(&resume.limit, now)?;
                self.limit_done(&resume.limit, false, now)
            }
            Request::ObserveLimit(observe) => {
                let name = observe.limit.clone();
                self.observe_limit(observe, now)?;
                self.limit_done(&name, false, now)
            }
            Request::ListPools(list) => Done::Pools(self.list_pools(&list.page)),
            Request::GetPool(get) => {
                let pool = self.pool_named(&get.pool)?;
                Done::Pool(Put { view: self.pool_view(pool), created: false })
            }
            Request::PutPool(put) => {
                let (pool, created) = self.put_pool(put, now);
                Done::Pool(Put { view: self.pool_view(pool), created })
            }
            Request::PatchPool(patch) => {
                let (pool, created) = self.patch_pool(patch, now);
                Done::Pool(Put { view: self.pool_view(pool), created })
            }
            Request::DeletePool(delete) => {
                self.delete_pool(&delete.pool, now)?;
                Done::Nothing
            }
            Request::SyncResources(sync) => {
                Done::Synced(self.sync_resources(sync, &has_data, now)?)
            }
            Request::AddResources(add) => {
                let slots = self.add_resources(add, &has_data, now);
                let items = slots.iter().map(|slot| self.resource_view(*slot, now)).collect();
                Done::Resources(Listed { items, next: None, partial: false })
            }
            Request::ListResources(list) => {
                let pool = self.pool_named(&list.pool)?;
                Done::Resources(self.list_resources(pool, &list.page, now))
            }
            Request::GetResource(get) => {
                let slot = self.resource_named(&get.pool, &get.resource)?;
                self.resource_done(slot, now)
            }
            Request::PatchResource(patch) => {
                let slot = self.patch_resource(patch, now)?;
                self.resource_done(slot, now)
            }
            Request::DeleteResource(delete) => {
                self.delete_resource(&delete.pool, &delete.resource, now)?;
                Done::Nothing
            }
            Request::CoolResource(cool) => {
                let slot = self.cool_resource(cool, now)?;
                self.resource_done(slot, now)
            }
            Request::BanResource(ban) => {
                let slot = self.ban_resource(ban, now)?;
                self.resource_done(slot, now)
            }
            Request::RestoreResource(restore) => {
                let slot = self.restore_resource(&restore.pool, &restore.resource, now)?;
                self.resource_done(slot, now)
            }
            Request::ListWorkers(list) => Done::Workers(self.list_workers(&list.page, now)),
            Request::GetStats(_) => Done::Stats(self.stats()),
            Request::Audit(_) => Done::Audit(self.audit(now)),
            Request::ListJobs(_)
            | Request::CancelJobs(_)
            | Request::RetryJobs(_)
            | Request::Lease(_) => Done::Elsewhere,
        })
    }

    fn queue_done(&self, queue: QueueId, created: bool, now: Moment) -> Result<Done, Refusal> {
        let view = self.queue_view(queue, now);
        match view {
            Some(view) => Ok(Done::Queue(Put { view, created })),
            None => panic!("a queue that was just found is not there"),
        }
    }

    fn limit_done(&self, name: &tenure_core::names::LimitName, created: bool, now: Moment) -> Done {
        Done::Limit(Put { view: self.limit_view(name, true, now), created })
    }

    fn resource_done(&self, resource: LiveResourceId, now: Moment) -> Done {
        let items = vec![self.resource_view(resource, now)];
        Done::Resources(Listed { items, next: None, partial: false })
    }
}
