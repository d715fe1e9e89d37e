//! A connection for questions outside of any store: the availability of a Redis, its state and its keys.
//!
//! Each is one connection with one command at a time, without retries.

use std::io;

use tenure_core::redis_address::{Address, Endpoint, Topology};

use crate::dial::{Connection, Dialer};
use crate::refusal::node_at;
use crate::resp::{RespValue, Words};
use crate::store::StoreError;

/// A connection to one server.
pub struct PlainRedis(Connection);

impl PlainRedis {
    /// Connects to the primary, or to the first node of a cluster that answers.
    ///
    /// # Errors
    /// The certificates of the address cannot be used, or Redis cannot be reached or refuses.
    pub async fn connect(address: &Address) -> Result<PlainRedis, StoreError> {
        let dialer = Dialer::new(address.clone())?;
        dialer.connect(None).await.map(PlainRedis).map_err(StoreError::Away)
    }

    /// Connects to each server that holds a part of the data: the primary, or all primaries of a cluster.
    ///
    /// # Errors
    /// As for [`PlainRedis::connect`].
    pub async fn connect_to_all(address: &Address) -> Result<Vec<PlainRedis>, StoreError> {
        let dialer = Dialer::new(address.clone())?;
        let mut first = PlainRedis(dialer.connect(None).await.map_err(StoreError::Away)?);
        if !matches!(address.topology(), Topology::Cluster(_)) {
            return Ok(vec![first]);
        }
        let nodes = first.ask(&["CLUSTER", "NODES"]).await?;
        let mut all = Vec::new();
        for node in primaries(nodes.text().unwrap_or_default(), &first.0.at) {
            all.push(PlainRedis(dialer.connect(Some(&node)).await.map_err(StoreError::Away)?));
        }
        Ok(all)
    }

    /// Sends one command. A refusal of the server is an error.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost: the command may have been done.
    pub async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<RespValue, StoreError> {
        let words = words.iter().fold(Words::default(), |all, word| all.and(word));
        let said = self.0.ask(&words).await.map_err(|why: io::Error| why.to_string());
        match said {
            Ok(RespValue::Refused(why)) | Err(why) => Err(StoreError::Away(why)),
            Ok(value) => Ok(value),
        }
    }
}

/// The primaries in the answer to `CLUSTER NODES`: one line per node, its address second and its flags third. The node
/// `by` answered; it writes no host for itself before it has met another one.
fn primaries(nodes: &str, by: &Endpoint) -> Vec<Endpoint> {
    let primary = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (address, flags) = (words.next()?, words.next()?);
        let at = address.split('@').next()?;
        let is_primary = flags.split(',').any(|flag| flag == "master");
        is_primary.then(|| node_at(at, by)).flatten()
    };
    nodes.lines().filter_map(primary).collect()
}

impl std::fmt::Debug for PlainRedis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainRedis").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primaries_of_a_cluster_are_read_from_its_node_list() {
        let nodes = "07c3 127.0.0.1:30004@31004,host4 slave e7d1 0 1426238317239 4 connected\n\
                     67ed 127.0.0.1:30002@31002,host2 master - 0 1426238316232 2 connected 5461-10922\n\
                     e7d1 ::1:30001@31001 myself,master - 0 0 1 connected 0-5460\n\
                     a7d1 :30003@31003 myself,master - 0 0 1 connected\n";
        let by = Endpoint { host: "10.0.0.7".to_owned(), port: 30_003 };
        let named: Vec<_> =
            primaries(nodes, &by).into_iter().map(|one| (one.host, one.port)).collect();
        let expected = [("127.0.0.1", 30002), ("::1", 30001), ("10.0.0.7", 30003)];
        assert_eq!(named, expected.map(|(host, port)| (host.to_owned(), port)));
    }
}
