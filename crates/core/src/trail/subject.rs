//! The part of a request that a line of the trail shows: the names in it, and the settings that it sets.
//!
//! The match on requests names every operation: a new one does not compile until somebody has decided what the trail
//! may show of it, and which request reads the settings before it. Settings are shown by a list of fields for each kind
//! of thing. A field that is in no list is hidden, so that a new field which holds a secret is not written by mistake.

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Map, Value};

use super::target_in_path;
use crate::decode::{AsBody, Queried, SentBody};
use crate::names::{JobRef, LimitName, PoolName, QueueName, ResourceId, ScheduleId};
use crate::requests::{
    GetJob, GetLimit, GetPool, GetQueue, GetResource, GetSchedule, JobFilter, Reply, Request,
};
use crate::secret::HIDDEN;

/// Fields whose values a line shows. A `payload`, `data`, `reason`, `gauge` or `job` is in no list.
const QUEUE: &[&str] =
    &["needs", "retry", "timeout", "retain", "max_waiting", "lost_delay", "shares", "show_payload"];
const LIMIT: &[&str] = &["concurrency", "rate", "gap", "quarantine"];
const POOL: &[&str] = &["quarantine", "cooldown", "rate", "max_uses", "pick"];
const RESOURCE: &[&str] = &["tags", "slots"];
const SCHEDULE: &[&str] = &[
    "owner",
    "cron",
    "zone",
    "every",
    "starts_at",
    "ends_at",
    "jitter",
    "overlap",
    "catch_up",
    "catch_up_max",
];
const JOB: &[&str] =
    &["priority", "needs", "group", "labels", "timeout", "expires_at", "run_at", "delay"];
const LATER: &[&str] = &["for", "until"];
const OBSERVED: &[&str] = &["external", "for"];
const NONE: &[&str] = &[];

/// A value whose text is longer than this is shown as its length.
const VALUE_BYTES_MAX: usize = 512;

/// The kind of change of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SettingsChange {
    /// The call says the new value of each field in it.
    Sets,
    /// All settings are forgotten.
    Forgets,
}

/// The names in a request, and the settings that it sets.
#[derive(Clone, PartialEq, Debug)]
pub struct TrailSubject {
    targets: Vec<String>,
    /// The new values, as they were sent. Never shown as they are: see [`changed`](Self::changed).
    sent: Map<String, Value>,
    shown: &'static [&'static str],
    change: SettingsChange,
    reads_before: Option<Box<Request>>,
}

impl TrailSubject {
    fn of(targets: Vec<String>) -> Self {
        let change = SettingsChange::Sets;
        TrailSubject { targets, sent: Map::new(), shown: NONE, change, reads_before: None }
    }

    /// With the request that reads the settings before the change.
    fn after(mut self, read: impl Into<Request>) -> Self {
        self.reads_before = Some(Box::new(read.into()));
        self
    }

    /// With the fields of a body, of which these are shown.
    fn sets(mut self, body: &impl SentBody, shown: &'static [&'static str]) -> Self {
        self.sent = object(&AsBody(body));
        self.shown = shown;
        self
    }

    /// With whole settings, of which these are shown.
    fn puts(mut self, settings: &impl Serialize, shown: &'static [&'static str]) -> Self {
        self.sent = object(settings);
        self.shown = shown;
        self
    }

    fn forgets(mut self, shown: &'static [&'static str]) -> Self {
        self.shown = shown;
        self.change = SettingsChange::Forgets;
        self
    }

    /// The request whose reply shows the settings before this one changes them; `None`: it changes none that a line
    /// shows.
    pub fn reads_before(&self) -> Option<&Request> {
        self.reads_before.as_deref()
    }

    /// All targets, as `kind:name`.
    pub fn targets(&self) -> impl Iterator<Item = String> {
        self.targets.iter().cloned()
    }

    /// The changed fields, each with `old`, `new` or both. `before`: the reply to
    /// [`reads_before`](Self::reads_before), if there was one. Fields that keep their values are left out.
    pub fn changed(&self, before: Option<&Reply>) -> Map<String, Value> {
        let old = before.and_then(own_settings_of);
        match self.change {
            SettingsChange::Forgets => {
                let known = old.unwrap_or_default().into_iter();
                let known = known.filter(|(name, old)| self.shows(name) && !old.is_null());
                known.map(|(name, old)| (name, pair(Some(cut(old)), None))).collect()
            }
            SettingsChange::Sets => {
                let one = |(name, new): (&String, &Value)| {
                    let old = old.as_ref().map(|old| old.get(name).unwrap_or(&Value::Null));
                    // Of a new thing the defaults are no change.
                    let stays = old.map_or(new.is_null(), |old| old == new);
                    let (old, new) = (self.show(name, old), self.show(name, Some(new)));
                    (!stays).then(|| (name.clone(), pair(old, new)))
                };
                self.sent.iter().filter_map(one).collect()
            }
        }
    }

    fn shows(&self, name: &str) -> bool {
        self.shown.contains(&name)
    }

    fn show(&self, name: &str, value: Option<&Value>) -> Option<Value> {
        match value? {
            Value::Null => Some(Value::Null),
            value if self.shows(name) => Some(cut(value.clone())),
            _ => Some(HIDDEN.into()),
        }
    }
}

fn pair(old: Option<Value>, new: Option<Value>) -> Value {
    let named = [("old", old), ("new", new)].into_iter();
    Value::Object(named.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn cut(value: Value) -> Value {
    match value.to_string().len() {
        bytes if bytes > VALUE_BYTES_MAX => format!("({bytes} bytes)").into(),
        _ => value,
    }
}

/// The fields of a value; none if it cannot be written as an object.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// The settings of a thing; `None` for a limit that shows those of its template: the first ones of its own are new, also
/// where they are equal.
fn own_settings_of(reply: &Reply) -> Option<Map<String, Value>> {
    Some(match reply {
        Reply::GetQueue(view) => object(&view.settings),
        Reply::GetLimit(view) if !view.has_own_settings() => return None,
        Reply::GetLimit(view) => {
            let mut settings = object(&view.settings);
            // Its readings change by themselves, so that it is no value to compare.
            let gauge = view.gauge.as_ref().map_or(Value::Null, |_| HIDDEN.into());
            settings.insert("gauge".to_owned(), gauge);
            settings
        }
        Reply::GetPool(view) => object(&view.settings),
        Reply::GetResource(view) => object(view),
        Reply::GetSchedule(view) => object(&view.settings),
        Reply::GetJob(view) => object(view),
        _ => Map::new(),
    })
}

fn one(kind: &str, name: impl Display) -> Vec<String> {
    vec![format!("{kind}:{name}")]
}

fn job(job: &JobRef) -> TrailSubject {
    TrailSubject::of(one("job", job))
}

fn settings_of_queue(queue: &QueueName) -> TrailSubject {
    TrailSubject::of(one("queue", queue)).after(GetQueue { queue: queue.clone() })
}

fn settings_of_limit(limit: &LimitName) -> TrailSubject {
    TrailSubject::of(one("limit", limit)).after(GetLimit { limit: limit.clone() })
}

fn settings_of_pool(pool: &PoolName) -> TrailSubject {
    TrailSubject::of(one("pool", pool)).after(GetPool { pool: pool.clone() })
}

fn settings_of_resource(of: &PoolName, id: &ResourceId) -> TrailSubject {
    resource(of, id).after(GetResource { pool: of.clone(), resource: id.clone() })
}

fn settings_of_schedule(id: &ScheduleId) -> TrailSubject {
    schedule(id).after(GetSchedule { schedule: id.clone() })
}

fn resource(pool: &PoolName, resource: &ResourceId) -> TrailSubject {
    TrailSubject::of(one("pool", format_args!("{pool}/{resource}")))
}

fn resources<'r>(pool: &PoolName, all: impl Iterator<Item = &'r ResourceId>) -> TrailSubject {
    let mut targets = one("pool", pool);
    targets.extend(all.map(|resource| format!("pool:{pool}/{resource}")));
    TrailSubject::of(targets)
}

fn schedule(schedule: &ScheduleId) -> TrailSubject {
    TrailSubject::of(one("schedule", schedule))
}

/// The fields of a filter are its names. The text of an error is content.
fn filter(filter: &JobFilter) -> TrailSubject {
    let shown = |(name, value): (&'static str, String)| match name {
        "error" => format!("error:{HIDDEN}"),
        name => format!("{name}:{value}"),
    };
    TrailSubject::of(filter.pairs().into_iter().map(shown).collect())
}

impl Request {
    /// The part that a line of the trail shows. Requests that only read, and those of producers and workers, have no
    /// lines of their own unless they are refused, and show the thing in their path alone.
    pub fn trail_subject(&self) -> TrailSubject {
        match self {
            Request::PatchJob(patch) => {
                job(&patch.job).after(GetJob { job: patch.job.clone() }).sets(patch, JOB)
            }
            Request::DeleteJob(delete) => job(&delete.job),
            Request::CancelJob(cancel) => job(&cancel.job),
            Request::RetryJob(retry) => job(&retry.job),
            Request::RunJobNow(run) => job(&run.job),
            Request::CancelJobs(many) => filter(&many.filter),
            Request::RetryJobs(many) => filter(&many.filter),
            Request::DeleteJobs(many) => filter(&many.filter),
            Request::ForceLease(force) => TrailSubject::of(one("lease", &force.lease)),

            Request::PutQueue(put) => settings_of_queue(&put.queue).puts(&put.settings, QUEUE),
            Request::PatchQueue(patch) => settings_of_queue(&patch.queue).sets(patch, QUEUE),
            Request::DeleteQueue(delete) => settings_of_queue(&delete.queue).forgets(QUEUE),
            Request::PauseQueue(pause) => {
                TrailSubject::of(one("queue", &pause.queue)).sets(pause, LATER)
            }
            Request::ResumeQueue(resume) => TrailSubject::of(one("queue", &resume.queue)),

            Request::PutLimit(put) => {
                let mut subject = settings_of_limit(&put.limit).puts(&put.settings, LIMIT);
                let gauge = put.gauge.as_ref().map_or(Value::Null, |_| Value::from(true));
                subject.sent.insert("gauge".to_owned(), gauge);
                subject
            }
            Request::PatchLimit(patch) => settings_of_limit(&patch.limit).sets(patch, LIMIT),
            Request::DeleteLimit(delete) => settings_of_limit(&delete.limit).forgets(LIMIT),
            Request::PauseLimit(pause) => {
                TrailSubject::of(one("limit", &pause.limit)).sets(pause, LATER)
            }
            Request::ResumeLimit(resume) => TrailSubject::of(one("limit", &resume.limit)),
            Request::ObserveLimit(observe) => {
                TrailSubject::of(one("limit", &observe.limit)).sets(observe, OBSERVED)
            }

            Request::PutPool(put) => settings_of_pool(&put.pool).puts(&put.settings, POOL),
            Request::PatchPool(patch) => settings_of_pool(&patch.pool).sets(patch, POOL),
            Request::DeletePool(delete) => settings_of_pool(&delete.pool).forgets(POOL),
            Request::SyncResources(sync) => {
                resources(&sync.pool, sync.resources.iter().map(|one| &one.id))
            }
            Request::AddResources(add) => {
                resources(&add.pool, add.resources.iter().map(|one| &one.id))
            }
            Request::PatchResource(patch) => {
                settings_of_resource(&patch.pool, &patch.resource).sets(patch, RESOURCE)
            }
            Request::DeleteResource(delete) => {
                settings_of_resource(&delete.pool, &delete.resource).forgets(RESOURCE)
            }
            Request::CoolResource(cool) => resource(&cool.pool, &cool.resource).sets(cool, LATER),
            Request::BanResource(ban) => resource(&ban.pool, &ban.resource).sets(ban, NONE),
            Request::RestoreResource(restore) => resource(&restore.pool, &restore.resource),

            Request::CancelFlow(cancel) => TrailSubject::of(one("flow", &cancel.flow)),

            Request::PutSchedule(put) => {
                settings_of_schedule(&put.schedule).puts(&put.settings, SCHEDULE)
            }
            Request::PatchSchedule(patch) => {
                settings_of_schedule(&patch.schedule).sets(patch, SCHEDULE)
            }
            Request::DeleteSchedule(delete) => {
                settings_of_schedule(&delete.schedule).forgets(SCHEDULE)
            }
            Request::PauseSchedule(pause) => schedule(&pause.schedule).sets(pause, LATER),
            Request::ResumeSchedule(resume) => schedule(&resume.schedule),
            Request::RunScheduleNow(run) => {
                let mut subject = schedule(&run.schedule);
                subject.targets.extend(run.id.iter().map(|id| format!("job:{id}")));
                subject
            }
            Request::SyncSchedules(sync) => {
                let mut targets = one("owner", &sync.owner);
                targets.extend(sync.schedules.iter().map(|(id, _)| format!("schedule:{id}")));
                TrailSubject::of(targets)
            }

            Request::Push(_)
            | Request::GetJob(_)
            | Request::ListJobs(_)
            | Request::GetResult(_)
            | Request::ListParents(_)
            | Request::ListChildren(_)
            | Request::ExplainJob(_)
            | Request::Lease(_)
            | Request::Extend(_)
            | Request::Settle(_)
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
            | Request::Audit(_) => {
                let named = target_in_path(self.spec().path, &self.names());
                TrailSubject::of(named.into_iter().collect())
            }
        }
    }
}
