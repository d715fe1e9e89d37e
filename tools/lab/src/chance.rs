//! Random numbers that a seed replays (SplitMix64). Not for secrets.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream of a seed.
    pub fn of(seed: u64) -> Self {
        Chance(seed)
    }
    /// A seed that differs in each process.
    pub fn any_seed() -> u64 {
        tenure_console::scratch::any_number()
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    /// A number from `from` to below `to`; `from` if there is nothing between.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % to.saturating_sub(from).max(1)
    }
    /// True in `n` of a hundred cases.
    pub fn percent(&mut self, n: u64) -> bool {
        self.within(0, 100) < n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_stays_within() {
        let draw = |seed| {
            let mut chance = Chance::of(seed);
            (0..100).map(|_| chance.within(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).iter().all(|n| (3..9).contains(n)));
        assert_eq!(Chance::of(1).within(5, 5), 5);
    }
}
