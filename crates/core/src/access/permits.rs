//! Whether a token permits a request: its operation, namespace, queues and needs.
//!
//! The match on requests names every operation. A new one does not compile until somebody has decided here what it
//! names beside its scope.

use super::{Grants, Scope, WHOLE_STORE};
use crate::job::{Need, NewJob};
use crate::lease::SettleItem;
use crate::names::{LimitName, Namespace, QueueName};
use crate::progress::ProgressSeen;
use crate::refusal::Refusal;
use crate::requests::{Answer, Ask, GetResult, JobFilter, Lease, Request, Settle, Spec};
use crate::sentences::AccessRefusal;

impl Grants {
    /// Refuses a call outside of the token's scopes. `operation` is its name, in every layer the same.
    pub fn may(&self, scope: Scope, operation: &str) -> Answer<()> {
        if self.scopes.has(scope) {
            return Ok(());
        }
        Err(AccessRefusal::ScopeLacking {
            caller: self.name.to_string(),
            scope: scope.to_string(),
            operation: operation.to_owned(),
            scopes: self.scopes.to_string(),
        }
        .into())
    }

    /// The same for an operation of the table.
    pub fn may_call(&self, spec: &Spec) -> Answer<()> {
        self.may(spec.scope, spec.name)
    }

    /// Refuses a namespace that the token does not name.
    pub fn may_enter(&self, namespace: &Namespace) -> Answer<()> {
        if self.namespaces.match_name(namespace) {
            return Ok(());
        }
        Err(AccessRefusal::NamespaceClosed {
            caller: self.name.to_string(),
            namespace: namespace.to_string(),
            permitted: self.namespaces.to_string(),
        }
        .into())
    }

    /// Whether no namespace is closed to it.
    pub fn enters_all(&self) -> bool {
        self.namespaces.match_all()
    }

    /// Refuses a call whose answer has every namespace with all its secrets, such as a backup. The refusal names all that
    /// is missing, so that an administrator grants it at once.
    pub fn may_take_all(&self, operation: &str) -> Answer<()> {
        let lacking = WHOLE_STORE.into_iter().filter(|scope| !self.scopes.has(*scope));
        let lacking: Vec<String> = lacking.map(|scope| scope.to_string()).collect();
        if lacking.is_empty() && self.enters_all() {
            return Ok(());
        }
        Err(AccessRefusal::StoreClosed {
            caller: self.name.to_string(),
            operation: operation.to_owned(),
            lacking,
            enters_all: self.enters_all(),
            scopes: self.scopes.to_string(),
            permitted: self.namespaces.to_string(),
        }
        .into())
    }

    /// Refuses a request that the token does not permit. The lease call inside of a settle is not looked at: see
    /// [`without_refused_lease`](Self::without_refused_lease).
    ///
    /// # Errors
    /// `forbidden`.
    pub fn permit(&self, namespace: &Namespace, request: &Request) -> Answer<()> {
        let spec = request.spec();
        self.may_call(spec)?;
        self.may_enter(namespace)?;
        match request {
            Request::Push(push) => {
                push.jobs.iter().enumerate().try_for_each(|(n, job)| {
                    self.may_push(job).map_err(|no| no.item(n))
                })
            }
            Request::Lease(lease) => self.may_lease(lease),
            Request::Settle(settle) => self.may_settle(settle),
            // A deep one looks through the whole namespace, and other calls wait meanwhile.
            Request::Audit(audit) if audit.deep => self.may(Scope::Operate, "audit with \"deep\""),
            Request::Audit(_) => Ok(()),
            // The id of a progress is a hash of it: a wait by it would answer guesses.
            Request::GetResult(GetResult { seen: Some(ProgressSeen::Id(_)), .. }) => {
                self.may(Scope::Read, "get_result with \"seen\"")
            }
            Request::GetResult(_) => Ok(()),
            // The text of errors is content: a filter by it would answer guesses.
            Request::ListJobs(list) => self.may_filter(&list.filter, spec, "/query/error"),
            Request::CancelJobs(many) => self.may_filter(&many.filter, spec, "/error"),
            Request::RetryJobs(many) => self.may_filter(&many.filter, spec, "/error"),
            Request::DeleteJobs(many) => self.may_filter(&many.filter, spec, "/error"),
            // Names leases by their ids, which are no right: the namespace is the wall between holders.
            Request::Extend(_)
            // Names a job; the server looks up its queue, see `closes_queues`.
            | Request::ListParents(_)
            // View and read are not restricted to queues.
            | Request::GetJob(_)
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
            // A token with operate or admin has no restriction to queues.
            | Request::PatchJob(_)
            | Request::DeleteJob(_)
            | Request::CancelJob(_)
            | Request::RetryJob(_)
            | Request::RunJobNow(_)
            | Request::ForceLease(_)
            | Request::PutQueue(_)
            | Request::PatchQueue(_)
            | Request::DeleteQueue(_)
            | Request::PauseQueue(_)
            | Request::ResumeQueue(_)
            | Request::PutLimit(_)
            | Request::PatchLimit(_)
            | Request::DeleteLimit(_)
            | Request::PauseLimit(_)
            | Request::ResumeLimit(_)
            | Request::ObserveLimit(_)
            | Request::PutPool(_)
            | Request::PatchPool(_)
            | Request::DeletePool(_)
            | Request::SyncResources(_)
            | Request::AddResources(_)
            | Request::PatchResource(_)
            | Request::DeleteResource(_)
            | Request::CoolResource(_)
            | Request::BanResource(_)
            | Request::RestoreResource(_)
            | Request::CancelFlow(_)
            | Request::PutSchedule(_)
            | Request::PatchSchedule(_)
            | Request::DeleteSchedule(_)
            | Request::PauseSchedule(_)
            | Request::ResumeSchedule(_)
            | Request::RunScheduleNow(_)
            | Request::SyncSchedules(_) => Ok(()),
        }
    }

    /// Takes the lease call out of a settle if the token does not permit it, and returns its refusal. The settles still
    /// stand: a worker whose token lost a queue must be able to report the job that it has done.
    pub fn without_refused_lease(&self, request: &mut Request) -> Option<Refusal> {
        let Request::Settle(settle) = request else { return None };
        let no = self.may_lease(settle.lease.as_deref()?).err()?;
        settle.lease = None;
        Some(no.below("/lease"))
    }

    /// Whether some queues are closed to the token, so that a job which a request names by its id may be in one.
    pub fn closes_queues(&self) -> bool {
        self.queues.is_some()
    }

    /// Refuses a queue of `operation` that the token does not name.
    pub fn may_use_queue(&self, queue: &QueueName) -> Answer<()> {
        let Some(queues) = self.queues.as_ref().filter(|queues| !queues.match_name(queue)) else {
            return Ok(());
        };
        Err(AccessRefusal::QueueClosed {
            caller: self.name.to_string(),
            queue: queue.to_string(),
            permitted: queues.to_string(),
        }
        .into())
    }

    fn may_push(&self, job: &NewJob) -> Answer<()> {
        self.may_use_queue(&job.queue).map_err(|no| no.at("/queue"))?;
        // A job without needs of its own takes those of its queue, which an administrator has set.
        self.may_need(job.needs.as_deref().unwrap_or_default())
    }

    fn may_need(&self, needs: &[Need]) -> Answer<()> {
        let Some((n, need)) = needs.iter().enumerate().find(|(_, need)| !self.match_need(need))
        else {
            return Ok(());
        };
        let no = match need {
            Need::Limit { limit, .. } => self.need_closed("limit", limit.to_string()),
            Need::Pool { pool, .. } => self.need_closed("pool", pool.to_string()),
        };
        Err(no.at(format!("/needs/{n}")))
    }

    /// Refuses the pause of a limit that the token may not hold, unless it may pause any.
    fn may_pause(&self, limit: &LimitName) -> Answer<()> {
        if self.match_limit(limit) || self.scopes.has(Scope::Operate) {
            return Ok(());
        }
        Err(self.need_closed("limit", limit.to_string()))
    }

    fn need_closed(&self, kind: &'static str, name: String) -> Refusal {
        let permitted: Vec<String> = self.needs().into_iter().flatten().collect();
        let no = AccessRefusal::NeedClosed {
            caller: self.name.to_string(),
            kind: kind.into(),
            name,
            permitted: crate::sentences::listed(&permitted, "and"),
        };
        no.into()
    }

    fn may_lease(&self, lease: &Lease) -> Answer<()> {
        match &lease.ask {
            Ask::Jobs { queues, .. } => queues.iter().enumerate().try_for_each(|(n, queue)| {
                self.may_use_queue(queue).map_err(|no| no.at(format!("/queues/{n}")))
            }),
            Ask::Needs(needs) => self.may_need(needs),
        }
    }

    fn may_settle(&self, settle: &Settle) -> Answer<()> {
        let items = settle.settle.iter().enumerate();
        items
            .map(|(n, item)| (n, self.may_settle_one(item)))
            .try_for_each(|(n, may)| may.map_err(|no| no.below(&format!("/settle/{n}")).item(n)))
    }

    fn may_settle_one(&self, item: &SettleItem) -> Answer<()> {
        // The engine takes a pause of any limit; other verdicts concern what the lease holds.
        let pauses = item.limits.iter().enumerate().filter(|(_, one)| one.pause.is_some());
        for (n, verdict) in pauses {
            self.may_pause(&verdict.limit).map_err(|no| no.at(format!("/limits/{n}/limit")))?;
        }
        for (n, job) in item.push.iter().enumerate() {
            let may = self.may(Scope::Push, "push").and_then(|()| self.may_push(job));
            may.map_err(|no| no.below(&format!("/push/{n}")))?;
        }
        Ok(())
    }

    fn may_filter(&self, filter: &JobFilter, spec: &Spec, pointer: &str) -> Answer<()> {
        if filter.error.is_none() {
            return Ok(());
        }
        let operation = format!("{} with \"error\"", spec.name);
        self.may(Scope::Read, &operation).map_err(|no| no.at(pointer))
    }
}
