//! Values that are spread evenly without randomness: a text decides them, so that a repeat and another process compute
//! the same value. The jitter of a retry, the phase of an interval and the jitter of a schedule come from here.

use sha1::{Digest, Sha1};

/// The first 32 bits of SHA-1 over `text`: a hash that every language has.
pub fn head(text: &str) -> u32 {
    let digest = Sha1::digest(text.as_bytes());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// `floor(head * whole / 2^32)`: from 0 to less than `whole` (and 0 of 0), in the unit of `whole`.
pub fn share(head: u32, whole: u64) -> u64 {
    // It fits, since it is less than `whole`, a `u64`.
    ((u128::from(head) * u128::from(whole)) >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_that_of_sha_1() {
        // SHA-1("abc") begins with a9993e36.
        assert_eq!(head("abc"), 0xa999_3e36);
    }

    #[test]
    fn a_share_is_less_than_the_whole() {
        for (head, whole, expected) in [
            (0, 1_000, 0),
            (u32::MAX, 1_000, 999),
            (u32::MAX, u64::MAX, u64::MAX - (1 << 32)),
            (1 << 31, 1_000, 500),
            (u32::MAX, 0, 0),
            (u32::MAX, 1, 0),
        ] {
            assert_eq!(share(head, whole), expected, "{head} of {whole}");
        }
    }
}
