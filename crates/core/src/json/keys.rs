//! Checks that no key appears twice in one object.
//!
//! Small objects are compared key by key; wide ones are hashed, so that an object of 100,000 keys
//! does not cost 100,000 squared.

use std::borrow::Cow;
use std::collections::HashSet;

/// An object with more keys is hashed.
const NARROW_MAX: usize = 16;

/// The keys of one open object that is wide. The standard library seeds the hash, so that no caller
/// can send colliding keys; the seed affects only speed.
type Wide<'a> = HashSet<Cow<'a, str>>;

/// A key, with its length and first bytes in one number: keys with different numbers differ, which
/// nearly always decides without comparing the texts.
struct SeenKey<'a> {
    print: u64,
    key: Cow<'a, str>,
}

fn print(key: &str) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(key.bytes()) {
        *to = from;
    }
    u64::from_le_bytes(first) ^ ((key.len() as u64) << 56)
}

/// The keys of all open objects.
#[derive(Default)]
pub(super) struct Keys<'a> {
    seen: Vec<SeenKey<'a>>,
    open: Vec<(usize, Option<Box<Wide<'a>>>)>,
}

impl<'a> Keys<'a> {
    /// Begins an inner object.
    pub fn open(&mut self) {
        self.open.push((self.seen.len(), None));
    }

    /// Ends the innermost object.
    pub fn close(&mut self) {
        if let Some((base, _)) = self.open.pop() {
            self.seen.truncate(base);
        }
    }

    /// Adds a key to the innermost object; fails with the key if the object already has it.
    pub fn add(&mut self, key: Cow<'a, str>) -> Result<(), Cow<'a, str>> {
        let Some((base, wide)) = self.open.last_mut() else { return Ok(()) };
        if let Some(wide) = wide {
            if wide.contains(&key) {
                return Err(key);
            }
            wide.insert(key);
            return Ok(());
        }
        let print = print(&key);
        if self.seen[*base..].iter().any(|seen| seen.print == print && seen.key == key) {
            return Err(key);
        }
        self.seen.push(SeenKey { print, key });
        if self.seen.len() - *base > NARROW_MAX {
            *wide = Some(Box::new(self.seen.drain(*base..).map(|seen| seen.key).collect()));
        }
        Ok(())
    }
}
