//! Size of a store in its Redis, the remaining room, and the checks of the Redis itself.
//!
//! It only reads. It must never refuse an append: an admitted change is always written.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_journal::StoreFacts;

use crate::line::RedisCommand;
use crate::resp::{RespValue, Words};
use crate::scripts::SnapshotName;
use crate::sizes::{Sizes, StoreRoom, StoreSizes};
use crate::store::{RedisStore, StoreError};
use crate::unfit::UnfitServer;

/// The oldest Redis whose scripts run on a full server. Every Valkey reports a newer version.
const MAJOR_MIN: u32 = 7;
/// The number of keys in one step of a search.
const SCAN_KEYS: &str = "1000";

/// The kind of a store in Redis or Valkey.
pub const STORE_KIND: &str = "redis";

impl RedisStore {
    /// The size of the store: its last measurement, and this process's appends since. Sends no request.
    pub fn sizes(&self) -> StoreSizes {
        let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        let Sizes { log, snapshot, before } = self.counted();
        StoreSizes { log: of(log), snapshot: of(snapshot), before: of(before) }
    }

    /// The size in one number, for operators.
    pub fn facts(&self) -> StoreFacts {
        StoreFacts { kind: STORE_KIND, bytes: self.sizes().total() }
    }

    /// Measures the store, after a load and after each snapshot; it takes Redis some ms for a log of 100 MB.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub fn measure(&self) -> Result<StoreSizes, StoreError> {
        let (log, own) = (self.keys().log(), self.keys().own());
        let usage =
            self.ask(RedisCommand::Plain(Words::of(&["MEMORY", "USAGE", &log, "SAMPLES", "0"])))?;
        let named =
            self.ask(RedisCommand::Plain(Words::of(&["HMGET", &own, "snapshot", "before"])))?;
        let named = named.list().unwrap_or_default();
        let named = |index| {
            let value: Option<&RespValue> = named.get(index);
            value.and_then(RespValue::text).and_then(SnapshotName::read)
        };
        // Its first piece is unlinked last, and `own` still names it then.
        let before = match named(1) {
            Some(before) if self.has_piece(before.generation, 0)? => before.bytes,
            _ => 0,
        };
        let log = match usage {
            RespValue::Int(bytes) => bytes.unsigned_abs(),
            _ => 0,
        };
        let counted = self.counted();
        counted.log.store(log, Ordering::Relaxed);
        counted.snapshot.store(named(0).map_or(0, |name| name.bytes), Ordering::Relaxed);
        counted.before.store(before, Ordering::Relaxed);
        Ok(self.sizes())
    }

    /// Asks for the memory that Redis still has, and for its eviction policy.
    ///
    /// # Errors
    /// Redis cannot be reached, or its answer makes no sense.
    pub fn room(&self) -> Result<StoreRoom, StoreError> {
        let info = self.info("memory")?;
        let number = |name| said(&info, name).and_then(|text| text.parse::<u64>().ok());
        let no = || StoreError::Away("it does not say how much memory it uses".to_owned());
        let used = number("used_memory").ok_or_else(no)?;
        let bound = number("maxmemory").filter(|bound| *bound > 0);
        Ok(StoreRoom { used, bound, store: self.sizes(), evicts: evicts(&info) })
    }

    /// Rejects a Redis that is too old for a store, or that drops keys when it is full.
    ///
    /// # Errors
    /// The Redis is rejected, or cannot be reached.
    pub fn check_server(&self) -> Result<(), StoreError> {
        let (server, memory) = (self.info("server")?, self.info("memory")?);
        Ok(fit(&server, &memory)?)
    }

    /// Rejects a Redis in which an earlier release keeps namespaces under the name of this store. For use before a
    /// store is made: it reads all keys of the server, in steps. In a cluster it sees those of the store's own node.
    ///
    /// # Errors
    /// There are such keys, or Redis cannot be reached.
    pub fn refuse_earlier_layout(&self) -> Result<(), StoreError> {
        let prefix = self.keys().earlier();
        let special = |letter: char| matches!(letter, '*' | '?' | '[' | ']' | '\\');
        let escaped: String = prefix
            .chars()
            .flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter]))
            .collect();
        let pattern = format!("{escaped}{{*}}m");
        let mut cursor = "0".to_owned();
        loop {
            let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_KEYS, "TYPE", "hash"];
            let page = self.ask(RedisCommand::Plain(Words::of(&words)))?;
            let (next, found) = match page.list() {
                Some([next, found]) => (next.text(), found.list()),
                _ => (None, None),
            };
            if found.is_some_and(|found| !found.is_empty()) {
                return Err(UnfitServer::EarlierLayout { prefix }.into());
            }
            match next {
                None | Some("0") => return Ok(()),
                Some(next) => cursor = next.to_owned(),
            }
        }
    }

    /// The answer to `INFO everything`: lines of `name:value`, for checks of the setup. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or refuses.
    pub fn told(&self) -> Result<String, StoreError> {
        self.info("everything")
    }

    /// Settings of Redis in lines of `name:value`. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or refuses: few users have the right to ask.
    pub fn server_settings(&self, names: &[&str]) -> Result<String, StoreError> {
        let words = Words::of(&["CONFIG", "GET"]);
        let words = names.iter().fold(words, |words, name| words.and(name));
        let said = self.ask(RedisCommand::Plain(words))?;
        let pairs = said.list().unwrap_or_default().chunks_exact(2);
        let line = |pair: &[RespValue]| Some(format!("{}:{}\n", pair[0].text()?, pair[1].text()?));
        Ok(pairs.filter_map(line).collect())
    }

    fn info(&self, section: &str) -> Result<String, StoreError> {
        let info = self.ask(RedisCommand::Plain(Words::of(&["INFO", section])))?;
        let no = || StoreError::Away("it does not say what it is".to_owned());
        info.text().map(str::to_owned).ok_or_else(no)
    }
}

/// The value of a field in `INFO`.
fn said<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn fit(server: &str, memory: &str) -> Result<(), UnfitServer> {
    let version = said(server, "redis_version").unwrap_or("?");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < MAJOR_MIN) {
        return Err(UnfitServer::Old { version: version.to_owned() });
    }
    evicts(memory).map_or(Ok(()), Err)
}

/// The reason to reject a Redis that drops keys when it is full, from `INFO memory`. The policy may change while it
/// runs, and a replica that becomes the primary has its own.
fn evicts(memory: &str) -> Option<UnfitServer> {
    match said(memory, "maxmemory_policy") {
        Some("noeviction") => None,
        policy => Some(UnfitServer::Evicts { policy: policy.unwrap_or("?").to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_that_is_old_or_evicts_is_refused() {
        let server = |version| format!("# Server\r\nredis_version:{version}\r\nrun_id:1\r\n");
        let memory = |policy| format!("# Memory\r\nused_memory:1\r\nmaxmemory_policy:{policy}\r\n");
        let old = |version: &str| Err(UnfitServer::Old { version: version.to_owned() });
        let evicts = |policy: &str| Err(UnfitServer::Evicts { policy: policy.to_owned() });
        for (version, policy, fits) in [
            ("7.0.15", "noeviction", Ok(())),
            ("7.2.4", "noeviction", Ok(())),
            ("8.0.0", "noeviction", Ok(())),
            ("10.1.0", "noeviction", Ok(())),
            ("6.2.14", "noeviction", old("6.2.14")),
            ("x", "noeviction", old("x")),
            ("7.0.15", "allkeys-lru", evicts("allkeys-lru")),
            ("7.0.15", "volatile-ttl", evicts("volatile-ttl")),
        ] {
            assert_eq!(fit(&server(version), &memory(policy)), fits);
        }
    }
}
