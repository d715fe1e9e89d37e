//! Events, from the entries of their stream: one entry a call, whose items are single events or one for many jobs
//! (`lua/machine/events.lua`). Ids of leases are made here.

use std::borrow::Cow;
use std::fmt;
use std::io::Cursor;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use tenure_core::events::{
    About, BlockedOn, Event, EventId, EventType, Field, Happened, StreamStands,
};
use tenure_core::flow::FlowCounts;
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, JobId, LimitName, PoolName, QueueName, ResourceId, ScheduleId};
use tenure_core::sentences::{StoredNote, clock_behind, deaf};
use tenure_core::time::{Moment, Span};

use super::{Blobs, Malformed};
use crate::alphabet::{door, event, outcome, run_event};
use crate::encode::FOREVER_US;
use crate::lease_id::{ANONYMOUS, Held, Named};

/// A page of the stream.
#[derive(Deserialize)]
pub(crate) struct EventsReply {
    #[serde(default)]
    life: u64,
    #[serde(default)]
    first: u64,
    #[serde(default)]
    last: u64,
    /// Each has the number of its last event, and the text that it is.
    #[serde(default)]
    entries: Vec<(u64, usize)>,
    /// There is no such namespace.
    #[serde(default)]
    pub absent: bool,
    /// The store may have forgotten something: a call that may write has to look first.
    #[serde(default)]
    pub look: bool,
}

impl EventsReply {
    /// Where the stream stands.
    pub(crate) fn stands(&self) -> StreamStands {
        if self.absent {
            return StreamStands { first: 1, ..StreamStands::default() };
        }
        StreamStands { life: self.life, first: self.first, last: self.last }
    }

    /// Whether it has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The events behind this number, in their order.
    pub(crate) fn events(&self, after: u64, blobs: &Blobs) -> Result<Vec<Event>, Malformed> {
        let mut events = Vec::new();
        for (last, text) in &self.entries {
            let happened = entry(blobs.get(*text)?, blobs)?;
            let first = (last + 1).checked_sub(happened.len() as u64).ok_or(WRONG)?;
            let numbered = (first..).zip(happened).filter(|(number, _)| *number > after);
            events.extend(numbered.map(|(number, happened)| Event {
                id: EventId { life: self.life, number },
                happened,
            }));
        }
        Ok(events)
    }
}

/// What a namespace keeps of its events.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventStatsReply {
    life: u64,
    first: u64,
    last: u64,
    bytes: u64,
}

impl From<EventStatsReply> for tenure_core::requests::EventStats {
    fn from(reply: EventStatsReply) -> Self {
        let EventStatsReply { life, first, last, bytes } = reply;
        let is_kept = bytes > 0;
        let id = |number| is_kept.then_some(EventId { life, number });
        Self { bytes, first: id(first), last: id(last) }
    }
}

const WRONG: Malformed = Malformed("an event");
/// What an entry begins with: when, and how many events.
const AT: usize = 7;
const HEAD: usize = AT + 4;
/// A fence, eight bytes, and a row, six.
const NAME: usize = 14;

/// Anything in an item. A text of the store need be none of ours: the end of an error may begin inside of a character.
#[derive(Clone, PartialEq, Debug)]
enum ItemValue {
    None,
    Text(Vec<u8>),
    Number(u64),
    List(Vec<ItemValue>),
}

impl<'de> Deserialize<'de> for ItemValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = ItemValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part of an event")
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<ItemValue, E> {
                Ok(ItemValue::None)
            }
            fn visit_unit<E: Error>(self) -> Result<ItemValue, E> {
                Ok(ItemValue::None)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<ItemValue, E> {
                Ok(ItemValue::Number(number))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<ItemValue, E> {
                u64::try_from(number).map(ItemValue::Number).map_err(E::custom)
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<ItemValue, E> {
                // The server packs a whole number above 2^53 so: for ever.
                Ok(ItemValue::Number(number as u64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ItemValue, E> {
                Ok(ItemValue::Text(text.as_bytes().to_vec()))
            }
            fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<ItemValue, E> {
                Ok(ItemValue::Text(text.to_vec()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ItemValue, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                Ok(ItemValue::List(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ItemValue, A::Error> {
                // An empty list may come as a map.
                match map.size_hint() {
                    Some(0) => Ok(ItemValue::List(Vec::new())),
                    _ => Err(A::Error::custom("a map in an event")),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl ItemValue {
    fn text(&self) -> Result<&str, Malformed> {
        match self {
            ItemValue::Text(bytes) => std::str::from_utf8(bytes).map_err(|_| WRONG),
            _ => Err(WRONG),
        }
    }

    fn number(&self) -> Result<u64, Malformed> {
        match self {
            ItemValue::Number(number) => Ok(*number),
            _ => Err(WRONG),
        }
    }

    fn list(&self) -> Result<&[ItemValue], Malformed> {
        match self {
            ItemValue::List(all) => Ok(all),
            _ => Err(WRONG),
        }
    }

    /// Nothing, or what is read of it.
    fn some<T>(
        &self,
        read: impl FnOnce(&ItemValue) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self {
            ItemValue::None => Ok(None),
            value => read(value).map(Some),
        }
    }
}

fn named<T, E>(
    value: &ItemValue,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Malformed> {
    parse(value.text()?).map_err(|_| WRONG)
}

fn moment(value: &ItemValue) -> Result<Option<Moment>, Malformed> {
    let at = value.some(ItemValue::number)?;
    Ok(at.filter(|us| *us < FOREVER_US).map(Moment::from_us))
}

/// The end of a text as it was cut: what is left of a character in front goes.
fn end_of_text(bytes: &[u8]) -> String {
    let is_rest = |byte: &u8| byte & 0xc0 == 0x80;
    let from = bytes.iter().position(|byte| !is_rest(byte)).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// An error, or a reason: a text, or what Tenure itself notes.
fn note(value: &ItemValue) -> Result<String, Malformed> {
    match value {
        ItemValue::Text(bytes) => Ok(end_of_text(bytes)),
        ItemValue::List(of) => {
            let name = of.first().ok_or(WRONG)?.text()?;
            let known = StoredNote::deserialize(serde::de::value::StrDeserializer::new(name));
            known.map(|note| note.to_string()).map_err(|_: serde::de::value::Error| WRONG)
        }
        _ => Err(WRONG),
    }
}

/// What leases hold: ttl, timeout, limits, resources.
fn held(value: &ItemValue) -> Result<Held, Malformed> {
    let [ttl, timeout, limits, resources] = value.list()? else { return Err(WRONG) };
    let limit = |held: &ItemValue| match held.list()? {
        [name, weight, cost] => Ok((name.text()?.to_owned(), weight.number()?, cost.number()?)),
        _ => Err(WRONG),
    };
    let resource = |held: &ItemValue| match held.list()? {
        [pool, id] => Ok((pool.text()?.to_owned(), id.text()?.to_owned())),
        _ => Err(WRONG),
    };
    Ok(Held(
        ttl.number()?,
        timeout.number()?,
        limits.list()?.iter().map(limit).collect::<Result<_, _>>()?,
        resources.list()?.iter().map(resource).collect::<Result<_, _>>()?,
    ))
}

/// A lease that an event names.
struct EventLease {
    fence: u64,
    seq: u64,
    holder: Option<String>,
    held: Held,
}

impl EventLease {
    fn read(value: &ItemValue) -> Result<Self, Malformed> {
        let [fence, seq, holder, its] = value.list()? else { return Err(WRONG) };
        let holder = holder.some(|name| name.text().map(str::to_owned))?;
        Ok(EventLease { fence: fence.number()?, seq: seq.number()?, holder, held: held(its)? })
    }

    fn id(&self, job: Option<&str>, blobs: &Blobs) -> Result<String, Malformed> {
        let holder = self.holder.as_deref().unwrap_or(ANONYMOUS);
        let EventLease { fence, seq, held, .. } = self;
        blobs.lease_id(Named { fence: *fence, seq: *seq, holder, job, held })
    }
}

/// Puts a field of an item into what an event says. `None`: the item does not have it, its lease says it.
fn put(
    kind: EventType,
    field: Field,
    value: &ItemValue,
    about: &mut About,
) -> Result<(), Malformed> {
    match field {
        Field::job => about.job = value.some(|name| named(name, JobId::parse))?,
        Field::queue => about.queue = value.some(|name| named(name, QueueName::known))?,
        Field::flow => about.flow = value.some(|name| named(name, FlowName::parse))?,
        Field::schedule => about.schedule = value.some(|name| named(name, ScheduleId::parse))?,
        Field::limit => about.limit = value.some(|name| named(name, LimitName::known))?,
        Field::pool => about.pool = value.some(|name| named(name, PoolName::known))?,
        Field::resource => about.resource = value.some(|name| named(name, ResourceId::parse))?,
        Field::why => about.why = why(kind, value)?,
        Field::on => about.on = Some(blocked_on(value)?),
        Field::attempt => {
            let attempt = value.some(ItemValue::number)?;
            about.attempt = attempt.map(u32::try_from).transpose().map_err(|_| WRONG)?;
        }
        Field::run_at => about.run_at = moment(value)?,
        Field::until => about.until = moment(value)?,
        Field::moment => about.moment = moment(value)?,
        Field::error => about.error = value.some(note)?,
        Field::outcome => about.outcome = Some(outcome::read(value.text()?).ok_or(WRONG)?),
        Field::external => about.external = value.some(ItemValue::number)?,
        Field::n => about.n = value.some(ItemValue::number)?,
        Field::counts => about.counts = Some(counts(value)?),
        Field::lease | Field::fence | Field::holder => return Err(WRONG),
    }
    Ok(())
}

fn counts(value: &ItemValue) -> Result<FlowCounts, Malformed> {
    let [unfinished, succeeded, failed, cancelled] = value.list()? else { return Err(WRONG) };
    Ok(FlowCounts {
        unfinished: unfinished.number()?,
        succeeded: succeeded.number()?,
        failed: failed.number()?,
        cancelled: cancelled.number()?,
    })
}

fn blocked_on(value: &ItemValue) -> Result<BlockedOn, Malformed> {
    let [kind, name] = value.list()? else { return Err(WRONG) };
    match kind.text()? {
        door::limit => named(name, LimitName::known).map(BlockedOn::Limit),
        door::pool => named(name, PoolName::known).map(BlockedOn::Pool),
        _ => Err(WRONG),
    }
}

/// A reason: a word or a text, or for how long something was so.
fn why(kind: EventType, value: &ItemValue) -> Result<Option<Cow<'static, str>>, Malformed> {
    let lasts = || value.number().map(Span::from_us);
    Ok(match kind {
        EventType::ClockBehind => Some(clock_behind("the clock of redis", lasts()?).into()),
        EventType::EngineDeaf => Some(deaf(lasts()?).into()),
        EventType::EngineLearning => Some(
            "redis was started anew or replaced and may have forgotten its last writes: nothing \
             exclusive is granted while holders claim what they hold"
                .into(),
        ),
        _ => value.some(note)?.map(Cow::Owned),
    })
}

/// A single event: its type, and its fields in their order.
fn one(
    kind: EventType,
    values: &[ItemValue],
    at: Moment,
    blobs: &Blobs,
) -> Result<Happened, Malformed> {
    let (mut about, mut values) = (About::default(), values.iter());
    for field in kind.fields() {
        match field {
            Field::lease => {
                let lease = values.next().ok_or(WRONG)?.some(EventLease::read)?;
                let Some(lease) = lease else { continue };
                let job = about.job.as_ref().map(JobId::as_str);
                about.lease = Some(lease.id(job, blobs)?);
                if kind.fields().contains(&Field::fence) {
                    about.fence = Some(Fence::new(lease.fence));
                    about.holder = lease.holder;
                }
            }
            // The lease says them.
            Field::fence | Field::holder => {}
            field => put(kind, *field, values.next().ok_or(WRONG)?, &mut about)?,
        }
    }
    Ok(Happened::new(at, kind, about))
}

/// Ids of jobs, each on a line.
fn ids(text: &[u8]) -> Result<Vec<JobId>, Malformed> {
    let text = std::str::from_utf8(text).map_err(|_| WRONG)?;
    text.split('\n').map(|id| JobId::parse(id).map_err(|_| WRONG)).collect()
}

/// The ids that follow an item, which says how long they are: where its list has that.
fn ids_behind<'a>(items: &mut &'a [u8], values: &[ItemValue]) -> Result<&'a [u8], Malformed> {
    let length = values.get(1).ok_or(WRONG)?.number()?;
    let length = usize::try_from(length).map_err(|_| WRONG)?;
    let (ids, rest) = items.split_at_checked(length).ok_or(WRONG)?;
    *items = rest;
    Ok(ids)
}

/// Jobs that were pushed into one queue.
fn pushed(
    values: &[ItemValue],
    jobs: &[u8],
    at: Moment,
    into: &mut Vec<Happened>,
) -> Result<(), Malformed> {
    let [queue, _, flow, schedule] = values else { return Err(WRONG) };
    let about = About {
        queue: Some(named(queue, QueueName::known)?),
        flow: flow.some(|name| named(name, FlowName::parse))?,
        schedule: schedule.some(|name| named(name, ScheduleId::parse))?,
        ..About::default()
    };
    for job in ids(jobs)? {
        let about = About { job: Some(job), ..about.clone() };
        into.push(Happened::new(at, EventType::JobPushed, about));
    }
    Ok(())
}

/// The fences and the rows of so many leases: of all of them, or of the first where they follow each other.
fn names(value: &ItemValue, many: u64) -> Result<Vec<(u64, u64)>, Malformed> {
    match value {
        ItemValue::List(first) => {
            let [fence, seq] = &first[..] else { return Err(WRONG) };
            let (fence, seq) = (fence.number()?, seq.number()?);
            Ok((0..many).map(|at| (fence + at, seq + at)).collect())
        }
        ItemValue::Text(bytes) if bytes.len() as u64 == many * NAME as u64 => {
            let number =
                |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
            Ok(bytes
                .chunks_exact(NAME)
                .map(|name| (number(&name[..8]), number(&name[8..])))
                .collect())
        }
        _ => Err(WRONG),
    }
}

/// Jobs that were granted, or succeeded, together.
fn together(
    kind: EventType,
    (values, jobs): (&[ItemValue], &[u8]),
    at: Moment,
    blobs: &Blobs,
    into: &mut Vec<Happened>,
) -> Result<(), Malformed> {
    let [queue, _, leases, many, holder, its, limits, weights] = values else {
        return Err(WRONG);
    };
    let (jobs, many) = (ids(jobs)?, many.number()?);
    if jobs.len() as u64 != many {
        return Err(WRONG);
    }
    let queue = Some(named(queue, QueueName::known)?);
    let mut lease = EventLease {
        fence: 0,
        seq: 0,
        holder: holder.some(|name| name.text().map(str::to_owned))?,
        held: held(its)?,
    };
    let mut own = match limits {
        ItemValue::None => None,
        limits => Some(limits.text()?.split('\n').zip(weights.text()?.split(','))),
    };
    for (job, (fence, seq)) in jobs.into_iter().zip(names(leases, many)?) {
        if let Some(own) = &mut own {
            let (limit, weight) = own.next().ok_or(WRONG)?;
            lease.held.2 = vec![(limit.to_owned(), weight.parse().map_err(|_| WRONG)?, 0)];
        }
        (lease.fence, lease.seq) = (fence, seq);
        let is_grant = kind == EventType::JobGranted;
        let about = About {
            lease: Some(lease.id(Some(job.as_str()), blobs)?),
            job: Some(job),
            queue: queue.clone(),
            fence: is_grant.then(|| Fence::new(fence)),
            holder: lease.holder.clone().filter(|_| is_grant),
            // It was never granted before.
            attempt: Some(1),
            ..About::default()
        };
        into.push(Happened::new(at, kind, about));
    }
    Ok(())
}

/// All events of an entry.
fn entry(text: &[u8], blobs: &Blobs) -> Result<Vec<Happened>, Malformed> {
    let (head, items) = text.split_at_checked(HEAD).ok_or(WRONG)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let (at, many) = (Moment::from_us(number(&head[..AT])), number(&head[AT..]));
    let mut all = Vec::new();
    let mut items = items;
    while !items.is_empty() {
        let mut read = rmp_serde::Deserializer::new(Cursor::new(items));
        let item = ItemValue::deserialize(&mut read).map_err(|_| WRONG)?;
        let taken = usize::try_from(read.position()).map_err(|_| WRONG)?;
        items = items.get(taken..).ok_or(WRONG)?;
        let [kind, values @ ..] = item.list()? else { return Err(WRONG) };
        let many = match kind.text()? {
            run_event::granted => Some(EventType::JobGranted),
            run_event::succeeded => Some(EventType::JobSucceeded),
            _ => None,
        };
        if let Some(kind) = many {
            let jobs = ids_behind(&mut items, values)?;
            together(kind, (values, jobs), at, blobs, &mut all)?;
            continue;
        }
        match event::read(kind.text()?).ok_or(WRONG)? {
            EventType::JobPushed => {
                pushed(values, ids_behind(&mut items, values)?, at, &mut all)?;
            }
            kind => all.push(one(kind, values, at, blobs)?),
        }
    }
    if all.len() as u64 == many { Ok(all) } else { Err(WRONG) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lease_id::Signer;

    fn blobs() -> Blobs {
        let signer = Signer::random().expect("random numbers");
        Blobs { texts: Vec::new(), shapes: Vec::new(), signer: Some(Arc::new(signer)) }
    }

    fn packed(item: &impl serde::Serialize) -> Vec<u8> {
        rmp_serde::to_vec(item).expect("it can be packed")
    }

    fn text(many: u32, items: &[Vec<u8>]) -> Vec<u8> {
        [&[0, 0, 0, 0, 0, 0, 9][..], &many.to_be_bytes(), &items.concat()].concat()
    }

    fn read(many: u32, items: &[Vec<u8>]) -> Result<Vec<Happened>, Malformed> {
        entry(&text(many, items), &blobs())
    }

    /// So much of an event as a test compares.
    fn told(happened: &Happened) -> String {
        let About { job, why, error, limit, run_at, .. } = &happened.about;
        let words = [job.as_ref().map(JobId::as_str), why.as_deref(), error.as_deref()];
        format!("{} {words:?} {limit:?} {run_at:?}", happened.kind)
    }

    #[test]
    fn items_of_an_entry_become_single_events_in_their_order() {
        let pushed =
            [packed(&(event::job_pushed, "q", 3, false, false)), b"a\nb".to_vec()].concat();
        let names =
            [&[0u8; 7][..], &[5, 0, 0, 0, 0, 0, 1], &[0; 7], &[6, 0, 0, 0, 0, 0, 2]].concat();
        let held = (1_000, 0, [("x", 1, 0); 0], [("p", "r"); 0]);
        let granted = [
            packed(&(run_event::granted, "q", 3, (5, 1), 2, "w", &held, false, false)),
            b"a\nb".to_vec(),
        ];
        let keyed = (
            run_event::succeeded,
            "q",
            3,
            String::from_utf8(names).expect("no letter of it is above 127"),
            2,
            false,
            &held,
            "site:x\nsite:y",
            "1,2",
        );
        let items = [pushed, granted.concat(), packed(&keyed), b"a\nb".to_vec()];
        let all = read(6, &items).expect("it is an entry");
        let told: Vec<_> = all.iter().map(|one| (one.kind, one.about.job.as_ref())).collect();
        let [a, b] = ["a", "b"].map(|id| JobId::parse(id).expect("an id"));
        let kinds = [EventType::JobPushed, EventType::JobGranted, EventType::JobSucceeded];
        let expected: Vec<_> =
            kinds.iter().flat_map(|kind| [(*kind, Some(&a)), (*kind, Some(&b))]).collect();
        assert_eq!(told, expected);
        let fences: Vec<_> = all.iter().filter_map(|one| one.about.fence).collect();
        assert_eq!(fences, [Fence::new(5), Fence::new(6)]);
        assert!(all[2].about.lease.is_some() && all[2].about.lease != all[4].about.lease);
        assert_eq!(all[0].at, Moment::from_us(9));
    }

    #[test]
    fn a_single_event_has_the_fields_of_its_type() {
        let held = (1_000, 0, [("a", 1, 0)], [("p", "r")]);
        let lease = (7, 3, false, &held);
        let names = ("a", "q", "f", false);
        let retrying =
            packed(&(event::job_retrying, names.0, names.1, names.2, names.3, 2, &lease, 12, "no"));
        let lost = packed(&(
            event::job_lost,
            names.0,
            names.1,
            names.2,
            names.3,
            2,
            &lease,
            false,
            ("holder_stopped",),
        ));
        let paused = packed(&(event::queue_paused, "q", FOREVER_US));
        let blocked = packed(&(event::job_blocked, "a", "q", false, false, (door::limit, "x")));
        let all = read(4, &[retrying, lost, paused, blocked]).expect("it is an entry");
        assert_eq!(
            told(&all[0]),
            r#"job.retrying [Some("a"), None, Some("no")] None Some(Moment(12))"#
        );
        assert!(told(&all[1]).contains("the holder stopped heartbeating"), "{}", told(&all[1]));
        assert_eq!((all[2].kind, all[2].about.until), (EventType::QueuePaused, None));
        let on = LimitName::parse("x").ok().map(BlockedOn::Limit);
        assert_eq!(all[3].about.on, on);
        assert!(all[0].about.lease.is_some());
    }

    #[test]
    fn an_error_that_was_cut_in_a_character_begins_with_the_next() {
        assert_eq!(end_of_text("é!".as_bytes()), "é!");
        assert_eq!(end_of_text(&"é!".as_bytes()[1..]), "!");
        assert_eq!(end_of_text(b""), "");
    }

    #[test]
    fn what_is_no_entry_is_a_fault() {
        let good = packed(&(event::limit_changed, "x"));
        assert_eq!(read(1, std::slice::from_ref(&good)).map(|all| all.len()).ok(), Some(1));
        for (many, items) in [
            (2, vec![good.clone()]),
            (1, vec![packed(&("??", "x"))]),
            (1, vec![packed(&(event::limit_changed,))]),
            (1, vec![packed(&(event::job_pushed, "q", 9, false, false)), b"a".to_vec()]),
            (1, vec![good[..good.len() - 1].to_vec()]),
        ] {
            assert!(read(many, &items).is_err(), "{many} {items:?}");
        }
        assert!(entry(b"short", &blobs()).is_err());
    }
}
