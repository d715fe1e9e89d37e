//! An entry as streams and files store it: an unchanged head, and a body that is compressed if that makes it shorter.
//!
//! In a file, and in the chunks of a snapshot, packed entries lie behind each other, each in a frame.

use crate::JournalEntry;

/// The field of an entry whose bytes are unchanged.
const PLAIN: &[u8] = b"e";
/// The field of an entry whose body is compressed.
const COMPRESSED: &[u8] = b"z";

/// Bytes of an entry before its body. The scripts compare the first 8, its checksum.
const HEAD: usize = 26;
/// Shorter bodies are not compressed.
const WORTH_BYTES: usize = 1024;
/// The best compression ratio of lz4.
const BEST_RATIO: usize = 255;

/// Bytes of a frame before the packed entry: its length, and the field by which it is unpacked.
pub const FRAME: usize = 5;
/// No packed entry in a frame is longer: a part of a snapshot has at least one row, and no more than it needs.
pub const PACKED_BYTES_MAX: usize = 64 << 20;

/// Appends an entry in a frame.
pub fn put_frame(bytes: &mut Vec<u8>, entry: &JournalEntry) {
    let (field, packed) = pack(entry);
    // Shorter than `PACKED_BYTES_MAX`.
    bytes.extend_from_slice(&(packed.len() as u32).to_le_bytes());
    bytes.extend_from_slice(field);
    bytes.extend_from_slice(&packed);
}

/// The length of a packed entry and its field, from the first bytes of its frame; `None` if there are fewer than
/// [`FRAME`] of them. A length above [`PACKED_BYTES_MAX`] is damage.
pub fn frame_head(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, field) = bytes.get(..FRAME)?.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*length) as usize, field))
}

/// The field and the bytes for the stream.
pub fn pack(entry: &JournalEntry) -> (&'static [u8], Vec<u8>) {
    let bytes = entry.bytes();
    if bytes.len() > HEAD + WORTH_BYTES {
        let compressed = lz4_flex::block::compress_prepend_size(&bytes[HEAD..]);
        if compressed.len() < bytes.len() - HEAD {
            let mut packed = bytes[..HEAD].to_vec();
            packed.extend_from_slice(&compressed);
            return (COMPRESSED, packed);
        }
    }
    (PLAIN, bytes.to_vec())
}

/// The original bytes of an entry; `None` if these are not the bytes of an entry.
pub fn unpack(field: &[u8], packed: &[u8]) -> Option<Vec<u8>> {
    if field == PLAIN {
        return Some(packed.to_vec());
    }
    let (head, compressed) = packed.split_at_checked(HEAD)?;
    let (length, _) = compressed.split_first_chunk::<4>()?;
    // A damaged length must not make this process allocate memory.
    if field != COMPRESSED
        || u32::from_le_bytes(*length) as usize > compressed.len().saturating_mul(BEST_RATIO)
    {
        return None;
    }
    let mut bytes = head.to_vec();
    bytes.extend(lz4_flex::block::decompress_size_prepended(compressed).ok()?);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;

    fn entry(body: &[u8]) -> JournalEntry {
        JournalEntry::after(Position::default(), 1, body)
    }

    #[test]
    fn bodies_above_1_kib_are_packed_if_shorter_and_all_come_back() {
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4096)
        .collect();
        for (body, field) in [
            (vec![], PLAIN),
            (vec![0; WORTH_BYTES], PLAIN),
            (vec![0; WORTH_BYTES + 1], COMPRESSED),
            (noise, PLAIN),
        ] {
            let entry = entry(&body);
            let (kept, packed) = pack(&entry);
            assert_eq!(kept, field, "{} bytes", body.len());
            assert!(packed.len() <= entry.bytes().len());
            assert_eq!(packed[..8], entry.bytes()[..8], "the checksum comes first");
            assert_eq!(unpack(kept, &packed).as_deref(), Some(&entry.bytes()[..]));
        }
    }

    #[test]
    fn bytes_that_are_damaged_are_no_entry_and_take_no_memory() {
        let (_, packed) = pack(&entry(&[7; 100_000]));
        for at in [HEAD, HEAD + 1, HEAD + 2, HEAD + 3] {
            let mut damaged = packed.clone();
            damaged[at] ^= 0xff;
            assert_eq!(unpack(COMPRESSED, &damaged), None, "byte {at}");
        }
        for cut in [0, 8, HEAD, HEAD + 3, packed.len() - 1] {
            assert_eq!(unpack(COMPRESSED, &packed[..cut]), None, "{cut} bytes");
        }
        assert_eq!(unpack(b"x", &packed), None);
    }
}
