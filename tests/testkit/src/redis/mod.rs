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

use std::io::Write;
use std::sync::Once;
use std::time::{Duration, Instant};

/// Names, separated by commas, of the parts that this run of the tests leaves out.
const WITHOUT: &str = "TENURE_WITHOUT";

/// How long one step of a fixture may take; a machine that builds beside the tests is slow.
const STEP_MAX: Duration = Duration::from_secs(30);
/// The pause between two looks at another process.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Whether this machine has a Redis that the fixtures can start.
pub fn present() -> bool {
    process::program().is_some()
}

/// Whether tests that need Redis run: not if `TENURE_WITHOUT` names `redis`, which is then reported once, past the
/// harness, on stderr. A machine without Redis is no reason: there the first fixture panics and says what to install,
/// so that no test is left out unnoticed.
pub fn wanted() -> bool {
    static SAID: Once = Once::new();
    let without = std::env::var(WITHOUT).unwrap_or_default();
    if !without.split(',').any(|name| name.trim() == "redis") {
        return true;
    }
    SAID.call_once(|| {
        let _ =
            writeln!(std::io::stderr(), "left out: tests that need Redis ({WITHOUT}={without})");
    });
    false
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

/// Waits until `look` finds something; panics after too long, with the name of the awaited thing and the last finding
/// of `look`.
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if begin.elapsed() > STEP_MAX => panic!("waited in vain for {what}: {seen}"),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}
