//! The bodies of the calls that change settings and jobs: absent, `null` or a value, each of which
//! means something else.

use serde::Serialize;
use tenure_core::job::{Labels, Need, Retry, When};
use tenure_core::names::{Group, Tag};
use tenure_core::requests::{Patch, PatchJob, PatchLimit, PatchPool, PatchQueue, PatchResource};
use tenure_core::secret::Json;
use tenure_core::settings::{Pick, Rate};
use tenure_core::time::{Moment, Span};

/// A field of a patch: absent, null or a value.
fn field<T>(patch: &Patch<T>) -> Option<Option<&T>> {
    match patch {
        Patch::Keep => None,
        Patch::Reset => Some(None),
        Patch::Set(value) => Some(Some(value)),
    }
}

macro_rules! patch_body {
    ($(#[$doc:meta])* $body:ident of $patch:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Serialize)]
        pub struct $body<'a> {
            $(#[serde(skip_serializing_if = "Option::is_none")] $field: Option<Option<&'a $type>>,)*
        }
        impl<'a> From<&'a $patch> for $body<'a> {
            fn from(patch: &'a $patch) -> Self {
                $body { $($field: field(&patch.$field)),* }
            }
        }
    };
}

patch_body! {
    /// Changes of a queue.
    QueueChange of PatchQueue {
        needs: Vec<Need>,
        retry: Retry,
        timeout: Span,
        retain: Span,
        max_waiting: u32,
        shares: std::collections::BTreeMap<Group, u32>,
    }
}
patch_body! {
    /// Changes of a limit.
    LimitChange of PatchLimit { concurrency: u32, rate: Rate, gap: Span, quarantine: Span }
}
patch_body! {
    /// Changes of a pool.
    PoolChange of PatchPool {
        quarantine: Span,
        cooldown: Span,
        rate: Rate,
        max_uses: u32,
        pick: Pick,
    }
}
patch_body! {
    /// Changes of a resource.
    ResourceChange of PatchResource { data: Json, tags: Vec<Tag>, slots: u32 }
}
patch_body! {
    /// Changes of a job, beside when it may run.
    JobFields of PatchJob {
        priority: i8,
        payload: Json,
        needs: Vec<Need>,
        group: Group,
        labels: Labels,
        timeout: Span,
        expires_at: Moment,
    }
}

/// Changes of a job.
#[derive(Serialize)]
pub struct JobChange<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Option<Moment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(flatten)]
    fields: JobFields<'a>,
}

impl<'a> From<&'a PatchJob> for JobChange<'a> {
    fn from(patch: &'a PatchJob) -> Self {
        let (run_at, delay) = match patch.when {
            Patch::Keep => (None, None),
            Patch::Reset | Patch::Set(When::Now) => (Some(None), None),
            Patch::Set(When::At(at)) => (Some(Some(at)), None),
            Patch::Set(When::In(span)) => (None, Some(span)),
        };
        JobChange { run_at, delay, fields: JobFields::from(patch) }
    }
}
