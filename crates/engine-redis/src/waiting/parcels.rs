//! What the store granted to a call that waits here, and sent to this process (`lua/machine/parcels.lua`).
//!
//! A parcel is only a copy: the store knows what it granted by the call's request id, and answers it to the call when
//! it asks again. Parcels of a process are numbered, so one that was lost is missed: by the next that comes, or by a
//! tick, which tells how many were sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a message begins that is a parcel.
pub(super) const MARK: u8 = b'+';
/// Numbers of parcels whose calls were answered otherwise are remembered for so many parcels more.
const FETCHED_FOR: u64 = 4_096;
/// A parcel that comes twice comes within so many others.
const TWICE_WITHIN: u64 = 1_024;

/// One that came: `+NUMBER PROCESS:CALL`, a line's end, and the parts of an answer, each behind its length in four bytes.
pub(super) struct Parcel {
    pub number: u64,
    /// The number of the call.
    pub taker: u64,
    /// Of the answer to the call; none if they would have been too long: then the call is to ask again.
    pub parts: Vec<Vec<u8>>,
}

impl Parcel {
    /// `None` if it is of another form.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let end = message.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(message.get(1..end)?).ok()?;
        let (number, call) = head.split_once(' ')?;
        let taker = call.rsplit(':').next()?.parse().ok()?;
        let (mut parts, mut rest) = (Vec::new(), message.get(end + 1..)?);
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            parts.push(after.get(..length)?.to_vec());
            rest = after.get(length..)?;
        }
        Some(Parcel { number: number.parse().ok()?, taker, parts })
    }
}

/// Which parcels came to this process, of one namespace.
#[derive(Default)]
pub(crate) struct Parcels {
    state: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// All up to this number came, or were given up.
    read: u64,
    /// What these bring was answered to their calls otherwise.
    fetched: BTreeSet<u64>,
    /// The calls for which the last of them came.
    lately: BTreeMap<u64, u64>,
}

/// How a parcel stands to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// It is the next.
    Next,
    /// Some before it are missing.
    Early,
    /// It came before: while the listening moves from one node to another, both may bring it.
    Again,
}

impl Parcels {
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many were read.
    pub(crate) fn read(&self) -> u64 {
        self.lock().read
    }

    /// One came for this call. A call is granted something once, so its parcel is known by both numbers, also where a
    /// store has forgotten all and counts anew.
    pub(super) fn came(&self, number: u64, taker: u64) -> Came {
        let mut state = self.lock();
        if state.lately.insert(number, taker) == Some(taker) {
            return Came::Again;
        }
        let misses = number > state.read + 1;
        // The first that is sent anew is of a store that has forgotten all.
        state.read = if number == 1 { 1 } else { state.read.max(number) };
        state.fetched = state.fetched.split_off(&number.saturating_sub(FETCHED_FOR));
        state.lately = state.lately.split_off(&number.saturating_sub(TWICE_WITHIN));
        if misses { Came::Early } else { Came::Next }
    }

    /// The call that waited for one was answered what it brings by the store itself.
    pub(super) fn fetched(&self, number: u64) {
        self.lock().fetched.insert(number);
    }

    /// Whether what one brings was answered otherwise.
    pub(super) fn was_fetched(&self, number: u64) -> bool {
        self.lock().fetched.contains(&number)
    }

    /// Whether some are missing of so many that were sent.
    pub(super) fn misses(&self, sent: u64) -> bool {
        self.lock().read < sent
    }

    /// So many were sent a while ago: what has not come is not waited for; whether there was any.
    pub(super) fn gives_up(&self, sent: u64) -> bool {
        let mut state = self.lock();
        let misses = state.read < sent;
        state.read = state.read.max(sent);
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_is_read_with_all_its_parts() {
        let message = b"+7 abc:12\n\0\0\0\x02hi\0\0\0\0\0\0\0\x01\n";
        let parcel = Parcel::read(message).unwrap();
        assert_eq!((parcel.number, parcel.taker), (7, 12));
        assert_eq!(parcel.parts, [b"hi".to_vec(), vec![], b"\n".to_vec()]);
        assert!(Parcel::read(b"+7 abc:12\n").unwrap().parts.is_empty());
        for other in [
            &b"+7 abc:12"[..],
            b"+7\n",
            b"+x abc:12\n",
            b"+7 abc:x\n",
            b"+7 a:1\n\0\0\0\x09hi",
            b"+7 a:1\n\0\0",
        ] {
            assert!(Parcel::read(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn what_is_lost_is_missed_by_the_next_and_by_what_a_tick_tells() {
        let parcels = Parcels::default();
        let came = |number| parcels.came(number, 100 + number);
        assert_eq!((came(1), came(2)), (Came::Next, Came::Next));
        assert_eq!(came(4), Came::Early, "the third is missing");
        assert!(!parcels.misses(4) && parcels.misses(5));
        assert!(parcels.gives_up(5) && !parcels.gives_up(5));
        assert_eq!(came(5), Came::Next, "late, and given up");
        assert_eq!(came(6), Came::Next);
        assert_eq!(parcels.came(1, 200), Came::Next, "of a store that has forgotten all");
        assert!(parcels.misses(2));
    }

    #[test]
    fn what_comes_twice_is_known_and_changes_nothing() {
        let parcels = Parcels::default();
        for number in 1..=3 {
            assert_eq!(parcels.came(number, 10 * number), Came::Next);
        }
        for number in 1..=3 {
            assert_eq!(parcels.came(number, 10 * number), Came::Again);
        }
        assert_eq!(parcels.read(), 3);
        assert_eq!(parcels.came(1, 40), Came::Next, "the same number for another call");
        parcels.came(TWICE_WITHIN + 4, 50);
        assert!(parcels.lock().lately.len() < 4, "nothing is remembered for ever");
    }

    #[test]
    fn what_was_answered_otherwise_is_known_when_its_parcel_comes() {
        let parcels = Parcels::default();
        parcels.fetched(1);
        assert_eq!(parcels.came(1, 1), Came::Next);
        assert!(parcels.was_fetched(1) && !parcels.was_fetched(2));
        parcels.came(FETCHED_FOR + 2, 2);
        assert!(!parcels.was_fetched(1), "nothing is remembered for ever");
    }
}
