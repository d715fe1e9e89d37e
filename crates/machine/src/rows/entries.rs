//! Stored events: those of one batch together, in a small and lossless form.
//!
//! Each event stores only its differences from the one before: type, holder and queue are mostly the same. Fields are
//! stored by their index in [`Field::ALL`], so that list only grows at its end; types are stored by name.

use crate::rows::codec::{Reader, Writer};
use crate::rows::stored::outcome_of;
use std::borrow::Cow;
use tenure_core::access::TokenName;
use tenure_core::events::{About, BlockedOn, EventType, Field, Happened};
use tenure_core::flow::FlowCounts;
use tenure_core::job::Outcome;
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, JobId, LimitName, PoolName, QueueName, ResourceId, ScheduleId};
use tenure_core::time::Moment;

/// Encodes the events of one batch.
pub fn encode_events(events: &[Happened]) -> Vec<u8> {
    let mut out = Writer::with_capacity(64 * events.len());
    out.u64(events.len() as u64);
    let nothing =
        Happened { at: Moment::ZERO, kind: EventType::JobPushed, about: About::default() };
    let mut before = &nothing;
    for (n, event) in events.iter().enumerate() {
        if n > 0 && event.kind == before.kind {
            out.byte(0);
        } else {
            out.byte(1);
            out.text(event.kind.as_str());
        }
        out.moment(Moment::from_us(event.at.us().wrapping_sub(before.at.us())));
        let (mut there, mut again) = (0u32, 0u32);
        for field in event.about.fields() {
            there |= bit(field);
            if is_same(field, &event.about, &before.about) {
                again |= bit(field);
            }
        }
        out.u32(there);
        out.u32(again);
        for field in event.about.fields() {
            if again & bit(field) == 0 {
                write(&mut out, field, &event.about);
            }
        }
        before = event;
    }
    out.finish()
}

/// Decodes the bytes of [`encode_events`]; `None` for bytes of another form.
pub fn decode_events(bytes: &[u8]) -> Option<Vec<Happened>> {
    let mut input = Reader(bytes);
    let count = usize::try_from(input.u64()?).ok()?;
    let mut events: Vec<Happened> = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let before = events.last();
        let kind = match input.byte()? {
            0 => before?.kind,
            1 => EventType::parse(input.text()?)?,
            _ => return None,
        };
        let since = before.map_or(0, |before| before.at.us());
        let at = Moment::from_us(since.wrapping_add(input.moment()?.us()));
        let (there, again) = (input.u32()?, input.u32()?);
        let mut about = About::default();
        for field in Field::ALL.iter().copied().filter(|field| there & bit(*field) != 0) {
            if again & bit(field) != 0 {
                repeat(field, &mut about, &before?.about);
            } else {
                read(&mut input, field, &mut about)?;
            }
        }
        events.push(Happened { at, kind, about });
    }
    input.is_at_end().then_some(events)
}

fn bit(field: Field) -> u32 {
    1 << field as u32
}

const _: () = assert!(Field::ALL.len() <= u32::BITS as usize, "each field has a bit");

macro_rules! each_field {
    ($($field:ident)*) => {
        fn is_same(field: Field, one: &About, other: &About) -> bool {
            match field { $(Field::$field => one.$field == other.$field),* }
        }
        fn repeat(field: Field, about: &mut About, before: &About) {
            match field { $(Field::$field => about.$field.clone_from(&before.$field)),* }
        }
        fn write(out: &mut Writer, field: Field, about: &About) {
            match field {
                $(Field::$field => if let Some(value) = &about.$field { value.write(out) }),*
            }
        }
        fn read(input: &mut Reader<'_>, field: Field, about: &mut About) -> Option<()> {
            match field { $(Field::$field => about.$field = Some(Value::read(input)?)),* }
            Some(())
        }
    };
}
each_field! {
    job queue flow schedule why on lease fence holder attempt run_at error outcome limit pool resource until external
    moment n counts by
}

/// The encoding of a field's value.
trait Value: Sized {
    fn write(&self, out: &mut Writer);
    fn read(input: &mut Reader<'_>) -> Option<Self>;
}

macro_rules! names {
    ($($name:ident)*) => {$(
        impl Value for $name {
            fn write(&self, out: &mut Writer) {
                out.text(self.as_str());
            }
            fn read(input: &mut Reader<'_>) -> Option<Self> {
                // Includes names that an earlier release accepted and this one refuses.
                $name::known(input.text()?).ok()
            }
        }
    )*};
}
names! { JobId QueueName FlowName ScheduleId LimitName PoolName ResourceId }

impl Value for String {
    fn write(&self, out: &mut Writer) {
        out.text(self);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.text().map(str::to_owned)
    }
}

impl Value for TokenName {
    fn write(&self, out: &mut Writer) {
        out.text(self.as_str());
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        TokenName::known(input.text()?)
    }
}

impl Value for Cow<'static, str> {
    fn write(&self, out: &mut Writer) {
        out.text(self);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        String::read(input).map(Cow::Owned)
    }
}

impl Value for u64 {
    fn write(&self, out: &mut Writer) {
        out.u64(*self);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.u64()
    }
}

impl Value for u32 {
    fn write(&self, out: &mut Writer) {
        out.u32(*self);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.u32()
    }
}

impl Value for Fence {
    fn write(&self, out: &mut Writer) {
        out.u64(self.get());
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.u64().map(Fence::new)
    }
}

impl Value for Moment {
    fn write(&self, out: &mut Writer) {
        out.moment(*self);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.moment()
    }
}

impl Value for Outcome {
    fn write(&self, out: &mut Writer) {
        out.byte(*self as u8);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        outcome_of(input.byte()?)
    }
}

impl Value for BlockedOn {
    fn write(&self, out: &mut Writer) {
        let (kind, name) = match self {
            BlockedOn::Limit(limit) => (0, limit.as_str()),
            BlockedOn::Pool(pool) => (1, pool.as_str()),
        };
        out.byte(kind);
        out.text(name);
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        match input.byte()? {
            0 => Value::read(input).map(BlockedOn::Limit),
            1 => Value::read(input).map(BlockedOn::Pool),
            _ => None,
        }
    }
}

impl Value for FlowCounts {
    fn write(&self, out: &mut Writer) {
        for count in [self.unfinished, self.succeeded, self.failed, self.cancelled] {
            out.u64(count);
        }
    }
    fn read(input: &mut Reader<'_>) -> Option<Self> {
        Some(FlowCounts {
            unfinished: input.u64()?,
            succeeded: input.u64()?,
            failed: input.u64()?,
            cancelled: input.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let named = || About {
            job: JobId::parse("a").ok(),
            queue: QueueName::parse("q").ok(),
            ..About::default()
        };
        let event = |at: u64, kind, about| Happened { at: Moment::from_us(at), kind, about };
        let pushed = event(7, EventType::JobPushed, named());
        let every = About {
            flow: FlowName::parse("f").ok(),
            schedule: ScheduleId::parse("s").ok(),
            why: Some("due".into()),
            on: PoolName::parse("p").ok().map(BlockedOn::Pool),
            lease: Some("l".to_owned()),
            fence: Some(Fence::new(9)),
            holder: Some("w".to_owned()),
            attempt: Some(3),
            run_at: Some(Moment::from_us(5)),
            error: Some("no".to_owned()),
            outcome: Some(Outcome::Lost),
            limit: LimitName::parse("site:x").ok(),
            pool: PoolName::parse("p").ok(),
            resource: ResourceId::parse("r").ok(),
            until: Some(Moment::MAX),
            external: Some(4),
            moment: Some(Moment::from_us(8)),
            n: Some(2),
            counts: Some(FlowCounts { unfinished: 1, succeeded: 2, failed: 3, cancelled: 4 }),
            by: TokenName::known("ann"),
            ..named()
        };
        let other = About { job: JobId::parse("b").ok(), ..every.clone() };
        let events = vec![
            pushed.clone(),
            pushed,
            // The clock was set back between them.
            event(3, EventType::JobGranted, every.clone()),
            event(3, EventType::JobGranted, other),
            event(4, EventType::EngineDeaf, About::default()),
            event(4, EventType::JobGranted, every),
        ];
        let bytes = encode_events(&events);
        assert_eq!(decode_events(&bytes), Some(events));
        for cut in 0..bytes.len() {
            assert_eq!(decode_events(&bytes[..cut]), None, "{cut} of {} bytes", bytes.len());
        }
        assert_eq!(decode_events(&encode_events(&[])), Some(Vec::new()));
    }

    #[test]
    fn events_of_an_earlier_release_have_no_caller() {
        let about = About { queue: QueueName::parse("q").ok(), ..About::default() };
        let event = |kind| Happened { at: Moment::from_us(7), kind, about: about.clone() };
        let events = vec![event(EventType::QueuePaused), event(EventType::QueueResumed)];
        let bytes = b"\x02\x01\x0cqueue.paused\x07\x02\x00\x01q\x01\x0dqueue.resumed\x00\x02\x02";
        assert_eq!(decode_events(bytes).as_ref(), Some(&events));
        assert_eq!(encode_events(&events), bytes, "nor do they take more bytes now");
    }

    #[test]
    fn an_event_like_the_one_before_takes_few_bytes() {
        let pushed = |n: usize| {
            let (job, queue) = (JobId::parse(&format!("job-{n:06}")), QueueName::parse("crawl"));
            let about = About { job: job.ok(), queue: queue.ok(), ..About::default() };
            Happened {
                at: Moment::from_us(1_800_000_000_000_000),
                kind: EventType::JobPushed,
                about,
            }
        };
        let events: Vec<Happened> = (0..100).map(pushed).collect();
        assert!(encode_events(&events).len() < 100 * 16 + 64);
    }
}
