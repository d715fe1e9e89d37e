//! All objects of the table, for documents.

use super::flows::AfterFields;
use super::gauges::GaugeFields;
use super::jobs::{JobPatchFields, NewJobFields, RetryOneFields, UniqueFields};
use super::leases::{ExtendFields, ExtendItemFields, LeaseFields, WorkerFields};
use super::limits::{LimitFields, ObservationFields};
use super::many::ManyFields;
use super::needs::NeedFields;
use super::object::{Described, ObjectSpec};
use super::pools::PoolFields;
use super::queues::QueueFields;
use super::rates::RateFields;
use super::resources::{BanFields, ResourceFields, ResourcePatchFields};
use super::retry::{BackoffFields, RetryFields};
use super::schedules::{RunNowFields, ScheduleFields, ScheduledJobFields};
use super::settle::{LimitVerdictFields, ResourceVerdictFields, SettleFields, SettleItemFields};
use super::times::LaterFields;
use super::timing::PreviewFields;

/// All objects of the API's bodies. [`ValueKind::Object`](super::ValueKind::Object) names one of them.
pub fn objects() -> Vec<ObjectSpec> {
    vec![
        NewJobFields::spec(),
        JobPatchFields::spec(),
        ManyFields::spec(),
        RetryOneFields::spec(),
        UniqueFields::spec(),
        RetryFields::spec(),
        BackoffFields::spec(),
        NeedFields::spec(),
        AfterFields::spec(),
        LeaseFields::spec(),
        WorkerFields::spec(),
        ExtendFields::spec(),
        ExtendItemFields::spec(),
        SettleFields::spec(),
        SettleItemFields::spec(),
        ResourceVerdictFields::spec(),
        LimitVerdictFields::spec(),
        QueueFields::spec(),
        LimitFields::spec(),
        RateFields::spec(),
        GaugeFields::spec(),
        ObservationFields::spec(),
        PoolFields::spec(),
        ResourceFields::spec(),
        ResourcePatchFields::spec(),
        BanFields::spec(),
        LaterFields::spec(),
        ScheduleFields::spec(),
        ScheduledJobFields::spec(),
        RunNowFields::spec(),
        PreviewFields::spec(),
    ]
}
