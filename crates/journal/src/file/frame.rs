//! An entry as a segment stores it: a head, the entry, and zeros up to the next multiple of eight bytes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::JournalEntry;

/// Bytes before the entry: length of the entry, a mark, the last durable entry, the longest ttl, checksum of these and
/// of the entry's own.
const HEAD: usize = 4 + 4 + 8 + 8 + 8;
/// Every frame has this mark after its length.
const MARK: u32 = 0x324a_4e54;
/// Frames begin at multiples of this, so that a search for them after damage is quick.
pub(super) const ALIGNED: usize = 8;

/// An entry as a segment stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub entry: JournalEntry,
    /// The last entry that was durable when this one was written. An entry that is missing up to there was damaged, not
    /// cut short by a crash.
    pub durable: u64,
    /// The longest ttl of any lease so far, in microseconds.
    pub ttl_us: u64,
}

/// The number with which a journal's checksums begin. Callers write texts into entries, and a search behind damage
/// looks at all bytes: without a number that no caller knows, a text could pose as a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalKey(pub u64);

impl std::fmt::Debug for JournalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JournalKey(•••)")
    }
}

/// Bytes that the frame of an entry takes.
pub(super) fn size(entry: &JournalEntry) -> usize {
    (HEAD + entry.bytes().len()).next_multiple_of(ALIGNED)
}

impl Frame {
    /// Appends its bytes to `out`.
    pub(super) fn write(&self, key: JournalKey, out: &mut Vec<u8>) {
        let (begins, bytes) = (out.len(), self.entry.bytes());
        // An entry has at most some 8 MiB: see the bounds of calls and batches.
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&MARK.to_le_bytes());
        out.extend_from_slice(&self.durable.to_le_bytes());
        out.extend_from_slice(&self.ttl_us.to_le_bytes());
        let sum = sum(key, &out[begins..], bytes);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(bytes);
        out.resize(begins + size(&self.entry), 0);
    }

    /// The frame at the start of these bytes, if it is whole.
    pub(super) fn read(bytes: &[u8], key: JournalKey) -> Option<Frame> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (length, rest_of_head) = head.split_first_chunk::<4>()?;
        let (mark, rest_of_head) = rest_of_head.split_first_chunk::<4>()?;
        let (durable, rest_of_head) = rest_of_head.split_first_chunk::<8>()?;
        let (ttl_us, said) = rest_of_head.split_first_chunk::<8>()?;
        if u32::from_le_bytes(*mark) != MARK {
            return None;
        }
        let entry = rest.get(..u32::from_le_bytes(*length) as usize)?;
        // Checks the head first: a false match of the mark is not worth the checksum of all bytes behind it.
        if entry.len() < 8 || sum(key, &head[..HEAD - 8], entry).to_le_bytes() != *said {
            return None;
        }
        let entry = JournalEntry::read(entry).ok()?;
        let (durable, ttl_us) = (u64::from_le_bytes(*durable), u64::from_le_bytes(*ttl_us));
        Some(Frame { entry, durable, ttl_us })
    }
}

/// The checksum of the head and of the checksum with which an entry begins.
fn sum(key: JournalKey, head: &[u8], entry: &[u8]) -> u64 {
    let mut covered = [0; HEAD];
    covered[..HEAD - 8].copy_from_slice(head);
    covered[HEAD - 8..].copy_from_slice(&entry[..8]);
    xxh3_64_with_seed(&covered, key.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Position;

    const KEY: JournalKey = JournalKey(77);

    fn written(body: &[u8], durable: u64) -> (Frame, Vec<u8>) {
        let entry = JournalEntry::after(Position { number: 6, sum: 9 }, 1, body);
        let (frame, mut bytes) = (Frame { entry, durable, ttl_us: 5 }, Vec::new());
        frame.write(KEY, &mut bytes);
        (frame, bytes)
    }

    proptest! {
        #[test]
        fn a_frame_is_read_as_written_and_refused_with_any_flipped_bit(
            body in proptest::collection::vec(any::<u8>(), 0..60),
            durable in any::<u64>(),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let (frame, mut bytes) = written(&body, durable);
            prop_assert_eq!(bytes.len(), size(&frame.entry));
            prop_assert_eq!(Frame::read(&bytes, KEY), Some(frame.clone()));
            prop_assert_eq!(Frame::read(&bytes, JournalKey(78)), None);
            let at = at.index(HEAD + frame.entry.bytes().len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Frame::read(&bytes, KEY), None);
        }

        #[test]
        fn a_frame_that_is_cut_is_none(
            body in proptest::collection::vec(any::<u8>(), 0..60),
            at in any::<prop::sample::Index>(),
        ) {
            let (frame, bytes) = written(&body, 3);
            let cut = at.index(HEAD + frame.entry.bytes().len());
            prop_assert_eq!(Frame::read(&bytes[..cut], KEY), None);
            // The rest of the segment is there, and has zeros.
            let mut torn = bytes[..cut].to_vec();
            torn.resize(bytes.len(), 0);
            prop_assert!(torn == bytes || Frame::read(&torn, KEY).is_none());
        }
    }
}
