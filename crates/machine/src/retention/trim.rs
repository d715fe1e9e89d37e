//! Shrinks the tables of a namespace after a peak. It changes no state.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use crate::queue::order::hash_seq;
use crate::state::Space;
use crate::state::sparse::{trim_index, trim_map, trim_ring};

impl Space {
    /// Shrinks every sparse table. A shrink costs a step per remaining entry, and comes at most once per seven times as
    /// many removed ones.
    pub(crate) fn trim(&mut self) {
        let (hasher, jobs) = (self.keys.hasher(), &self.jobs);
        trim_index(&mut self.by_id, |slot| hasher.hash_one(jobs[*slot].id.as_str()));
        trim_index(&mut self.by_seq, |slot| hash_seq(jobs[*slot].seq));
        trim_map(&mut self.shape_by_bytes);
        self.keys.trim();
        trim_map(&mut self.lane_by_key);
        self.leases.trim();
        self.replacing.trim();
        self.waiters.trim();
        self.reports.trim();
        trim_ring(&mut self.pending);
        trim_ring(&mut self.families);
    }
}

impl Space {
    /// Drops the tables of a namespace without live jobs and recent calls: a queue that is left there for a day must
    /// not keep them.
    pub(crate) fn drop_empty_tables(&mut self) {
        let is_quiet = self.by_id.is_empty()
            && self.leases.is_empty()
            && self.workers.known().is_empty()
            && self.waiters.no_lease_call_waits()
            && self.leases.requests.is_empty();
        if !is_quiet || self.by_id.capacity() == 0 {
            return;
        }
        self.by_id = HashTable::new();
        self.by_seq = HashTable::new();
        self.shape_by_bytes.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.lane_by_key.shrink_to_fit();
        self.leases.shrink_to_fit();
        self.replacing.shrink_to_fit();
        self.waiters.shrink_to_fit();
        self.reports.shrink_to_fit();
        self.out.ended.shrink_to_fit();
        self.pending.shrink_to_fit();
        self.families.shrink_to_fit();
    }
}
