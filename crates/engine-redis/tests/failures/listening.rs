//! Processes that listen for parcels, as the server sees them.

use tenure_testkit::redis::RedisServer;

/// How many processes listen. A process is sent no parcel before it does.
pub fn listening(server: &RedisServer) -> usize {
    server.must(&["PUBSUB", "CHANNELS", "tenure:{default}w:*"]).list().len()
}

/// How many parcels were sent to processes that are known.
pub fn sent(server: &RedisServer) -> u64 {
    let numbers = server.must(&["HVALS", "tenure:{default}pg"]);
    let of = |text: &str| text.bytes().take(6).fold(0, |all, byte| all << 8 | u64::from(byte));
    numbers.list().iter().map(|one| of(&one.text())).sum()
}
