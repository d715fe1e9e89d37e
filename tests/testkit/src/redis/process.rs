//! Finds the program of Redis, and starts it so that it ends with the tests that started it.
//!
//! It knows no command of Redis and waits for nothing.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Below the ports that Linux gives to outgoing connections: otherwise, while a server is down for
/// a restart, any connection of any test could take its port.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// The file that a server writes its log to.
pub const LOG: &str = "log";

/// A port of loopback that was free a moment ago. Another process may still take it first: a caller
/// that starts a server on it must then try again.
pub fn free_port() -> u16 {
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    // Test processes that run at once start at different ports.
    let first = std::process::id().wrapping_mul(37);
    for _ in PORTS {
        let place = first.wrapping_add(LOOKED.fetch_add(1, Ordering::Relaxed));
        let Ok(port) = u16::try_from(PORTS.start + place % (PORTS.end - PORTS.start)) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 from {} to {} is free", PORTS.start, PORTS.end - 1);
}

/// The path of a program that can be called by its name.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The program of the server, or the one that becomes it by its name.
pub fn program() -> Option<PathBuf> {
    ["redis-server", "valkey-server", "redis-check-rdb"].into_iter().find_map(in_path)
}

/// The server's program, to be called from `dir`. Debian's `redis-tools` has it under the name of a
/// checker, which is the server when it is called by the server's name; the package `redis-server`
/// would start a service.
fn called(dir: &Path) -> PathBuf {
    let Some(program) = program() else {
        panic!(
            "there is no Redis on this machine: install redis-tools (apt-get install redis-tools), \
             or leave these tests out with ./test --without redis"
        );
    };
    if program.file_name().is_some_and(|name| name != "redis-check-rdb") {
        return program;
    }
    let link = dir.join("redis-server");
    match symlink(program, &link) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => {
            panic!("no link to the redis-server: {why}")
        }
        _ => link,
    }
}

/// Starts a server in `dir`, with `envs` in its environment; it appends to its log.
pub fn spawn(dir: &Path, words: &[String], envs: &[(&'static str, OsString)]) -> Child {
    let log = File::options().create(true).append(true).open(dir.join(LOG));
    let Ok((out, err)) = log.and_then(|log| Ok((log.try_clone()?, log))) else {
        panic!("no log for the redis-server in {}", dir.display());
    };
    let program = called(dir);
    // The kernel kills it with its starter, even if the tests themselves are killed and no Drop
    // runs. `setpriv`, which requests this, is part of every Linux; elsewhere there is Drop.
    let mut command = match in_path("setpriv") {
        Some(setpriv) if cfg!(target_os = "linux") => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL"]).arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.envs(envs.iter().map(|(name, value)| (name, value)));
    command.current_dir(dir).args(words).stdin(Stdio::null()).stdout(out).stderr(err);
    match spawn_from_the_lasting_thread(command) {
        Ok(child) => child,
        Err(why) => panic!("the redis-server cannot be started: {why}"),
    }
}

type Order = (Command, Sender<io::Result<Child>>);

/// That signal comes when the *thread* that started the process ends, and every test is a thread of
/// its own: a server that several tests share would die with the first of them.
fn spawn_from_the_lasting_thread(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts servers has ended");
    let orders = ORDERS.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in taken {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, answered) = channel();
    let sent = orders.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer));
    sent.map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?
}
