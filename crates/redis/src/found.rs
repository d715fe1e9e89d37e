//! Client's view of the servers of a store: reads them once, on a connection of its own, from any runtime.
//!
//! Nothing is written. A user of Redis needs `HGET` and `HGETALL` on the keys of the store, `TIME` and `PING`.

use std::time::Duration;

use tenure_core::redis_address::Address;
use tokio::time::timeout;

use crate::dial::{Connection, Dialer};
use crate::keys::StoreKeys;
use crate::refusal::moved_to;
use crate::resp::{RespValue, Words};
use crate::server_entry::ServerEntry;
use crate::store::StoreError;

/// In microseconds. A server that was silent for longer counts as gone; a living one writes each second.
const LIVES_US: u64 = 10_000_000;
/// Time limit for the answers of one Redis.
const WITHIN: Duration = Duration::from_secs(3);
/// The most nodes of a cluster that are asked: each may redirect to the next.
const NODES_MAX: usize = 4;

/// The living servers of a store: first its leader, then the others, most recently heard first.
///
/// # Errors
/// The certificates of the address cannot be used, or Redis cannot be reached, or it refuses.
pub async fn find_servers(address: Address) -> Result<Vec<ServerEntry>, StoreError> {
    let keys = StoreKeys::of(address.name());
    let dialer = Dialer::new(address)?;
    let mut to = None;
    for _ in 0..NODES_MAX {
        let connection = dialer.connect(to.as_ref()).await.map_err(StoreError::Away)?;
        let by = connection.at.clone();
        let asking = timeout(WITHIN, SaidByServers::ask(connection, &keys));
        let silent = |_| StoreError::Away("it did not answer in time".to_owned());
        let said = asking.await.map_err(silent)?;
        match said.map_err(|why| StoreError::Away(why.to_string()))? {
            Ok(said) => return Ok(said.living()),
            Err(refused) => match moved_to(&refused, &by) {
                Some(node) => to = Some(node),
                None => return Err(StoreError::Away(refused)),
            },
        }
    }
    Err(StoreError::Away("its nodes do not agree which of them has the store".to_owned()))
}

/// The content of the store's keys.
struct SaidByServers {
    leader: Option<u128>,
    /// Redis's clock, in microseconds.
    now: u64,
    servers: Vec<(u64, ServerEntry)>,
}

impl SaidByServers {
    /// Sends the requests; the inner error is a refusal of Redis.
    async fn ask(
        mut connection: Connection,
        keys: &StoreKeys,
    ) -> std::io::Result<Result<SaidByServers, String>> {
        let (mut said, questions) = (
            Vec::new(),
            [
                Words::of(&["HGET", &keys.own(), "owner"]),
                Words::of(&["HGETALL", &keys.servers()]),
                Words::of(&["TIME"]),
            ],
        );
        for question in &questions {
            match connection.ask(question).await? {
                RespValue::Refused(why) => return Ok(Err(why)),
                answer => said.push(answer),
            }
        }
        Ok(SaidByServers::read(&said).ok_or_else(|| "its answers cannot be read".to_owned()))
    }

    fn read(said: &[RespValue]) -> Option<SaidByServers> {
        let [leader, servers, time] = said else { return None };
        let [s, us] = time.list()? else { return None };
        let number = |part: &RespValue| part.text()?.parse::<u64>().ok();
        let pairs = servers.list()?.chunks_exact(2);
        Some(SaidByServers {
            leader: leader.text().and_then(|id| u128::from_str_radix(id, 16).ok()),
            now: number(s)? * 1_000_000 + number(us)?,
            servers: pairs
                .filter_map(|pair| ServerEntry::read(pair[0].text()?, pair[1].text()?))
                .collect(),
        })
    }

    fn living(self) -> Vec<ServerEntry> {
        let SaidByServers { leader, now, mut servers } = self;
        servers.retain(|(said, _)| now.saturating_sub(*said) <= LIVES_US);
        servers.sort_by_key(|(said, server)| {
            (Some(server.id) != leader, std::cmp::Reverse(*said), server.id)
        });
        servers.into_iter().map(|(_, server)| server).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_comes_first_and_long_silent_servers_are_left_out() {
        let server = |id| {
            let (url, release) = (format!("http://{id}"), "0.1.0".to_owned());
            ServerEntry { id, url, release, format: 1, applied: 0 }
        };
        let second = 1_000_000;
        let servers = [(97, 1), (99, 2), (89, 3), (95, 7), (101, 4)];
        for (leader, ids) in
            [(Some(7), vec![7, 4, 2, 1]), (None, vec![4, 2, 1, 7]), (Some(3), vec![4, 2, 1, 7])]
        {
            let servers = servers.map(|(said, id)| (said * second, server(id))).to_vec();
            let found = SaidByServers { leader, now: 100 * second, servers }.living();
            assert_eq!(found.iter().map(|server| server.id).collect::<Vec<_>>(), ids);
        }
    }
}
