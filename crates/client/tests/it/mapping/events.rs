//! Reading events.

use tenure::core::access::TokenName;
use tenure::core::events::{EventFilter, EventId, EventType, GapWhy};
use tenure::core::names::{PoolName, ScheduleId};
use tenure::core::requests::*;
use tenure::{FlowName, JobId, LimitName, Span};

use super::words::*;
use super::{Row, row};

use tenure::core::requests::Reply as R;

const LATER: EventId = EventId { life: 10, number: 9 };

const EVENTS: &str = r#"{"items":[{"id":"a-7","at":"2026-12-01T09:55:00.000000Z",
    "type":"job.granted","job":"j1","queue":"q","flow":null,"schedule":null,"lease":"l1","fence":9,
    "holder":"w","attempt":2,"new":1},{"id":"a-8","at":"2026-12-01T09:55:00.000000Z",
    "type":"job.exploded","loud":true},{"id":"a-9","at":"2026-12-01T09:55:00.000000Z",
    "type":"limit.changed","limit":"site","by":"ann"}],"next":"a-9",
    "gap":{"after":"a-1","first":"a-7","why":"dropped"},"new":1}"#;

pub fn rows() -> Vec<Row> {
    let id = |number| EventId { life: 10, number };
    let filter = EventFilter {
        types: vec![EventType::JobGranted, EventType::FlowFinished],
        queue: Some(queue()),
        job: JobId::parse("j 1").ok(),
        flow: FlowName::parse("f").ok(),
        schedule: ScheduleId::parse("s").ok(),
        limit: LimitName::parse("site:x").ok(),
        pool: PoolName::parse("p").ok(),
    };
    vec![
        row!(
            ReadEvents {
                since: EventsSince::Id(id(1)),
                filter,
                max: 7,
                wait: Span::from_us(5_000_000)
            },
            "GET /v1/events?since=a-1&max=7&wait=5s&type=job.granted%2Cflow.finished&queue=gr%C3%B6%C3%9Fe%20b\
             &job=j%201&flow=f&schedule=s&limit=site:x&pool=p",
            "",
            200,
            EVENTS,
            // A type that this client does not know yet is skipped.
            R::ReadEvents(read) if read.items.len() == 2
                && read.items[0].happened.about.attempt == Some(2)
                && read.items[0].happened.about.by.is_none()
                && read.items[1].happened.about.by == TokenName::known("ann")
                && read.next.number == 9
                && read.gap.as_ref().is_some_and(|gap| gap.why == GapWhy::Dropped)
        ),
        row!(
            ReadEvents { since: EventsSince::First, ..ReadEvents::default() },
            "GET /v1/events?since=first&max=100",
            "",
            200,
            r#"{"items":[],"next":"0-0","gap":null}"#,
            R::ReadEvents(read) if read.next == EventId::default() && read.gap.is_none()
        ),
        row!(
            ReadEvents::default(),
            "GET /v1/events?max=100",
            "",
            200,
            r#"{"items":[],"next":"a-9"}"#,
            R::ReadEvents(read) if read.next == LATER
        ),
    ]
}
