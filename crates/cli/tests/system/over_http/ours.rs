//! The built command: a server of Tenure, workers, and the output of both.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Longer than this nothing here takes.
const PATIENCE: Duration = Duration::from_secs(90);

pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn tenure(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN", "TENURE_HTTP_SECRET"] {
        command.env_remove(name);
    }
    command.args(arguments).env("TENURE_URL", url).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process of ours, killed when it is dropped, and its output.
pub struct Ours {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Ours {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [Box::new(out), Box::new(err)];
        for pipe in pipes {
            let into = said.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    into.lock().unwrap().push_str(&(line + "\n"));
                }
            });
        }
        Ours { child, said }
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub fn end(&mut self) -> ExitStatus {
        until("a process ends", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server of Tenure, killed when it is dropped.
pub struct Tenure {
    process: Ours,
    at: String,
}

impl Tenure {
    pub fn start() -> Self {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
        let process = Ours::start(tenure("http://127.0.0.1:1", &arguments));
        let mut at = None;
        until("the server listens", || {
            let said = process.said();
            let line = said.lines().find_map(|line| line.strip_prefix("listening on http://"));
            at = line.map(str::to_owned);
            at.is_some()
        });
        Tenure { process, at: at.unwrap() }
    }

    pub fn said(&self) -> String {
        self.process.said()
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// The status and the body of an answer.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let body = body.to_string();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
        let length = body.len();
        let text =
            format!("{method} {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub fn push(&self, job: &Value) {
        let (status, answer) = self.ask("POST", "/v1/jobs", job);
        assert_eq!(status, 201, "{answer}");
    }

    pub fn job(&self, id: &str) -> Value {
        self.ask("GET", &format!("/v1/jobs/{id}"), &json!({})).1
    }

    pub fn state(&self, id: &str) -> String {
        self.job(id)["state"].as_str().unwrap_or("gone").to_owned()
    }

    /// The job, once it is in this state.
    pub fn once(&self, id: &str, state: &str) -> Value {
        until(&format!("job {id} is {state}"), || self.state(id) == state);
        self.job(id)
    }

    /// How many jobs are in this state.
    pub fn count(&self, state: &str) -> u64 {
        self.ask("GET", "/v1/stats", &json!({})).1["jobs"][state].as_u64().unwrap_or(0)
    }

    pub fn worker(&self, arguments: &[&str]) -> Ours {
        self.worker_with(arguments, &[])
    }

    pub fn worker_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ours {
        let url = format!("http://{}", self.at);
        let mut command = tenure(&url, &[&["work", "q"], arguments].concat());
        command.envs(variables.iter().copied());
        Ours::start(command)
    }
}
