//! Payloads between a push and its first grant, so that a job that is leased soon needs no read.
//!
//! It is bounded: one half keeps the first payloads that found room, the other half the newest. An entry is a whole job
//! as it was pushed, except its life: a write of anything else of the job drops it, and so does the job's end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::names::{JobId, Namespace};
use tenure_machine::Seq;
use tenure_machine::rows::JobContent;

/// A job as its rows hold it, except its life, while nothing else of it has changed since the push.
pub(crate) struct Body {
    /// Shared with the rows, which may be written later.
    pub new: Arc<(Namespace, JobId, JobContent)>,
    pub shape: Arc<[u8]>,
}

impl Body {
    /// Approximate size in memory.
    fn bytes(&self) -> usize {
        let (_, _, content) = &*self.new;
        let labels: usize = content.labels.iter().map(|(k, v)| k.len() + v.len() + 64).sum();
        192 + content.payload.text().len() + content.kind.len() + labels
    }
}

/// Bodies by the numbers of their jobs, which grow with every push.
#[derive(Default)]
struct Half {
    bodies: BTreeMap<Seq, Body>,
    bytes: usize,
}

impl Half {
    fn put(&mut self, seq: Seq, body: Body) {
        self.bytes += body.bytes();
        self.bodies.insert(seq, body);
    }

    fn take(&mut self, seq: Seq) -> Option<Body> {
        let body = self.bodies.remove(&seq)?;
        self.bytes = self.bytes.saturating_sub(body.bytes());
        Some(body)
    }
}

#[derive(Default)]
struct BodiesState {
    /// Bodies that came while there was room. Where many jobs wait, these are leased first.
    first: Half,
    /// The newest of the bodies that found no room, so that a paused queue keeps no other queue out.
    latest: Half,
}

impl BodiesState {
    fn take(&mut self, seq: Seq) -> Option<Body> {
        self.first.take(seq).or_else(|| self.latest.take(seq))
    }
}

pub(crate) struct Bodies {
    inside: Mutex<BodiesState>,
    /// Bytes that each half may take.
    half_max: usize,
}

impl Bodies {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Bodies { inside: Mutex::default(), half_max: bytes_max / 2 }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BodiesState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the bodies of jobs that were just pushed, and drops those of `changed`.
    pub(crate) fn put(&self, new: Vec<(Seq, Body)>, changed: &[Seq]) {
        if new.is_empty() && changed.is_empty() {
            return;
        }
        // Freed after the lock is released.
        let mut gone = Vec::new();
        let mut inside = self.lock();
        for (seq, body) in new {
            if inside.first.bytes + body.bytes() <= self.half_max {
                inside.first.put(seq, body);
            } else {
                inside.latest.put(seq, body);
            }
        }
        // A new job may have changed in the same batch.
        for seq in changed {
            gone.extend(inside.take(*seq));
        }
        while inside.latest.bytes > self.half_max
            && let Some(oldest) = inside.latest.bodies.keys().next().copied()
        {
            gone.extend(inside.latest.take(oldest));
        }
        drop(inside);
    }

    /// Drops all bodies, because other rows take their place.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.lock());
        drop(gone);
    }

    /// The `seqs` whose bodies are not here.
    pub(crate) fn lacks(&self, seqs: impl Iterator<Item = Seq>) -> Vec<Seq> {
        let inside = self.lock();
        let is_here = |seq: &Seq| {
            inside.first.bodies.contains_key(seq) || inside.latest.bodies.contains_key(seq)
        };
        seqs.filter(|seq| !is_here(seq)).collect()
    }

    /// Takes out the bodies of `seqs` that are here, in the order of `seqs`.
    pub(crate) fn take(&self, seqs: &[Option<Seq>]) -> Vec<Option<Body>> {
        let mut inside = self.lock();
        seqs.iter().map(|seq| inside.take((*seq)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::job::Labels;
    use tenure_core::secret::Json;

    use super::*;

    fn body(bytes: usize) -> Body {
        let payload = Json::from("x".repeat(bytes).as_str());
        let (kind, labels) = (String::new(), Labels::new());
        let content = JobContent { kind, payload, labels, traceparent: None };
        let new = Arc::new((Namespace::main(), JobId::parse("a").unwrap(), content));
        Body { new, shape: Arc::from([].as_slice()) }
    }

    #[test]
    fn the_first_and_the_last_pushes_are_kept_and_the_bound_holds() {
        let bodies = Bodies::new(10_000);
        for seq in (0..100).map(Seq::new) {
            bodies.put(vec![(seq, body(1_000))], &[]);
        }
        let bytes = |bodies: &Bodies| {
            let BodiesState { first, latest } = &*bodies.lock();
            first.bytes + latest.bytes
        };
        assert!(bytes(&bodies) <= 10_000);
        let seqs = [0, 3, 4, 95, 96, 99].map(|seq| Some(Seq::new(seq)));
        assert_eq!(bodies.lacks(seqs.into_iter().flatten()), [Seq::new(4), Seq::new(95)]);
        let found = bodies.take(&[Some(Seq::new(0)), None, Some(Seq::new(50)), Some(Seq::new(99))]);
        assert_eq!(
            found.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, false, true]
        );
        assert!(bodies.take(&[Some(Seq::new(99))])[0].is_none(), "it was taken");
        // The first half has room again.
        bodies.put((100..106).map(|seq| (Seq::new(seq), body(1_000))).collect(), &[]);
        assert_eq!(bodies.lacks((97..106).map(Seq::new)), [97, 98, 99, 101].map(Seq::new));
        assert!(bytes(&bodies) <= 10_000);
    }

    #[test]
    fn what_was_taken_leaves_nothing_behind() {
        let bodies = Bodies::new(1 << 20);
        for seq in (0..1_000).map(Seq::new) {
            bodies.put(vec![(seq, body(10))], &[]);
            assert!(bodies.take(&[Some(seq)])[0].is_some());
        }
        let BodiesState { first, latest } = &*bodies.lock();
        assert_eq!((first.bytes, first.bodies.len(), latest.bodies.len()), (0, 0, 0));
    }

    #[test]
    fn a_changed_job_is_read_from_its_row() {
        let bodies = Bodies::new(1 << 20);
        let (one, two) = (Seq::new(1), Seq::new(2));
        bodies.put(vec![(one, body(10)), (two, body(10))], &[]);
        bodies.put(vec![], &[one]);
        let found = bodies.take(&[Some(one), Some(two)]);
        assert!(found[0].is_none() && found[1].is_some());
    }
}
