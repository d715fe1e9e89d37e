//! A redis-server of one measurement: started on a free port in a folder of its own, asked what it
//! used, and ended. It must never touch a server that it did not start.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Failed;

const START_MAX: Duration = Duration::from_secs(10);

/// Finds the program: by its name in PATH, or as redis-check-rdb, which is the same program and does
/// what it is called.
pub fn find(work: &Path) -> Result<PathBuf, Failed> {
    if let Some(found) = in_path("redis-server") {
        return Ok(found);
    }
    let check = in_path("redis-check-rdb").ok_or(
        "neither redis-server nor redis-check-rdb is in PATH: install redis-server (or, on Debian, \
         redis-tools)",
    )?;
    let folder = work.join("bin");
    fs::create_dir_all(&folder)?;
    let link = folder.join("redis-server");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(check, &link)?;
    Ok(link)
}

/// A program in PATH.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A running server.
pub struct Server {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    child: Child,
    link: redis::Connection,
    folder: TempDir,
}

/// What a server used up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu_s: f64,
    /// Bytes of data in memory.
    pub memory: u64,
}

impl Server {
    /// Starts one and waits until it answers.
    pub fn start(program: &Path, aof: bool) -> Result<Self, Failed> {
        // Between the two somebody else may take the port; then the server ends, and we try again.
        for _ in 0..5 {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            if let Some(server) = Server::start_on(program, port, aof)? {
                return Ok(server);
            }
        }
        Err("redis-server does not start: no port was free for it".into())
    }

    fn start_on(program: &Path, port: u16, aof: bool) -> Result<Option<Self>, Failed> {
        let folder = tempfile::Builder::new().prefix("tenure-peers-").tempdir()?;
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]);
        command.args(["--port", &port.to_string(), "--maxmemory-policy", "noeviction"]);
        command.args(["--latency-monitor-threshold", "1"]);
        command.args(["--appendonly", if aof { "yes" } else { "no" }, "--appendfsync", "everysec"]);
        command.arg("--dir").arg(folder.path());
        command.arg("--logfile").arg(folder.path().join("log"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
        let until = Instant::now() + START_MAX;
        loop {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            // Another's server may listen there: ours says that it has the id of our child.
            if let Ok(mut link) = client.get_connection()
                && let Ok(info) = info(&mut link, "server")
                && field(&info, "process_id") == Some(&child.id().to_string())
            {
                return Ok(Some(Server { port, child, link, folder }));
            }
            if Instant::now() > until {
                let _ = child.kill();
                let _ = child.wait();
                let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
                return Err(format!("redis-server does not answer; its log: {log}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its version.
    pub fn version(&mut self) -> Result<String, Failed> {
        let info = info(&mut self.link, "server")?;
        Ok(field(&info, "redis_version").unwrap_or("unknown").to_owned())
    }

    /// What it used so far.
    pub fn used(&mut self) -> Result<Used, Failed> {
        let cpu = info(&mut self.link, "cpu")?;
        let memory = info(&mut self.link, "memory")?;
        let number = |info: &str, name: &str| -> Result<f64, Failed> {
            Ok(field(info, name).ok_or("INFO without figures")?.parse()?)
        };
        Ok(Used {
            cpu_s: number(&cpu, "used_cpu_sys")? + number(&cpu, "used_cpu_user")?,
            memory: number(&memory, "used_memory")? as u64,
        })
    }

    /// Milliseconds of its longest command so far; 0 if none took one.
    pub fn longest_ms(&mut self) -> Result<u64, Failed> {
        let events: Vec<(String, u64, u64, u64)> =
            redis::cmd("LATENCY").arg("LATEST").query(&mut self.link)?;
        let commands = events.into_iter().filter(|(event, ..)| event.contains("command"));
        Ok(commands.map(|(.., longest)| longest).max().unwrap_or(0))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The folder goes with its value, after the server.
        let _ = self.folder.path();
    }
}

fn info(link: &mut redis::Connection, section: &str) -> Result<String, Failed> {
    Ok(redis::cmd("INFO").arg(section).query(link)?)
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
