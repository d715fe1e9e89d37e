//! All writes of one batch of steps, and their bytes: the content of journal entries, and the source of copies of a
//! store.
//!
//! Neighbouring jobs mostly share some values (namespace, queue, kind, shape); only the first of equal values is
//! written. The layout has a number, [`CHANGES_FORMAT`]; a change of the layout raises it. Reading never panics: bytes
//! of another form are `None`. They have no checksum; the journal entry around them has.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::events::Happened;
use tenure_core::job::{JobError, JobState, Labels};
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, JobId, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::secret::Json;
use tenure_core::trace::TraceParent;

use crate::rows::codec::{Reader, Writer};
use crate::rows::drain::MetaRow;
use crate::rows::entries::{decode_events, encode_events};
use crate::rows::stored::outcome_of;
use crate::rows::{ContentPatch, JobChange, JobContent, JobEnd, KeptUntil, Kind, RowKey, Rows};
use crate::state::Seq;

/// The number of the layout of [`Changes::encode`]; [`Changes::decode`] reads no other.
pub const CHANGES_FORMAT: u16 = 1;
/// The number of the same layout where contents are sealed: an earlier release would show them as they are.
pub const SEALED_CHANGES_FORMAT: u16 = 2;
/// The number of the same layout where events name their callers, sealed or not: an earlier release does not know how
/// long such a name is, and would read what follows it wrongly.
pub const NAMED_CHANGES_FORMAT: u16 = 3;

/// Events of a namespace that a batch writes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NewEvents {
    /// The life of the event stream.
    pub life: u64,
    /// The number of the first of them.
    pub first: u64,
    /// The events, in the order of time.
    pub events: Vec<Happened>,
}

/// Changes of a batch to the event streams.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BatchEvents {
    /// Namespaces that ended: their streams are deleted before anything is appended.
    pub ended: Vec<Namespace>,
    /// Events to append, by namespace.
    pub new: BTreeMap<Namespace, NewEvents>,
}

impl BatchEvents {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.new.is_empty()
    }
}

/// One batch of steps, as a store writes it: whole or not at all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Changes {
    /// Rows to put and delete, each thing once.
    pub rows: Rows,
    /// The events, which are written with the rows of the same steps.
    pub events: BatchEvents,
    /// The highest row number that was ever used, if the batch raised it; otherwise [`NO_JOB`](crate::NO_JOB).
    pub last_seq: Seq,
}

impl Changes {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.events.is_empty()
    }

    /// The number of their layout: the lowest with all that they hold. Of sealed changes only the first name a key.
    pub fn format(&self) -> u16 {
        let mut events = self.events.new.values().flat_map(|new| &new.events);
        if events.any(|event| event.about.by.is_some()) {
            NAMED_CHANGES_FORMAT
        } else if self.rows.other.keys().any(|key| key.kind == Kind::SealKey) {
            SEALED_CHANGES_FORMAT
        } else {
            CHANGES_FORMAT
        }
    }

    /// Encodes it in the layout of [`CHANGES_FORMAT`].
    pub fn encode(&self) -> Vec<u8> {
        let Rows { jobs, errors, other, childless, data } = &self.rows;
        let mut out = ChangesWriter {
            w: Writer::with_capacity(256 + 256 * jobs.len()),
            before: WrittenBefore::default(),
        };
        out.w.u64(self.last_seq.get());
        out.w.u64(jobs.len() as u64);
        let mut last = 0;
        for (seq, change) in jobs {
            out.w.u64(seq.get() - last);
            last = seq.get();
            out.job(change);
        }
        out.w.u64(errors.len() as u64);
        for (seq, JobError { attempt, at, error, outcome }) in errors {
            out.w.u64(seq.get());
            out.w.u32(*attempt);
            out.w.moment(*at);
            out.w.text(error);
            out.w.byte(*outcome as u8);
        }
        out.w.u64(other.len() as u64);
        for (RowKey { namespace, kind, key }, value) in other {
            out.namespace(namespace);
            out.w.byte(*kind as u8);
            out.w.text(key);
            row(&mut out.w, *kind, value.as_deref());
        }
        out.w.u64(childless.len() as u64);
        for (namespace, seq) in childless {
            out.namespace(namespace);
            out.w.u64(seq.get());
        }
        out.w.u64(data.len() as u64);
        for ((namespace, pool, id), value) in data {
            out.namespace(namespace);
            out.w.text(pool.as_str());
            out.w.text(id.as_str());
            out.w.option(value.as_ref(), |w, value| w.text(value.text()));
        }
        out.w.u64(self.events.ended.len() as u64);
        for namespace in &self.events.ended {
            out.namespace(namespace);
        }
        out.w.u64(self.events.new.len() as u64);
        for (namespace, NewEvents { life, first, events }) in &self.events.new {
            out.namespace(namespace);
            out.w.u64(*life);
            out.w.u64(*first);
            out.w.bytes(&encode_events(events));
        }
        out.w.finish()
    }

    /// Decodes the bytes of [`Changes::encode`]; `None` for bytes of another form.
    pub fn decode(bytes: &[u8]) -> Option<Changes> {
        let mut input = ChangesReader { r: Reader(bytes), before: ReadBefore::default() };
        let last_seq = Seq::new(input.r.u64()?);
        let mut rows = Rows::default();
        let mut last = 0u64;
        for _ in 0..input.r.u64()? {
            last = last.checked_add(input.r.u64()?)?;
            rows.jobs.insert(Seq::new(last), input.job()?);
        }
        rows.errors = input.r.list(|r| {
            let seq = Seq::new(r.u64()?);
            let (attempt, at, error) = (r.u32()?, r.moment()?, r.text()?.to_owned());
            Some((seq, JobError { attempt, at, error, outcome: outcome_of(r.byte()?)? }))
        })?;
        for _ in 0..input.r.u64()? {
            let namespace = input.namespace()?;
            let kind = *Kind::ALL.get(usize::from(input.r.byte()?))?;
            let key = RowKey { namespace, kind, key: input.r.text()?.to_owned() };
            rows.other.insert(key, row_of(&mut input.r)?);
        }
        for _ in 0..input.r.u64()? {
            rows.childless.push((input.namespace()?, Seq::new(input.r.u64()?)));
        }
        for _ in 0..input.r.u64()? {
            let namespace = input.namespace()?;
            let pool = PoolName::known(input.r.text()?).ok()?;
            let key = (namespace, pool, ResourceId::known(input.r.text()?).ok()?);
            rows.data.insert(key, input.r.option(json)?);
        }
        let mut events = BatchEvents::default();
        for _ in 0..input.r.u64()? {
            events.ended.push(input.namespace()?);
        }
        for _ in 0..input.r.u64()? {
            let namespace = input.namespace()?;
            let (life, first) = (input.r.u64()?, input.r.u64()?);
            let new = NewEvents { life, first, events: decode_events(input.r.bytes()?)? };
            events.new.insert(namespace, new);
        }
        input.r.is_at_end().then_some(Changes { rows, events, last_seq })
    }
}

/// The parts of a job's change that are present, as bits of one number.
mod has {
    pub(crate) const NEW: u32 = 1;
    pub(crate) const QUEUE: u32 = 1 << 1;
    pub(crate) const STATE: u32 = 1 << 2;
    pub(crate) const SHAPE: u32 = 1 << 3;
    pub(crate) const LIFE: u32 = 1 << 4;
    pub(crate) const END: u32 = 1 << 5;
    pub(crate) const RESULT: u32 = 1 << 6;
    pub(crate) const LABELS: u32 = 1 << 7;
    pub(crate) const TRACE: u32 = 1 << 8;
    pub(crate) const FLOW: u32 = 1 << 9;
    pub(crate) const PATCH: u32 = 1 << 10;
    pub(crate) const KEPT: u32 = 1 << 11;
    pub(crate) const REVIVED: u32 = 1 << 12;
    pub(crate) const ERROR: u32 = 1 << 13;
    pub(crate) const PROGRESS: u32 = 1 << 14;
    pub(crate) const DELETED: u32 = 1 << 15;
    pub(crate) const ALL: u32 = (DELETED << 1) - 1;
}

/// The last written value of each kind that neighbouring jobs share.
#[derive(Default)]
struct WrittenBefore<'a> {
    namespace: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    queue: Option<&'a [u8]>,
    flow: Option<&'a [u8]>,
    shape: Option<&'a [u8]>,
}

struct ChangesWriter<'a> {
    w: Writer,
    before: WrittenBefore<'a>,
}

impl<'a> ChangesWriter<'a> {
    fn namespace(&mut self, namespace: &'a Namespace) {
        self.w.again(&mut self.before.namespace, namespace.as_str().as_bytes());
    }

    fn job(&mut self, change: &'a JobChange) {
        let content = change.new.as_ref().map(|new| &new.2);
        let bits = [
            (has::NEW, content.is_some()),
            (has::QUEUE, change.queue.is_some()),
            (has::STATE, change.state.is_some()),
            (has::SHAPE, change.shape.is_some()),
            (has::LIFE, change.life.is_some()),
            (has::END, change.end.is_some()),
            (has::RESULT, change.end.as_ref().is_some_and(|end| end.result.is_some())),
            (has::LABELS, content.is_some_and(|content| !content.labels.is_empty())),
            (has::TRACE, content.is_some_and(|content| content.traceparent.is_some())),
            (has::FLOW, change.flow.is_some()),
            (has::PATCH, change.patch.is_some()),
            (has::KEPT, change.kept.is_some()),
            (has::REVIVED, change.revived),
            (has::ERROR, change.error.is_some()),
            (has::PROGRESS, change.progress.is_some()),
            (has::DELETED, change.deleted),
        ];
        self.w.u32(bits.iter().filter(|(_, is)| *is).map(|(bit, _)| bit).sum());
        if let Some(new) = &change.new {
            let (namespace, id, content) = &**new;
            self.namespace(namespace);
            self.w.again(&mut self.before.id, id.as_str().as_bytes());
            self.w.again(&mut self.before.kind, content.kind.as_bytes());
            self.w.text(content.payload.text());
            if !content.labels.is_empty() {
                labels(&mut self.w, &content.labels);
            }
            if let Some(trace) = &content.traceparent {
                self.w.text(trace.as_str());
            }
        }
        if let Some(queue) = &change.queue {
            self.w.again(&mut self.before.queue, queue.as_str().as_bytes());
        }
        if let Some(flow) = &change.flow {
            self.w.again(&mut self.before.flow, flow.as_str().as_bytes());
        }
        if let Some(patch) = &change.patch {
            let ContentPatch { kind, payload, labels: of, traceparent } = &**patch;
            self.w.option(kind.as_deref(), Writer::text);
            self.w.option(payload.as_ref(), |w, payload| w.text(payload.text()));
            self.w.option(of.as_ref(), labels);
            self.w.option(traceparent.as_ref(), |w, trace| {
                w.option(trace.as_ref(), |w, trace| w.text(trace.as_str()));
            });
        }
        if let Some(state) = change.state {
            self.w.byte(state as u8);
        }
        if let Some(shape) = &change.shape {
            self.w.again(&mut self.before.shape, shape);
        }
        if let Some(life) = &change.life {
            self.w.bytes(life);
        }
        if let Some(JobEnd { namespace, id, shape, until, bytes, result }) = &change.end {
            self.namespace(namespace);
            self.w.again(&mut self.before.id, id.as_str().as_bytes());
            self.w.again(&mut self.before.shape, shape);
            self.w.moment(*until);
            self.w.u32(*bytes);
            if let Some(result) = result {
                self.w.text(result.text());
            }
        }
        if let Some(KeptUntil { namespace, until, bytes }) = &change.kept {
            self.namespace(namespace);
            self.w.moment(*until);
            self.w.u32(*bytes);
        }
        if let Some(error) = &change.error {
            self.w.option(error.as_deref(), Writer::text);
        }
        if let Some(progress) = &change.progress {
            self.w.option(progress.as_ref(), |w, progress| w.text(progress.text()));
        }
    }
}

/// Nearly every batch writes the numbers of a namespace, which are four times as long as text.
fn row(w: &mut Writer, kind: Kind, value: Option<&str>) {
    let numbers = value.filter(|_| kind == Kind::Meta).and_then(MetaRow::of);
    match (value, numbers) {
        (_, Some(MetaRow { fence, arrival, used, last })) => {
            w.byte(2);
            [fence.get(), arrival, used, last].into_iter().for_each(|number| w.u64(number));
        }
        (Some(value), None) => {
            w.byte(1);
            w.text(value);
        }
        (None, None) => w.byte(0),
    }
}

fn row_of(r: &mut Reader<'_>) -> Option<Option<String>> {
    Some(match r.byte()? {
        0 => None,
        1 => Some(r.text()?.to_owned()),
        2 => {
            let (fence, arrival) = (Fence::new(r.u64()?), r.u64()?);
            Some(MetaRow { fence, arrival, used: r.u64()?, last: r.u64()? }.text()?)
        }
        _ => return None,
    })
}

fn labels(w: &mut Writer, labels: &Labels) {
    w.u64(labels.len() as u64);
    for (name, value) in labels {
        w.text(name);
        w.text(value);
    }
}

/// The counterpart of [`WrittenBefore`] for reading: names are parsed once, and jobs share their shapes.
#[derive(Default)]
struct ReadBefore {
    namespace: Option<Namespace>,
    id: Option<JobId>,
    kind: Option<String>,
    queue: Option<QueueName>,
    flow: Option<FlowName>,
    shape: Option<Arc<[u8]>>,
}

struct ChangesReader<'a> {
    r: Reader<'a>,
    before: ReadBefore,
}

impl ChangesReader<'_> {
    fn namespace(&mut self) -> Option<Namespace> {
        self.r.again(&mut self.before.namespace, |bytes| Namespace::known(utf8(bytes)?).ok())
    }

    fn id(&mut self) -> Option<JobId> {
        self.r.again(&mut self.before.id, |bytes| JobId::known(utf8(bytes)?).ok())
    }

    fn shape(&mut self) -> Option<Arc<[u8]>> {
        self.r.again(&mut self.before.shape, |bytes| Some(Arc::from(bytes)))
    }

    fn job(&mut self) -> Option<JobChange> {
        let bits = Some(self.r.u32()?).filter(|bits| bits & !has::ALL == 0)?;
        let has = |bit: u32| bits & bit != 0;
        let mut change = JobChange { revived: has(has::REVIVED), ..JobChange::default() };
        change.deleted = has(has::DELETED);
        if has(has::NEW) {
            let (namespace, id) = (self.namespace()?, self.id()?);
            let of_bytes = |bytes| utf8(bytes).map(str::to_owned);
            let kind = self.r.again(&mut self.before.kind, of_bytes)?;
            let payload = json(&mut self.r)?;
            let labels = if has(has::LABELS) { labels_of(&mut self.r)? } else { Labels::new() };
            let traceparent = if has(has::TRACE) { Some(trace(&mut self.r)?) } else { None };
            let content = JobContent { kind, payload, labels, traceparent };
            change.new = Some(Arc::new((namespace, id, content)));
        }
        if has(has::QUEUE) {
            let known = |bytes| QueueName::known(utf8(bytes)?).ok();
            change.queue = Some(self.r.again(&mut self.before.queue, known)?);
        }
        if has(has::FLOW) {
            let known = |bytes| FlowName::known(utf8(bytes)?).ok();
            change.flow = Some(self.r.again(&mut self.before.flow, known)?);
        }
        if has(has::PATCH) {
            change.patch = Some(Box::new(ContentPatch {
                kind: self.r.option(|r| r.text().map(str::to_owned))?,
                payload: self.r.option(json)?,
                labels: self.r.option(labels_of)?,
                traceparent: self.r.option(|r| r.option(trace))?,
            }));
        }
        if has(has::STATE) {
            change.state = Some(*JobState::ALL.get(usize::from(self.r.byte()?))?);
        }
        if has(has::SHAPE) {
            change.shape = Some(self.shape()?);
        }
        if has(has::LIFE) {
            change.life = Some(self.r.bytes()?.to_vec());
        }
        if has(has::END) {
            change.end = Some(JobEnd {
                namespace: self.namespace()?,
                id: self.id()?,
                shape: self.shape()?,
                until: self.r.moment()?,
                bytes: self.r.u32()?,
                result: if has(has::RESULT) { Some(json(&mut self.r)?) } else { None },
            });
        }
        if has(has::KEPT) {
            let namespace = self.namespace()?;
            let (until, bytes) = (self.r.moment()?, self.r.u32()?);
            change.kept = Some(KeptUntil { namespace, until, bytes });
        }
        if has(has::ERROR) {
            change.error = Some(self.r.option(|r| r.text().map(str::to_owned))?);
        }
        if has(has::PROGRESS) {
            change.progress = Some(self.r.option(json)?);
        }
        Some(change)
    }
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn json(r: &mut Reader<'_>) -> Option<Json> {
    Json::parse(r.text()?)
}

fn trace(r: &mut Reader<'_>) -> Option<TraceParent> {
    TraceParent::parse(r.text()?).ok()
}

fn labels_of(r: &mut Reader<'_>) -> Option<Labels> {
    let pairs = r.list(|r| Some((r.text()?.to_owned(), r.text()?.to_owned())))?;
    Some(pairs.into_iter().collect())
}

#[cfg(test)]
mod tests;
