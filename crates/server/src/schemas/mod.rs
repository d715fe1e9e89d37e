//! The schemas that the OpenAPI document names: bodies of requests, and answers.
//!
//! The fields of bodies come from the table of `tenure_core::decode`, which reads and checks them. The fields of answers
//! come from the views that are written as answers; [`by_hand`] has those that are written otherwise.

mod by_hand;
mod given;

use serde_json::{Map, Value, json};
use tenure_core::access::Scope;
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::events::{EventType, GapWhy};
use tenure_core::flow::{FlowState, Gone, ParentState};
use tenure_core::job::JobState;
use tenure_core::lease::ReasonKind;
use tenure_core::refusal::Code;
use tenure_core::view::{Schema, ShownField, View, ViewSpec, items, named, words};

pub(crate) use self::given::plain as kind;

macro_rules! specs {
    ($($root:ident $(:: $module:ident)* { $($view:ident)* })*) => {{
        let mut specs = Vec::new();
        $({
            use $root $(:: $module)* ::{$($view),*};
            specs.extend([$($view::spec()),*]);
        })*
        specs
    }};
}

/// The views whose schemas are made of nothing else.
fn views() -> Vec<ViewSpec> {
    specs! {
        crate::answer::lease { Token }
        crate::routes::me { Me }
        crate::routes::system { Alive Ready Version }
        tenure_calendar { Preview }
        tenure_core::events { Gap }
        tenure_core::flow { ChildView FlowCounts FlowView ParentJob }
        tenure_core::gauge { GaugeReading GaugeView }
        tenure_core::job { JobError JobView MadeBy ResultView }
        tenure_core::lease {
            Explained Extended ExtendedLease HeldResource LeaseSummary LeaseView LeasedResource Reason RunningLease
            SettledLease
        }
        tenure_core::refusal { Problem }
        tenure_core::requests {
            Audited DoneMany EventStats EventsRead FailureGroup Failures ScheduleStats Stats StoreStats TrailEnd
            WorkerView
        }
        tenure_core::schedule { LastEnded LastFired ScheduleView SyncedSchedules }
        tenure_core::settings { Holder LimitView PoolView QueueCounts QueueView ResourceView Synced Waiter }
        tenure_core::trail { TrailLine }
    }
}

/// All fields of a view. A field of its own hides the setting of its name: an answer shows a gauge with its readings.
fn fields(view: ViewSpec) -> Vec<ShownField> {
    let ViewSpec { mut fields, settings, .. } = view;
    let mut settings = settings.map(given::shown_fields).unwrap_or_default();
    settings.retain(|setting| fields.iter().all(|own| own.name != setting.name));
    fields.append(&mut settings);
    fields
}

/// An object with these fields. The fields that are always there are required.
fn object(fields: Vec<ShownField>) -> Schema {
    let always = fields.iter().filter(|field| field.always);
    let required: Vec<&str> = always.map(|field| field.name).collect();
    // A description stands beside a reference, too: JSON Schema 2020-12, which OpenAPI 3.1 uses, allows that.
    let described = |ShownField { name, mut schema, sentence, .. }| {
        schema["description"] = sentence.into();
        (name.to_owned(), schema)
    };
    let mut object = json!({"type": "object"});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object["properties"] = fields.into_iter().map(described).collect::<Map<_, _>>().into();
    object
}

/// One item, or an array of 1 to `ITEMS_MAX`.
fn one_or_many(item: &str) -> Schema {
    let many = json!({"type": "array", "items": named(item), "minItems": 1, "maxItems": ITEMS_MAX});
    json!({"oneOf": [named(item), many]})
}

/// All schemas by name.
pub(crate) fn all() -> Value {
    let mut all = Map::new();
    given::add(&mut all);
    for view in views() {
        all.insert(view.schema.to_owned(), object(fields(view)));
    }
    by_hand::add(&mut all);
    let parent_states = JobState::ALL.map(ParentState::There).into_iter();
    let parent_states = parent_states.chain([ParentState::Gone(Gone::Gone)]);
    for (name, schema) in [
        ("JobState", words(&JobState::ALL.map(JobState::as_str))),
        ("FlowState", words(&FlowState::ALL.map(FlowState::as_str))),
        ("ParentState", words(&parent_states.map(ParentState::as_str).collect::<Vec<_>>())),
        ("GapWhy", words(&GapWhy::ALL.map(GapWhy::as_str))),
        ("Code", words(&Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>())),
        ("Scope", words(&Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>())),
        ("EventType", words(&EventType::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>())),
        ("ReasonKind", json!({"type": "string", "enum": ReasonKind::KNOWN})),
        ("NewJobs", one_or_many("NewJob")),
        ("NewResources", one_or_many("NewResource")),
        ("ResourceSet", items(named("NewResource"))),
        ("QueuePatch", given::patch("QueueSettings", &mut all)),
        ("LimitPatch", given::patch("LimitSettings", &mut all)),
        ("PoolPatch", given::patch("PoolSettings", &mut all)),
        ("SchedulePatch", given::patch("ScheduleSettings", &mut all)),
        ("ScheduleItem", given::item("ScheduleSettings", "id", &mut all)),
        ("ScheduleSet", items(named("ScheduleItem"))),
    ] {
        all.insert(name.to_owned(), schema);
    }
    Value::Object(all)
}
