//! Random numbers from a seed, for tests that draw events and times.

use std::fmt::Write;

/// Throws numbers, always the same for a seed (xorshift). A seed of 0 throws nothing but 0.
pub struct Dice(pub u64);

impl Dice {
    /// Mixes the seed first, for seeds that are small or follow each other.
    pub fn mixed(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number from 0 to `n - 1`; `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// A text of this many bytes that hardly becomes smaller when it is packed.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            let _ = write!(text, "{:016x}", self.below(u64::MAX));
        }
        text.truncate(bytes);
        text
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these; `None` if the slice is empty.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let n = of.len() as u64;
        (n > 0).then(|| &of[self.below(n) as usize])
    }
}
