//! Hides the contents of a reply that a token may not see: they become `•••`.
//!
//! Contents are payloads, results, errors, progress, the keys of data, and the reasons that people give for a ban or a
//! rest: `read` shows them. The holder of a lease sees its job, and the data of those pools that its token may use. Ids of
//! leases are shown: they are neither a secret nor a right (docs/decisions/005-lease-ids.md).
//!
//! Each type of a reply says here what it hides. A new one does not compile until somebody has decided that.

use super::{Concealed, Grants, Scope};
use crate::events::{Event, EventType};
use crate::flow::{ChildView, FlowView, ParentView};
use crate::job::{JobView, PushedJob, ResultView};
use crate::lease::{Explained, Extended, LeaseSummary, LeaseView, Leased};
use crate::requests::*;
use crate::schedule::{ScheduleView, SyncedSchedules};
use crate::secret::{HIDDEN, Json};
use crate::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};

impl Grants {
    /// Whether it sees every reply whole.
    pub fn sees_all(&self) -> bool {
        self.reads() && self.needs.is_none()
    }

    fn reads(&self) -> bool {
        self.scopes.has(Scope::Read)
    }

    /// Hides what the token may not see.
    pub fn conceal(&self, reply: &mut Reply) {
        reply.conceal(self);
    }
}

/// Types that have names, counts and settings alone, or nothing.
macro_rules! plain {
    ($($type:ty)*) => { $(impl Concealed for $type {
        fn conceal(&mut self, _: &Grants) {}
    })* };
}
plain! {
    () Audited ChildView DoneMany Explained Extended FlowView LeaseSummary LimitView PoolView QueueView Stats Synced
    SyncedSchedules WorkerView
}

/// Types of contents: they are hidden from all who may not read.
macro_rules! contents {
    ($($type:ident $hide:expr;)*) => { $(impl Concealed for $type {
        fn conceal(&mut self, grants: &Grants) {
            if !grants.reads() {
                let hide: fn(&mut $type) = $hide;
                hide(self);
            }
        }
    })* };
}
contents! {
    JobView job;
    ResultView |result| {
        json(&mut result.result);
        text(&mut result.error);
        json(&mut result.progress);
        // It is a hash of the progress, by which a guess could be checked.
        result.progress_id = None;
    };
    ResourceView resource;
    ScheduleView |schedule| json(&mut schedule.settings.job.payload);
    Failures |failures| failures.items.iter_mut().for_each(|group| plain(&mut group.error));
    EventsRead |read| read.items.iter_mut().for_each(event);
}

impl<T: Concealed> Concealed for Box<T> {
    fn conceal(&mut self, grants: &Grants) {
        (**self).conceal(grants);
    }
}

impl<T: Concealed> Concealed for Vec<T> {
    fn conceal(&mut self, grants: &Grants) {
        self.iter_mut().for_each(|one| one.conceal(grants));
    }
}

impl<T: Concealed> Concealed for Listed<T> {
    fn conceal(&mut self, grants: &Grants) {
        self.items.conceal(grants);
    }
}

impl<T: Concealed> Concealed for Put<T> {
    fn conceal(&mut self, grants: &Grants) {
        self.view.conceal(grants);
    }
}

impl Concealed for PushedJob {
    fn conceal(&mut self, grants: &Grants) {
        self.job.conceal(grants);
    }
}

impl Concealed for Pushed {
    fn conceal(&mut self, grants: &Grants) {
        match self {
            Pushed::Whole(jobs) => pushed(jobs, grants),
            Pushed::Ids(_) => {}
        }
    }
}

impl Concealed for Settled {
    fn conceal(&mut self, grants: &Grants) {
        self.settled.iter_mut().for_each(|one| pushed(&mut one.pushed, grants));
        if let Some(Ok(leased)) = &mut self.lease {
            leased.conceal(grants);
        }
    }
}

impl Concealed for Leased {
    /// A repeat of a call answers its leases again: of a token with other queues they are not this one's.
    fn conceal(&mut self, grants: &Grants) {
        self.leases.retain(|lease| {
            lease.job.as_ref().is_none_or(|job| grants.may_use_queue(&job.queue).is_ok())
        });
        self.leases.conceal(grants);
    }
}

impl Concealed for LeaseView {
    /// The data of a pool that the token does not name stays in the store: the job may run, and cannot use it.
    fn conceal(&mut self, grants: &Grants) {
        let closed = self.resources.iter_mut().filter(|one| !grants.match_pool(&one.pool));
        closed.for_each(|one| one.data = hidden());
    }
}

impl Concealed for ParentView {
    /// `work` reads the results of the parents of its job.
    fn conceal(&mut self, grants: &Grants) {
        if let (ParentView::Job(job), false) =
            (self, grants.reads() || grants.scopes.has(Scope::Work))
        {
            json(&mut job.result);
            text(&mut job.error);
        }
    }
}

/// A job that was there before may be the job of another caller; a new one is the caller's own.
fn pushed(jobs: &mut [PushedJob], grants: &Grants) {
    let others = jobs.iter_mut().filter(|pushed| pushed.duplicate || pushed.replaced);
    others.for_each(|pushed| pushed.conceal(grants));
}

fn hidden() -> Json {
    Json::from(HIDDEN)
}

fn json(json: &mut Option<Json>) {
    if let Some(json) = json {
        *json = hidden();
    }
}

fn text(text: &mut Option<String>) {
    if let Some(text) = text {
        plain(text);
    }
}

fn plain(text: &mut String) {
    HIDDEN.clone_into(text);
}

fn job(job: &mut JobView) {
    json(&mut job.payload);
    json(&mut job.result);
    json(&mut job.progress);
    text(&mut job.error);
    job.errors.iter_mut().for_each(|one| plain(&mut one.error));
}

fn resource(resource: &mut ResourceView) {
    // Engines show the keys of the data; they are content all the same.
    if !resource.data.is_null() {
        resource.data = hidden();
    }
    text(&mut resource.reason);
}

fn event(event: &mut Event) {
    let about = &mut event.happened.about;
    text(&mut about.error);
    // The reason that a holder or an operator gave; those of other types are sentences of Tenure.
    let is_given =
        matches!(event.happened.kind, EventType::ResourceCooling | EventType::ResourceBanned);
    if let (true, Some(why)) = (is_given, &mut about.why) {
        *why = HIDDEN.into();
    }
}
