//! The jobs of one lane, in order of arrival: a list of small sorted blocks.
//!
//! Append and take-first are constant; an insert or removal elsewhere costs the search for a block and a move inside
//! it; a rank sums whole blocks. It compares only arrival numbers, which are unique in a namespace.

use std::collections::VecDeque;

use crate::state::slots::Id;
use crate::state::{CallerId, LiveJobId};

/// Items of one block; 16 bytes each, so that a move inside a block stays within 2 KiB.
const BLOCK: usize = 128;

/// An entry of a line: a job, or a lock waiter in a lane of [`CALLERS`](crate::state::CALLERS). The queue of the lane
/// decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct InLine(u32);

impl InLine {
    pub(crate) fn job(self) -> LiveJobId {
        Id::new(self.0)
    }
    pub(crate) fn caller(self) -> CallerId {
        Id::new(self.0)
    }
}

impl From<LiveJobId> for InLine {
    fn from(job: LiveJobId) -> Self {
        InLine(job.number())
    }
}

impl From<CallerId> for InLine {
    fn from(caller: CallerId) -> Self {
        InLine(caller.number())
    }
}

/// The jobs of one lane, by arrival.
#[derive(Default, Debug)]
pub(crate) struct Line {
    blocks: VecDeque<VecDeque<(u64, InLine)>>,
    len: usize,
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.len
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The arrival and the slot of the first entry.
    pub(crate) fn first(&self) -> Option<(u64, InLine)> {
        self.blocks.front().and_then(|block| block.front().copied())
    }

    /// The block that has, or would have, `arrival`.
    fn block_of(&self, arrival: u64) -> usize {
        let after = self
            .blocks
            .partition_point(|block| block.front().is_some_and(|first| first.0 <= arrival));
        after.saturating_sub(1)
    }

    /// The entry of this arrival.
    pub(crate) fn get(&self, arrival: u64) -> Option<InLine> {
        let block = self.blocks.get(self.block_of(arrival))?;
        let place = block.binary_search_by_key(&arrival, |item| item.0).ok()?;
        block.get(place).map(|item| item.1)
    }

    pub(crate) fn insert(&mut self, arrival: u64, slot: InLine) {
        self.len += 1;
        let at = match self.blocks.back() {
            Some(last) if last.back().is_some_and(|last| last.0 < arrival) => self.blocks.len() - 1,
            Some(_) => self.block_of(arrival),
            None => {
                self.blocks.push_back(VecDeque::new());
                0
            }
        };
        let last_block = at + 1 == self.blocks.len();
        let block = &mut self.blocks[at];
        let place = match block.back() {
            Some(last) if last.0 > arrival => block.partition_point(|item| item.0 < arrival),
            _ => block.len(),
        };
        if block.len() < BLOCK {
            block.insert(place, (arrival, slot));
        } else if place == block.len() && last_block {
            // Appending is the common case: the full block stays full.
            self.blocks.push_back(VecDeque::from([(arrival, slot)]));
        } else {
            block.insert(place, (arrival, slot));
            let tail = block.split_off(BLOCK / 2);
            self.blocks.insert(at + 1, tail);
        }
    }

    /// Removes the entry with this arrival number. Returns its slot.
    pub(crate) fn remove(&mut self, arrival: u64) -> Option<InLine> {
        let at = self.block_of(arrival);
        let block = self.blocks.get_mut(at)?;
        let slot = if block.front()?.0 == arrival {
            block.pop_front()?.1
        } else {
            let place = block.binary_search_by_key(&arrival, |item| item.0).ok()?;
            block.remove(place)?.1
        };
        if block.is_empty() {
            self.blocks.remove(at);
        }
        self.len -= 1;
        Some(slot)
    }

    /// The number of entries before `arrival`.
    pub(crate) fn rank(&self, arrival: u64) -> usize {
        let at = self.block_of(arrival);
        let before: usize = self.blocks.iter().take(at).map(VecDeque::len).sum();
        let inside = self.blocks.get(at).map_or(0, |b| b.partition_point(|item| item.0 < arrival));
        before + inside
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, InLine)> + '_ {
        self.blocks.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_line_is_a_sorted_map(steps in proptest::collection::vec((0u64..600, any::<bool>()), 0..900)) {
            let mut line = Line::default();
            let mut model = BTreeMap::new();
            for (n, (arrival, insert)) in steps.into_iter().enumerate() {
                if insert && !model.contains_key(&arrival) {
                    line.insert(arrival, InLine(n as u32));
                    model.insert(arrival, InLine(n as u32));
                } else {
                    prop_assert_eq!(line.remove(arrival), model.remove(&arrival));
                }
                prop_assert_eq!(line.len(), model.len());
                prop_assert_eq!(line.first(), model.iter().next().map(|(a, s)| (*a, *s)));
                prop_assert_eq!(line.rank(arrival), model.range(..arrival).count());
                prop_assert_eq!(line.get(arrival), model.get(&arrival).copied());
            }
            prop_assert!(line.iter().eq(model.into_iter()));
        }
    }
}
