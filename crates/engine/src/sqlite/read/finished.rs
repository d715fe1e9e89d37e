//! Ids of finished jobs, by fingerprint: every push asks for its id, and nearly every
//! answer is no, which must not cost a read.
//!
//! An entry is 48 bits of a hash and 48 bits of a row number: 12 bytes. Two ids may share a
//! fingerprint, so the caller checks the row of each candidate.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use tenure_core::names::{JobId, Namespace};
use tenure_machine::Seq;

const BITS_48: u64 = (1 << 48) - 1;

#[derive(Clone, Copy)]
struct FinishedId([u32; 3]);

impl FinishedId {
    fn new(print: u64, seq: Seq) -> Self {
        let seq = seq.get();
        FinishedId([print as u32, (print >> 32) as u32 | (seq as u32) << 16, (seq >> 16) as u32])
    }
    fn print(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1] & 0xffff) << 32
    }
    fn seq(self) -> Seq {
        Seq::new(u64::from(self.0[1] >> 16) | u64::from(self.0[2]) << 16)
    }
}

/// Spreads a fingerprint over all bits that the table uses.
fn spread(print: u64) -> u64 {
    let product = print.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[derive(Default)]
pub(crate) struct FinishedIds {
    hasher: DefaultHashBuilder,
    entries: HashTable<FinishedId>,
}

impl FinishedIds {
    /// Ids come from outside, so the hash must not be predictable.
    fn print(&self, namespace: &str, id: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        namespace.hash(&mut hasher);
        id.hash(&mut hasher);
        hasher.finish() & BITS_48
    }

    pub(crate) fn insert(&mut self, namespace: &str, id: &str, seq: Seq) {
        let print = self.print(namespace, id);
        assert!(seq.get() <= BITS_48);
        self.entries.insert_unique(spread(print), FinishedId::new(print, seq), |entry| {
            spread(entry.print())
        });
    }

    pub(crate) fn remove(&mut self, namespace: &Namespace, id: &JobId, seq: Seq) {
        let print = self.print(namespace.as_str(), id.as_str());
        let same = |entry: &FinishedId| entry.print() == print && entry.seq() == seq;
        if let Ok(entry) = self.entries.find_entry(spread(print), same) {
            entry.remove();
        }
    }

    /// Rows that may be the finished job with this id.
    pub(crate) fn candidates<'a>(
        &'a self,
        namespace: &Namespace,
        id: &JobId,
    ) -> impl Iterator<Item = Seq> + 'a {
        let print = self.print(namespace.as_str(), id.as_str());
        let same = move |entry: &&FinishedId| entry.print() == print;
        self.entries.iter_hash(spread(print)).filter(same).map(|entry| entry.seq())
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_carries_both_numbers() {
        for (print, seq) in [(0, 0), (BITS_48, BITS_48), (0x1234_5678_9abc, 0xfed_cba9_8765)] {
            let seq = Seq::new(seq);
            let entry = FinishedId::new(print, seq);
            assert_eq!((entry.print(), entry.seq()), (print, seq));
        }
        assert_eq!(std::mem::size_of::<FinishedId>(), 12);
    }

    #[test]
    fn what_was_put_is_found_until_it_is_removed() {
        let mut ids = FinishedIds::default();
        let ns = Namespace::main();
        let id = |n: u64| JobId::parse(&format!("job-{n}")).unwrap();
        for n in 0..10_000 {
            ids.insert(ns.as_str(), id(n).as_str(), Seq::new(n));
        }
        for n in (0..10_000).step_by(2) {
            ids.remove(&ns, &id(n), Seq::new(n));
        }
        for n in 0..10_000 {
            assert_eq!(ids.candidates(&ns, &id(n)).any(|seq| seq == Seq::new(n)), n % 2 == 1);
        }
        assert_eq!(ids.len(), 5_000);
        let other = Namespace::parse("other").unwrap();
        assert!(ids.candidates(&other, &id(1)).all(|seq| seq != Seq::new(1)));
    }
}
