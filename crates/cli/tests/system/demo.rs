//! `tenure demo`, as its user sees it: its counts hold, and however it is stopped, it leaves nothing
//! behind.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

/// A demo whose temporary files are in a folder of its own.
struct Demo {
    child: Child,
    words: BufReader<ChildStderr>,
    folder: tempfile::TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> Demo {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(arguments)
            .env("TMPDIR", folder.path())
            // Neither is for the demo.
            .env("TENURE_URL", "http://127.0.0.1:1")
            .env("TENURE_TOKEN", "of another server")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let words = BufReader::new(child.stderr.take().unwrap());
        Demo { child, words, folder }
    }

    /// Reads on until it says this; the whole line.
    fn says(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(self.words.read_line(&mut line).unwrap(), 0, "it never says '{part}'");
        }
        line
    }

    /// Reads the one document on stdout, which is left open.
    fn answers(&mut self) -> Value {
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Its own process and all that it started; they know it by the folder.
    fn processes(&self) -> usize {
        let name = self.folder.path().as_os_str().as_encoded_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let environment = |one: std::fs::DirEntry| std::fs::read(one.path().join("environ")).ok();
        let named = |text: &Vec<u8>| text.windows(name.len()).any(|part| part == name);
        processes.filter_map(environment).filter(named).count()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }

    /// Stops it, and checks what is left.
    fn stop(mut self, signal: Signal) {
        assert!(self.processes() > 1 && self.files() > 0, "there is nothing to leave behind");
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
        let mut rest = String::new();
        self.words.read_to_string(&mut rest).unwrap();
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.code(), Some(128 + signal as i32), "{rest}");
        assert_eq!((self.processes(), self.files()), (0, 0), "{rest}");
    }
}

#[test]
fn its_counts_hold_and_the_hold_option_keeps_the_server_up() {
    let mut demo = Demo::start(&["--json", "demo", "--hold"]);
    let first = demo.says("a server: ");
    let server = first.split("http://").nth(1).unwrap().split(' ').next().unwrap();
    let answer = demo.answers();
    assert_eq!((&answer["ok"], &answer["pages"]), (&true.into(), &300.into()), "{answer}");
    let counts = answer["counts"].as_array().unwrap();
    assert!(counts.len() == 4 && counts.iter().all(|count| count["holds"] == true), "{answer}");
    for count in counts {
        let number = |name: &str| count[name].as_u64().unwrap();
        assert!(number("value") == number("site").max(number("tenure")), "{count}");
        assert!(number("value") <= number("bound"), "{count}");
    }
    // The crashes and the ban were there, or all of this shows little.
    assert!(!answer["held_by_the_killed"].as_array().unwrap().is_empty(), "{answer}");
    assert!(answer["server_away_ms"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["asked_with_the_banned"].as_u64().unwrap() > 0, "{answer}");
    TcpStream::connect(server).unwrap();
    demo.stop(Signal::SIGINT);
    TcpStream::connect(server).unwrap_err();
}

#[test]
fn stopped_at_any_moment_it_leaves_no_process_and_no_file() {
    for (moment, signal) in [
        ("pages pushed", Signal::SIGINT),
        ("kill -9 of worker", Signal::SIGHUP),
        // The new one is starting.
        ("kill -9 of the server", Signal::SIGTERM),
    ] {
        let mut demo = Demo::start(&["demo"]);
        demo.says(moment);
        demo.stop(signal);
    }
}

/// Keys of the demo that are in a Redis, where others use it too.
fn left(redis: &RedisServer) -> String {
    redis.ask(&["KEYS", "*demo*"]).unwrap()
}

#[test]
#[ignore = "long: a second demo to its end"]
fn two_servers_share_a_store_in_redis_and_leave_nothing_behind() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    redis.must(&["SET", "mine", "1"]);
    let mut demo = Demo::start(&["--json", "demo", "--store", &redis.url()]);
    // The first one leads the store, and it is the one that is killed.
    demo.says("kill -9 of one of the servers");
    assert_ne!(left(&redis), "*0\r\n");
    let answer = demo.answers();
    assert_eq!((&answer["ok"], &answer["servers"]), (&true.into(), &2.into()), "{answer}");
    assert!(answer["pages_meanwhile"].as_u64().unwrap() >= 20, "{answer}");
    assert!(!answer["held_by_the_killed"].as_array().unwrap().is_empty(), "{answer}");
    assert_eq!(demo.child.wait().unwrap().code(), Some(0));
    assert_eq!(left(&redis), "*0\r\n");
    assert_eq!(redis.ask(&["GET", "mine"]).unwrap(), "$1\r\n1\r\n");
}

#[test]
fn a_demo_that_is_stopped_leaves_nothing_in_a_redis() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let mut demo = Demo::start(&["demo", "--store", &redis.url()]);
    demo.says("pages pushed");
    assert_ne!(left(&redis), "*0\r\n");
    demo.stop(Signal::SIGINT);
    assert_eq!(left(&redis), "*0\r\n");
}

#[test]
#[ignore = "long: a second demo to its end"]
fn every_line_fits_80_columns_and_the_last_names_hold() {
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["demo"])
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, told) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (out, told) = (out.unwrap(), told.unwrap());
    assert!(output.status.success(), "{out}{told}");
    let own = env!("CARGO_BIN_EXE_tenure");
    for line in told.lines().chain(out.lines()) {
        // A user who starts it by a long path has commands as long.
        let line = line.replace(own, "tenure");
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains('\u{1b}'), "colours where there is no terminal: {line}");
    }
    assert!(out.trim_end().ends_with("demo --hold"), "{out}");
}
