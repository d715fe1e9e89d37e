//! Redis server of one measurement: started on a free port in a folder of its own, asked for its resource use, and
//! ended. It must never touch a server that it did not start.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Failed;
use crate::systems::Front;

const START_MAX: Duration = Duration::from_secs(10);
/// The time within which a server in front must answer for its store.
const FRONT_MAX: Duration = Duration::from_secs(30);
/// Ticks in a second of processor time, as Linux counts it for programs.
const TICKS: f64 = 100.0;

/// Finds the program: by its name in PATH, or as redis-check-rdb, which is the same program and acts by the name that
/// it is called by.
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

/// The path of a program in PATH.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A running redis-server, and the server in front of it.
pub struct Server {
    /// The port to which programs connect, on 127.0.0.1.
    pub port: u16,
    /// The server in front of Redis, or in place of it: if there is one, it listens there.
    front: Option<Child>,
    child: Child,
    link: redis::Connection,
    folder: TempDir,
}

/// The resources that a server has used since its start.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu_s: f64,
    /// The same for the server in front, if there is one.
    pub front_cpu_s: Option<f64>,
    /// Bytes of data in memory.
    pub memory: u64,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub fn start(program: &Path, aof: bool) -> Result<Self, Failed> {
        // Between the two another process may take the port; then the server ends, and we try again.
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
            // Another server may listen there: ours reports the process id of our child.
            if let Ok(mut link) = client.get_connection()
                && let Ok(info) = info(&mut link, "server")
                && field(&info, "process_id") == Some(&child.id().to_string())
            {
                return Ok(Some(Server { port, front: None, child, link, folder }));
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

    /// Starts a server in front, and waits until it answers: programs connect to it from now on.
    pub fn put_in_front(&mut self, front: Front, executable: &Path) -> Result<(), Failed> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let listens = format!("127.0.0.1:{port}");
        let folder = self.store();
        let mut command = Command::new(executable);
        let question = match front {
            Front::TenureOnRedis => {
                let store = format!("redis://127.0.0.1:{}", self.port);
                command.args(["serve", "--listen", &listens, "--store", &store]);
                HTTP_QUESTION
            }
            Front::TenureOnFolder => {
                let store = format!("file:{}", folder.display());
                command.args(["serve", "--listen", &listens, "--store", &store]);
                HTTP_QUESTION
            }
            Front::Beanstalkd => {
                fs::create_dir_all(&folder)?;
                command.args(["-l", "127.0.0.1", "-p", &port.to_string()]);
                command.args(["-f", "0", "-b"]).arg(folder);
                TEXT_QUESTION
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.front = Some(command.spawn()?);
        self.port = port;
        let until = Instant::now() + FRONT_MAX;
        while !answers(port, question) {
            if Instant::now() > until {
                return Err(format!("{} does not answer", executable.display()).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The folder in which a program without a server, or a server in front, keeps its jobs. It need not be there yet,
    /// and is removed with this server.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The version that it reports.
    pub fn version(&mut self) -> Result<String, Failed> {
        let info = info(&mut self.link, "server")?;
        Ok(field(&info, "redis_version").unwrap_or("unknown").to_owned())
    }

    /// The resources that it has used until now.
    pub fn used(&mut self) -> Result<Used, Failed> {
        let cpu = info(&mut self.link, "cpu")?;
        let memory = info(&mut self.link, "memory")?;
        let number = |info: &str, name: &str| -> Result<f64, Failed> {
            Ok(field(info, name).ok_or("INFO without figures")?.parse()?)
        };
        Ok(Used {
            cpu_s: number(&cpu, "used_cpu_sys")? + number(&cpu, "used_cpu_user")?,
            front_cpu_s: self.front.as_ref().map(cpu_s).transpose()?,
            memory: number(&memory, "used_memory")? as u64,
        })
    }

    /// Milliseconds of its longest command until now; 0 if no command took a whole one.
    pub fn longest_ms(&mut self) -> Result<u64, Failed> {
        let events: Vec<(String, u64, u64, u64)> =
            redis::cmd("LATENCY").arg("LATEST").query(&mut self.link)?;
        let commands = events.into_iter().filter(|(event, ..)| event.contains("command"));
        Ok(commands.map(|(.., longest)| longest).max().unwrap_or(0))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(front) = &mut self.front {
            let _ = front.kill();
            let _ = front.wait();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The folder is removed with its value, after the server.
        let _ = self.folder.path();
    }
}

/// A question that a server answers once it serves, and the beginning of that answer.
type Question = (&'static str, &'static str);

const HTTP_QUESTION: Question =
    ("GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ");
const TEXT_QUESTION: Question = ("stats\r\nquit\r\n", "OK ");

/// Whether a server answers this question as it should.
fn answers(port: u16, (question, answer): Question) -> bool {
    let asked = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(question.as_bytes())?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok::<_, std::io::Error>(said)
    };
    asked().is_ok_and(|said| said.starts_with(answer))
}

/// Processor time of a process, from the 14th and 15th field of its stat file.
fn cpu_s(process: &Child) -> Result<f64, Failed> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    let (_, behind_name) = stat.rsplit_once(')').ok_or("a process without figures")?;
    let ticks = behind_name.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks = ticks.collect::<Result<Vec<_>, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

fn info(link: &mut redis::Connection, section: &str) -> Result<String, Failed> {
    Ok(redis::cmd("INFO").arg(section).query(link)?)
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
