//! An entry: its bytes, and the checks when they are read back.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes before the body: checksum, checksum of the entry before, number, format of the body.
const HEAD: usize = 8 + 8 + 8 + 2;

/// The end of a journal, or of a copy that is made from it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Position {
    /// The number of the last entry; 0 before the first.
    pub number: u64,
    /// Its checksum; 0 before the first.
    pub sum: u64,
}

/// Reasons to reject bytes as an entry, or as the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEntry {
    /// There are too few of them for an entry.
    #[error("it has only {bytes} bytes")]
    Short {
        /// The number of bytes.
        bytes: usize,
    },
    /// They have changed since they were written.
    #[error("its checksum does not fit its bytes")]
    Damaged,
    /// One or more entries before it are missing.
    #[error("it has the number {number}, and {wanted} comes next")]
    OutOfTurn {
        /// The number that the entry says it has.
        number: u64,
        /// The number that should follow.
        wanted: u64,
    },
    /// The entry of that number, before it or in its place, has different content here.
    #[error("entry {before} is another here")]
    OtherPast {
        /// The number of that entry.
        before: u64,
    },
    /// Another release wrote its body.
    #[error(
        "its body has format {format}, and this release knows {known}; open the store with the release that wrote it"
    )]
    Format {
        /// The format that the entry says its body has.
        format: u16,
        /// The format that is known.
        known: u16,
    },
    /// Its bytes are as they were written, but the body is not of its format.
    #[error("its body is not of format {format}, which it claims")]
    Body {
        /// The format that the entry says its body has.
        format: u16,
    },
}

/// An entry whose checksum has been made or checked. Clones share its bytes.
///
/// The checksum covers the number and the checksum of the entry before. So a read finds every entry that is damaged,
/// cut, misplaced or from another history. It protects from accidents, not from somebody who can write the journal.
#[derive(Clone, PartialEq, Eq)]
pub struct JournalEntry {
    bytes: Arc<[u8]>,
}

impl JournalEntry {
    /// The entry that follows `before`. The caller chooses the `format` of the body.
    pub fn after(before: Position, format: u16, body: &[u8]) -> JournalEntry {
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&before.sum.to_le_bytes());
        bytes.extend_from_slice(&(before.number + 1).to_le_bytes());
        bytes.extend_from_slice(&format.to_le_bytes());
        bytes.extend_from_slice(body);
        let sum = xxh3_64(&bytes[8..]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        JournalEntry { bytes: bytes.into() }
    }

    /// Reads an entry from its bytes.
    ///
    /// # Errors
    /// There are too few bytes, or the checksum does not match.
    pub fn read(bytes: impl Into<Arc<[u8]>>) -> Result<JournalEntry, BadEntry> {
        let entry = JournalEntry { bytes: bytes.into() };
        if entry.bytes.len() < HEAD {
            return Err(BadEntry::Short { bytes: entry.bytes.len() });
        }
        if xxh3_64(&entry.bytes[8..]) == entry.position().sum {
            Ok(entry)
        } else {
            Err(BadEntry::Damaged)
        }
    }

    /// Checks that this entry is the next one after `end`.
    ///
    /// # Errors
    /// It has another number, or was written after another entry.
    pub fn follows(&self, end: Position) -> Result<(), BadEntry> {
        let Position { number, .. } = self.position();
        if number != end.number + 1 {
            return Err(BadEntry::OutOfTurn { number, wanted: end.number + 1 });
        }
        if self.number_at(8) == end.sum {
            Ok(())
        } else {
            Err(BadEntry::OtherPast { before: end.number })
        }
    }

    /// Its number and checksum: the end of a journal whose last entry this is.
    pub fn position(&self) -> Position {
        Position { number: self.number_at(16), sum: self.number_at(0) }
    }

    /// The body, if its format is `known`.
    ///
    /// # Errors
    /// The body has another format.
    pub fn body(&self, known: u16) -> Result<&[u8], BadEntry> {
        let format = u16::from_le_bytes([self.bytes[24], self.bytes[25]]);
        if format == known {
            Ok(&self.bytes[HEAD..])
        } else {
            Err(BadEntry::Format { format, known })
        }
    }

    /// All bytes, as [`JournalEntry::read`] reads them.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    fn number_at(&self, at: usize) -> u64 {
        let mut number = [0; 8];
        number.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(number)
    }
}

/// Without the body: it holds payloads and the data of resources.
impl std::fmt::Debug for JournalEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JournalEntry({}, {} bytes)", self.position().number, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: u16 = 7;

    fn second() -> JournalEntry {
        let first = JournalEntry::after(Position::default(), FORMAT, b"one");
        JournalEntry::after(first.position(), FORMAT, b"two")
    }

    #[test]
    fn an_entry_is_read_as_written_and_follows_its_predecessor() {
        let first = JournalEntry::after(Position::default(), FORMAT, b"one");
        let second = second();
        let read = JournalEntry::read(second.bytes().clone()).unwrap();
        assert_eq!((read.body(FORMAT), read.follows(first.position())), (Ok(&b"two"[..]), Ok(())));
        assert_eq!(first.follows(Position::default()), Ok(()));
    }

    #[test]
    fn an_entry_in_a_wrong_place_or_of_another_past_is_refused() {
        let second = second();
        let Position { number, sum } = second.position();
        assert_eq!(number, 2);
        let out_of_turn = |end| BadEntry::OutOfTurn { number: 2, wanted: end + 1 };
        for end in [0, 2, 3] {
            assert_eq!(second.follows(Position { number: end, sum }), Err(out_of_turn(end)));
        }
        let other = JournalEntry::after(Position::default(), FORMAT, b"uno").position();
        assert_eq!(second.follows(other), Err(BadEntry::OtherPast { before: 1 }));
    }

    #[test]
    fn a_body_of_another_format_is_not_handed_out() {
        let no = BadEntry::Format { format: FORMAT, known: 8 };
        assert_eq!(second().body(8), Err(no));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_found(
            body in proptest::collection::vec(any::<u8>(), 0..100),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let entry = JournalEntry::after(second().position(), FORMAT, &body);
            let mut bytes = entry.bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(JournalEntry::read(bytes), Err(BadEntry::Damaged));
        }

        #[test]
        fn every_cut_is_found(body in proptest::collection::vec(any::<u8>(), 0..100)) {
            let entry = JournalEntry::after(second().position(), FORMAT, &body);
            for bytes in 0..entry.bytes().len() {
                let no = if bytes < HEAD { BadEntry::Short { bytes } } else { BadEntry::Damaged };
                prop_assert_eq!(JournalEntry::read(&entry.bytes()[..bytes]), Err(no));
            }
        }

        #[test]
        fn bytes_that_were_never_an_entry_are_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            prop_assert!(JournalEntry::read(bytes).is_err());
        }
    }
}
