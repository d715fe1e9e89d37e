//! Redis for tests: a server, a cluster and a Sentinel of a test's own, on loopback, each in a folder that is removed
//! with it.
//!
//! Nothing here touches a server that it did not start, starts a system service, or outlives its test.

mod cluster;
mod process;
mod sentinel;
mod server;
mod wire;

pub use cluster::{RedisCluster, SlotMove};
pub use process::free_port;
pub use sentinel::RedisSentinel;
pub use server::{Aof, RedisServer};
pub use wire::Reply;

use std::time::Duration;

use crate::tenure::once;
use crate::wants;

/// How long one step of a fixture may take; a machine that builds beside the tests is slow.
const STEP_MAX: Duration = Duration::from_secs(30);

/// Whether this machine has a Redis that the fixtures can start.
pub fn present() -> bool {
    process::program().is_some()
}

/// Whether tests that need Redis run: see [`wants`].
pub fn wanted() -> bool {
    wants("redis")
}

/// Ends a test that needs Redis, as its first line, if this run leaves those out: see [`redis::wanted`](wanted).
#[macro_export]
macro_rules! needs_redis {
    () => {
        if !$crate::redis::wanted() {
            return;
        }
    };
}

/// Waits until `look` finds something, no longer than `STEP_MAX`.
fn until<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    once(STEP_MAX, what, look)
}
