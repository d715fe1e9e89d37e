//! The servers of a store: each writes its own entry beside the store, and reads the entries of the others.
//!
//! It must never take an entry as proof that a server lives, nor show the secret.

use tenure_core::secret::Secret;

use crate::line::RedisCommand;
use crate::resp::{RespValue, Words};
use crate::scripts::Registration;
use crate::server_entry::ServerEntry;
use crate::store::{RedisStore, StoreError};

/// All servers that wrote to the store within the last minute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreServers {
    /// The secret by which they authenticate each other.
    pub secret: Secret,
    /// Each with the time of its last registration by Redis's clock, in microseconds.
    pub servers: Vec<(u64, ServerEntry)>,
}

impl StoreServers {
    fn read(value: &RespValue) -> Option<StoreServers> {
        let [secret, servers] = value.list()? else { return None };
        let servers = entries(servers.list()?);
        Some(StoreServers { secret: Secret::new(secret.text()?), servers })
    }
}

/// Parses the names and values of the hash.
fn entries(hash: &[RespValue]) -> Vec<(u64, ServerEntry)> {
    let entry = |pair: &[RespValue]| ServerEntry::read(pair[0].text()?, pair[1].text()?);
    hash.chunks_exact(2).filter_map(entry).collect()
}

impl RedisStore {
    /// Writes the entry of a server, and reads all entries. `secret` becomes the secret of the store if there is no
    /// other. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program wrote the keys.
    pub fn register(&self, me: &ServerEntry, secret: &Secret) -> Result<StoreServers, StoreError> {
        let call = Registration { me, secret }.call(self.keys());
        let said = self.ask(RedisCommand::Script(call))?;
        StoreServers::read(&said).ok_or(StoreError::Strange { key: "servers" })
    }

    /// All entries, without writing one. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program wrote the key.
    pub fn servers(&self) -> Result<Vec<(u64, ServerEntry)>, StoreError> {
        let words = Words::of(&["HGETALL", &self.keys().servers()]);
        let all = self.ask(RedisCommand::Plain(words))?;
        let pairs = all.list().ok_or(StoreError::Strange { key: "servers" })?;
        Ok(entries(pairs))
    }

    /// Removes the entry of a server that ends. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub fn unregister(&self, id: u128) -> Result<(), StoreError> {
        let words = Words::of(&["HDEL", &self.keys().servers(), &format!("{id:032x}")]);
        self.ask(RedisCommand::Plain(words)).map(drop)
    }
}
