//! The servers of a store: each writes what it says of itself beside the store, and reads what the others say.
//!
//! It must never take what stands there for proof that a server lives, nor show the secret.

use tenure_core::secret::Secret;

use crate::line::RedisCommand;
use crate::resp::{RespValue, Words};
use crate::scripts::Registration;
use crate::store::{RedisStore, StoreError};

/// What a server says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerEntry {
    /// Its id, new with each process.
    pub id: u128,
    /// Where other servers and clients reach it.
    pub url: String,
    /// Its release.
    pub release: String,
    /// The newest format of a store that it reads. It reads the one before it too.
    pub format: u32,
    /// The last entry that its rows have; 0 if it has none.
    pub applied: u64,
}

/// All servers that wrote to the store within the last minute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreServers {
    /// By which they know each other.
    pub secret: Secret,
    /// With the moment of the last word of each, by Redis's clock, in microseconds.
    pub servers: Vec<(u64, ServerEntry)>,
}

impl ServerEntry {
    pub(crate) fn text(&self) -> String {
        format!("{} {} {} {}", self.release, self.format, self.applied, self.url)
    }

    /// Of a name and a value of the hash; `None` if another release wrote it otherwise.
    pub(crate) fn read(id: &str, text: &str) -> Option<(u64, ServerEntry)> {
        let mut parts = text.splitn(5, ' ');
        let said = parts.next()?.parse().ok()?;
        let (release, format) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let applied = parts.next()?.parse().ok()?;
        let (id, url) = (u128::from_str_radix(id, 16).ok()?, parts.next()?.to_owned());
        Some((said, ServerEntry { id, url, release, format, applied }))
    }
}

impl StoreServers {
    fn read(value: &RespValue) -> Option<StoreServers> {
        let [secret, servers] = value.list()? else { return None };
        let servers = entries(servers.list()?);
        Some(StoreServers { secret: Secret::new(secret.text()?), servers })
    }
}

/// Of the names and values of the hash.
fn entries(hash: &[RespValue]) -> Vec<(u64, ServerEntry)> {
    let entry = |pair: &[RespValue]| ServerEntry::read(pair[0].text()?, pair[1].text()?);
    hash.chunks_exact(2).filter_map(entry).collect()
}

impl RedisStore {
    /// Writes what a server says of itself, and reads what all say. `secret` becomes the secret of the store if there is
    /// none. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program wrote the keys.
    pub fn register(&self, me: &ServerEntry, secret: &Secret) -> Result<StoreServers, StoreError> {
        let call = Registration { me, secret }.call(self.keys());
        let said = self.ask(RedisCommand::Script(call))?;
        StoreServers::read(&said).ok_or(StoreError::Strange { key: "servers" })
    }

    /// What servers said of themselves, without saying anything. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program wrote the key.
    pub fn servers(&self) -> Result<Vec<(u64, ServerEntry)>, StoreError> {
        let words = Words::of(&["HGETALL", &self.keys().servers()]);
        let all = self.ask(RedisCommand::Plain(words))?;
        let pairs = all.list().ok_or(StoreError::Strange { key: "servers" })?;
        Ok(entries(pairs))
    }

    /// Takes away what a server says of itself: it ends. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub fn unregister(&self, id: u128) -> Result<(), StoreError> {
        let words = Words::of(&["HDEL", &self.keys().servers(), &format!("{id:032x}")]);
        self.ask(RedisCommand::Plain(words)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_read_as_it_was_written_and_nothing_else_is_taken_for_it() {
        let me = ServerEntry {
            id: 7,
            url: "http://10.0.0.1:7070/with space".to_owned(),
            release: "0.1.0".to_owned(),
            format: 1,
            applied: 5,
        };
        let written = format!("12 {}", me.text());
        assert_eq!(ServerEntry::read("7", &written), Some((12, me)));
        let others =
            ["", "12", "12 0.1.0 x 5 http://a", "12 0.1.0 1 http://a"].map(|text| ("7", text));
        for (id, text) in others.into_iter().chain([("no", written.as_str())]) {
            assert_eq!(ServerEntry::read(id, text), None, "{id} {text:?}");
        }
    }
}
