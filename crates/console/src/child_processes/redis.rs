//! A redis-server of our own, in a temporary folder, for callers that have no Redis to name.
//!
//! It takes the program that is installed, on a free port of loopback, and touches no other.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_core::secret::Secret;
use tokio::time::sleep;

use super::server::free_port;
use super::{ChildProcess, LOOK_EVERY, ProcessWords, READY_MAX};
use crate::exit::{Failure, UNAVAILABLE};

/// The line that a redis-server logs when it is ready for commands.
const READY: &str = "Ready to accept connections";
const LOG: &str = "redis.log";

/// A redis-server that syncs every write before it answers.
#[derive(Debug)]
pub struct ChildRedis {
    process: ChildProcess,
    port: u16,
}

impl ChildRedis {
    /// Starts one; its files are in `folder`. Returns when it is ready.
    pub async fn start(folder: &Path) -> Result<Self, Failure> {
        let program = program(folder)?;
        let (port, dir) = (free_port()?, folder.display().to_string());
        let (number, log) = (port.to_string(), folder.join(LOG));
        let args = ["--port", &number, "--bind", "127.0.0.1", "--dir", &dir, "--save", ""];
        let keep = ["--appendonly", "yes", "--appendfsync", "always"];
        let args = [&args[..], &keep].concat();
        let process =
            ChildProcess::start_program(&program, None, &args, ProcessWords::File(log.clone()))?;
        let mut redis = ChildRedis { process, port };
        let until = Instant::now() + READY_MAX;
        loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains(READY) {
                return Ok(redis);
            }
            if let Some(status) = redis.process.ended() {
                let last = said.lines().next_back().unwrap_or("it printed nothing");
                let said = format!("the redis-server did not start ({status}): {last}");
                return Err(Failure::new(UNAVAILABLE, said));
            }
            if Instant::now() > until {
                return Err(Failure::new(UNAVAILABLE, "the redis-server does not answer"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Its address. It has never lost a write, and never will for as long as it is ours.
    pub fn url(&self) -> Secret {
        Secret::new(format!("redis://127.0.0.1:{}?forgets=never", self.port))
    }
}

/// The program that is the server. Debian's `redis-tools` has it under the name of a checker, which is
/// the server when it is called by the server's name.
fn program(folder: &Path) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
    };
    if let Some(program) = find("redis-server").or_else(|| find("valkey-server")) {
        return Ok(program);
    }
    let checker = find("redis-check-rdb").ok_or_else(|| {
        Failure::new(UNAVAILABLE, "there is no redis-server on the PATH").hint(
            "install one (apt-get install redis-tools is enough), or name a Redis that runs: \
             --store redis://HOST:6379",
        )
    })?;
    let link = folder.join("redis-server");
    symlink(checker, &link)
        .map_err(|error| Failure::file("cannot make a link to the redis-server", &error))?;
    Ok(link)
}
