//! Events of a namespace, as values. Each has a type, and carries only the fields that the table of its type names. An
//! event never carries any part of a payload, a result, a label or the data of a resource.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::access::TokenName;
use crate::bounds::EVENT_ERROR_BYTES;
use crate::flow::FlowCounts;
use crate::job::Outcome;
use crate::lease::Fence;
use crate::names::{FlowName, JobId, LimitName, PoolName, QueueName, ResourceId, ScheduleId};
use crate::sentences::NameRefusal;
use crate::time::Moment;
use crate::view;
use crate::words;

/// The place of an event in the stream of its namespace: the *life* of the stream, and a number. Numbers have no gaps.
/// Another life means that the store may have forgotten events. Clients treat the text as opaque.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventId {
    /// A stamp that is never used again: the time at which the stream began or may have lost events.
    pub life: u64,
    /// The first event of a stream has 1; 0 is the place before it.
    pub number: u64,
}

impl EventId {
    /// The place before this event: a reader that goes on from there begins with this event.
    pub fn before(self) -> Self {
        EventId { number: self.number.saturating_sub(1), ..self }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.life, self.number)
    }
}

impl FromStr for EventId {
    type Err = NameRefusal;
    /// Takes only the form that [`Display`](fmt::Display) writes: no server ever made another one.
    fn from_str(text: &str) -> Result<Self, NameRefusal> {
        let read = || {
            let (life, number) = text.split_once('-')?;
            let id =
                EventId { life: u64::from_str_radix(life, 16).ok()?, number: number.parse().ok()? };
            (id.to_string() == text).then_some(id)
        };
        read().ok_or(NameRefusal::EventId)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom("no id of an event"))
    }
}

crate::schemas!(Event, EventId, EventType, BlockedOn, GapWhy);

/// The limit or pool that a job lacks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// A limit without a free permit or token.
    Limit(LimitName),
    /// A pool without a free resource.
    Pool(PoolName),
}

macro_rules! fields {
    ($($(#[doc = $sentence:literal])* $(#[serde($($serde:tt)*)])? $field:ident: $type:ty,)*) => {
        view! {
            /// The fields of an event beside `id`, `at` and `type`. Each type has the fields that the table of types
            /// names, and any type may have `by`; all others are absent.
            #[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
            #[serde(default)]
            pub struct About {
                $($(#[doc = $sentence])* $(#[serde($($serde)*)])? pub $field: Option<$type>,)*
            }
        }

        /// A field of an event, beside `id`, `at` and `type`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(non_camel_case_types)]
        pub enum Field { $($field),* }

        impl Field {
            pub const ALL: &[Field] = &[$(Field::$field),*];

            /// Its name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$field => stringify!($field)),* }
            }
        }

        impl About {
            fn write<M: SerializeMap>(&self, field: Field, map: &mut M) -> Result<(), M::Error> {
                match field {
                    $(Field::$field => map.serialize_entry(stringify!($field), &self.$field)),*
                }
            }

            /// The fields that are present.
            pub fn fields(&self) -> impl Iterator<Item = Field> {
                [$(self.$field.is_some().then_some(Field::$field)),*].into_iter().flatten()
            }
        }
    };
}

// A store may keep fields by their position: new ones go to the end.
fields! {
    /// The id of the job.
    job: JobId,
    /// The queue of the job, or the queue that was changed.
    queue: QueueName,
    /// The flow that the job belongs to, or that is finished.
    flow: FlowName,
    /// The schedule that made the job, or that was changed, fired, skipped, missed or moved.
    schedule: ScheduleId,
    /// job.ready: due, parents, retry or run_now. schedule.skipped: overlap, queue_full or invalid_field. Of other
    /// types a sentence.
    why: Cow<'static, str>,
    /// What the job at the head of its line lacks.
    on: BlockedOn,
    /// The id of the lease that was granted or ended.
    lease: String,
    /// The fence of that lease.
    fence: Fence,
    /// The id of its worker; null if its caller named none.
    holder: String,
    /// Which attempt of the job this was, from 1.
    attempt: u32,
    /// When the job may run again.
    run_at: Moment,
    /// The last 256 bytes of the error.
    error: String,
    /// How the lease ended: the outcome of its settle, or lost.
    outcome: Outcome,
    /// The limit that the event is about.
    limit: LimitName,
    /// The pool that the event is about.
    pool: PoolName,
    /// The resource of that pool.
    resource: ResourceId,
    /// The end of a pause or a rest; null if it has none.
    until: Moment,
    /// Permits of the limit that are in use outside.
    external: u64,
    /// The moment of the schedule that fired, was skipped or missed, or to which it was moved.
    moment: Moment,
    /// How many moments.
    n: u64,
    /// The jobs of the flow by where they stand.
    counts: FlowCounts,
    /// The name of the token whose call made this event, if the call needed operate or admin; absent otherwise.
    // An event is written by hand: this attribute is for the document, in which the field is never null.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: TokenName,
}

macro_rules! types {
    ($($kind:ident $name:literal [$($field:ident)*],)*) => {
        /// The type of an event.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum EventType { $($kind),* }

        impl EventType {
            /// All types, in the order of the reference.
            pub const ALL: &[EventType] = &[$(EventType::$kind),*];

            /// The word of the contract, as in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(EventType::$kind => $name),* }
            }

            /// The fields of this type beside `id`, `at`, `type` and `by`, in the order of JSON.
            pub const fn fields(self) -> &'static [Field] {
                match self { $(EventType::$kind => &[$(Field::$field),*]),* }
            }
        }
    };
}

types! {
    JobPushed "job.pushed" [job queue flow schedule],
    JobReplaced "job.replaced" [job queue flow schedule],
    JobChanged "job.changed" [job queue flow schedule],
    JobDeleted "job.deleted" [job queue flow schedule],
    JobReady "job.ready" [job queue flow schedule why],
    JobBlocked "job.blocked" [job queue flow schedule on],
    JobGranted "job.granted" [job queue flow schedule lease fence holder attempt],
    JobSucceeded "job.succeeded" [job queue flow schedule attempt error lease],
    JobFailed "job.failed" [job queue flow schedule attempt error lease],
    JobCancelled "job.cancelled" [job queue flow schedule attempt error lease],
    JobRetrying "job.retrying" [job queue flow schedule attempt lease run_at error],
    JobSnoozed "job.snoozed" [job queue flow schedule attempt lease run_at error],
    JobReleased "job.released" [job queue flow schedule attempt lease run_at error],
    JobLost "job.lost" [job queue flow schedule attempt lease run_at error],
    JobProgress "job.progress" [job queue flow schedule attempt lease],
    JobCancelRequested "job.cancel_requested" [job queue flow schedule lease],
    LeaseGranted "lease.granted" [lease fence holder],
    LeaseEnded "lease.ended" [lease fence holder outcome],
    LimitChanged "limit.changed" [limit],
    LimitDeleted "limit.deleted" [limit],
    LimitPaused "limit.paused" [limit until],
    LimitResumed "limit.resumed" [limit],
    LimitObserved "limit.observed" [limit until external],
    GaugeFailed "gauge.failed" [limit why],
    GaugeReadAgain "gauge.read_again" [limit],
    QueueChanged "queue.changed" [queue],
    QueueDeleted "queue.deleted" [queue],
    QueuePaused "queue.paused" [queue until],
    QueueResumed "queue.resumed" [queue],
    PoolChanged "pool.changed" [pool],
    PoolSynced "pool.synced" [pool],
    PoolDeleted "pool.deleted" [pool],
    ResourceCooling "resource.cooling" [pool resource until why],
    ResourceBanned "resource.banned" [pool resource why],
    ResourceRestored "resource.restored" [pool resource],
    ResourceRetired "resource.retired" [pool resource],
    ScheduleChanged "schedule.changed" [schedule],
    ScheduleDeleted "schedule.deleted" [schedule],
    ScheduleFired "schedule.fired" [schedule job moment],
    ScheduleSkipped "schedule.skipped" [schedule moment why n],
    ScheduleMissed "schedule.missed" [schedule moment n],
    ScheduleMoved "schedule.moved" [schedule job moment],
    ScheduleEnded "schedule.ended" [schedule],
    SchedulePaused "schedule.paused" [schedule until],
    ScheduleResumed "schedule.resumed" [schedule],
    FlowFinished "flow.finished" [flow counts],
    ClockBehind "clock.behind" [why until],
    EngineDeaf "engine.deaf" [why until],
    EngineLearning "engine.learning" [why until],
}

impl EventType {
    /// The type with this name.
    pub fn parse(name: &str) -> Option<EventType> {
        EventType::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// The types that a name stands for: one, or a family (`job.*`). `None` if there is no such type.
    pub fn named(name: &str) -> Option<Vec<EventType>> {
        let named: Vec<EventType> = match name.strip_suffix(".*") {
            Some(family) => {
                let of = |kind: &EventType| kind.family() == family;
                EventType::ALL.iter().copied().filter(of).collect()
            }
            None => EventType::parse(name).into_iter().collect(),
        };
        (!named.is_empty()).then_some(named)
    }

    /// The part before the dot: `job` of `job.pushed`.
    pub fn family(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        EventType::parse(&name).ok_or_else(|| serde::de::Error::custom("no type of events"))
    }
}

/// An event that has no place in a stream yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    /// By the engine's clock.
    pub at: Moment,
    pub kind: EventType,
    /// The fields that its type has, and `by`.
    pub about: About,
}

impl Happened {
    /// Makes an event; `about` has no field that the type lacks.
    pub fn new(at: Moment, kind: EventType, about: About) -> Self {
        debug_assert!(
            about.fields().all(|field| field == Field::by || kind.fields().contains(&field)),
            "an event says what its type does not have: {kind} {about:?}"
        );
        Happened { at, kind, about }
    }
}

/// An event at its place in the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The same for every reader, also after a restart.
    pub id: EventId,
    pub happened: Happened,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Happened { at, kind, about } = &self.happened;
        let fields = 3 + kind.fields().len() + usize::from(about.by.is_some());
        let mut map = serializer.serialize_map(Some(fields))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("at", at)?;
        map.serialize_entry("type", kind.as_str())?;
        for field in kind.fields() {
            about.write(*field, &mut map)?;
        }
        // Not null in all other events: most have no caller, and readers of streams pay for each byte.
        if about.by.is_some() {
            about.write(Field::by, &mut map)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            id: EventId,
            at: Moment,
            #[serde(rename = "type")]
            kind: EventType,
            #[serde(flatten)]
            about: About,
        }
        let Read { id, at, kind, about } = Read::deserialize(deserializer)?;
        Ok(Event { id, happened: Happened { at, kind, about } })
    }
}

/// The end of an error as events carry it: at most 256 bytes, cut before a character.
pub fn error_end(error: &str) -> String {
    let cut = error.len().saturating_sub(EVENT_ERROR_BYTES);
    let from = (cut..=error.len()).find(|at| error.is_char_boundary(*at)).unwrap_or(error.len());
    error[from..].to_owned()
}

/// Filter of a reader; an event must match every field that is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// One of these types; empty for any type.
    pub types: Vec<EventType>,
    /// Events about this queue.
    pub queue: Option<QueueName>,
    /// Events about this job.
    pub job: Option<JobId>,
    /// Events about this flow.
    pub flow: Option<FlowName>,
    /// Events about this schedule.
    pub schedule: Option<ScheduleId>,
    /// Events about this limit, also those of jobs that lack it.
    pub limit: Option<LimitName>,
    /// Events about this pool, also those of jobs that lack it.
    pub pool: Option<PoolName>,
}

impl EventFilter {
    /// True if the event matches.
    pub fn wants(&self, event: &Happened) -> bool {
        let Happened { kind, about, .. } = event;
        fn is<T: PartialEq>(wanted: &Option<T>, there: &Option<T>) -> bool {
            wanted.is_none() || wanted == there
        }
        let lacks_limit = match &about.on {
            Some(BlockedOn::Limit(limit)) => Some(limit),
            _ => None,
        };
        let lacks_pool = match &about.on {
            Some(BlockedOn::Pool(pool)) => Some(pool),
            _ => None,
        };
        (self.types.is_empty() || self.types.contains(kind))
            && is(&self.queue, &about.queue)
            && is(&self.job, &about.job)
            && is(&self.flow, &about.flow)
            && is(&self.schedule, &about.schedule)
            && (is(&self.limit, &about.limit) || self.limit.as_ref() == lacks_limit)
            && (is(&self.pool, &about.pool) || self.pool.as_ref() == lacks_pool)
    }
}

words! {
    /// The reason why a reader cannot go on where it stopped.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GapWhy {
        /// The next events are not kept any more.
        Dropped = "dropped",
        /// The store may have forgotten events.
        Restarted = "restarted",
    }
}

view! {
    /// Events that a reader has missed, or may have missed.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Gap {
        /// The since that was asked for.
        pub after: EventId,
        /// With which event it goes on.
        pub first: EventId,
        /// dropped: what came next is not kept any more. restarted: the store may have forgotten events.
        pub why: GapWhy,
    }
}

/// The range of events that the stream of a namespace holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamStands {
    /// The life of all its ids.
    pub life: u64,
    /// Number of the oldest event that is kept; `last + 1` if the stream is empty.
    pub first: u64,
    /// Number of the newest event; 0 if there was none.
    pub last: u64,
}

impl StreamStands {
    /// The place of the newest event; [`EventId::default`] while there is no stream.
    pub fn end(self) -> EventId {
        EventId { life: self.life, number: self.last }
    }

    /// The number after which a reader that has seen `after` goes on, and the gap before it. A reader that asked before
    /// the first event has seen no event of any life.
    pub fn resume(self, after: EventId) -> (u64, Option<Gap>) {
        let first = EventId { life: self.life, number: self.first };
        let is_of_nothing = after == EventId::default();
        let other_life = after.life != self.life && !is_of_nothing;
        let why = if other_life || after.number > self.last {
            GapWhy::Restarted
        } else if after.number + 1 < self.first {
            GapWhy::Dropped
        } else {
            return (after.number, None);
        };
        (first.before().number, Some(Gap { after, first, why }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(life: u64, number: u64) -> EventId {
        EventId { life, number }
    }

    #[test]
    fn an_id_is_read_as_it_is_written_and_in_no_other_way() {
        assert_eq!(id(0x6c1f, 184_467).to_string(), "6c1f-184467");
        assert_eq!("6c1f-184467".parse(), Ok(id(0x6c1f, 184_467)));
        assert_eq!("0-0".parse(), Ok(EventId::default()));
        for text in ["", "-", "6c1f", "6C1F-1", "06-1", "6-01", "6-+1", "6-1 ", "6--1", "g-1"] {
            assert_eq!(text.parse::<EventId>(), Err(NameRefusal::EventId), "{text:?}");
        }
        assert!(format!("1-{}0", u64::MAX).parse::<EventId>().is_err());
    }

    #[test]
    fn a_reader_goes_on_where_it_stopped_or_is_told_what_it_missed() {
        let stands = StreamStands { life: 7, first: 11, last: 20 };
        let gap = |after, why| (10, Some(Gap { after, first: id(7, 11), why }));
        assert_eq!(stands.resume(id(7, 20)), (20, None));
        assert_eq!(stands.resume(id(7, 10)), (10, None));
        assert_eq!(stands.resume(id(7, 9)), gap(id(7, 9), GapWhy::Dropped));
        assert_eq!(stands.resume(id(7, 21)), gap(id(7, 21), GapWhy::Restarted));
        assert_eq!(stands.resume(id(6, 15)), gap(id(6, 15), GapWhy::Restarted));
        assert_eq!(stands.resume(EventId::default()), gap(EventId::default(), GapWhy::Dropped));
        let whole = StreamStands { life: 7, first: 1, last: 3 };
        assert_eq!(whole.resume(EventId::default()), (0, None));
        let nothing = StreamStands { life: 0, first: 1, last: 0 };
        assert_eq!(nothing.resume(EventId::default()), (0, None));
        assert_eq!(nothing.end(), EventId::default());
    }

    #[test]
    fn an_event_has_the_fields_of_its_type_and_no_other() {
        let about = About {
            job: JobId::parse("a").ok(),
            queue: QueueName::parse("q").ok(),
            on: LimitName::parse("site:x").ok().map(BlockedOn::Limit),
            ..About::default()
        };
        let happened = Happened::new(Moment::ZERO, EventType::JobBlocked, about);
        let event = Event { id: id(1, 2), happened };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"id":"1-2","at":"1970-01-01T00:00:00.000000Z","type":"job.blocked","job":"a","queue":"q","flow":null,"schedule":null,"on":{"limit":"site:x"}}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn an_event_names_its_caller_if_there_is_one() {
        let about = |by| {
            let queue = QueueName::parse("q").ok();
            About { queue, by, ..About::default() }
        };
        for (by, shown) in [(TokenName::known("ann"), r#","by":"ann"}"#), (None, "}")] {
            let happened = Happened::new(Moment::ZERO, EventType::QueueResumed, about(by));
            let event = Event { id: id(1, 2), happened };
            let json = serde_json::to_string(&event).unwrap();
            let head = r#"{"id":"1-2","at":"1970-01-01T00:00:00.000000Z","type":"queue.resumed","queue":"q""#;
            assert_eq!(json, format!("{head}{shown}"));
            assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
        }
    }

    #[test]
    fn every_type_is_found_by_its_name_and_by_its_family() {
        for kind in EventType::ALL {
            assert_eq!(EventType::named(kind.as_str()), Some(vec![*kind]));
            let family = EventType::named(&format!("{}.*", kind.family())).unwrap();
            assert!(family.contains(kind) && family.iter().all(|k| k.family() == kind.family()));
        }
        for name in ["", "job", "job.", "job.exploded", "*", ".*", "jobs.*"] {
            assert_eq!(EventType::named(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_filter_wants_what_fits_all_that_it_names() {
        let about = About {
            job: JobId::parse("a").ok(),
            queue: QueueName::parse("q").ok(),
            on: PoolName::parse("p").ok().map(BlockedOn::Pool),
            ..About::default()
        };
        let event = Happened::new(Moment::ZERO, EventType::JobBlocked, about);
        let queue = QueueName::parse("q").ok();
        let of_queue = EventFilter { queue, ..EventFilter::default() };
        assert!(EventFilter::default().wants(&event) && of_queue.wants(&event));
        let pool = PoolName::parse("p").ok();
        let of_pool = EventFilter { pool, ..of_queue.clone() };
        assert!(of_pool.wants(&event));
        let types = vec![EventType::JobReady];
        assert!(!EventFilter { types, ..of_pool.clone() }.wants(&event));
        let limit = LimitName::parse("p").ok();
        assert!(!EventFilter { limit, ..of_pool }.wants(&event));
        let flow = FlowName::parse("f").ok();
        assert!(!EventFilter { flow, ..of_queue }.wants(&event));
    }

    #[test]
    fn an_error_is_cut_before_a_character() {
        assert_eq!(error_end("short"), "short");
        assert_eq!(error_end(&"x".repeat(300)).len(), EVENT_ERROR_BYTES);
        let text = format!("{}{}", "é".repeat(200), "x");
        assert_eq!(error_end(&text).len(), EVENT_ERROR_BYTES - 1);
        assert!(text.ends_with(&error_end(&text)));
    }
}
