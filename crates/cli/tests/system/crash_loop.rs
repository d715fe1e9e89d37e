//! A job that kills every worker that runs it: three deaths of `tenure work -c 4` end it as poison, and the jobs that
//! ran beside it end well. With a server, on a folder and on a Redis.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tenure_testkit::tenure::{Process, Server};

use crate::{answer, client, serving};

/// Nothing here takes longer: a death costs a ttl and the wait of a suspect.
const PATIENCE: Duration = Duration::from_secs(120);

/// Kills the worker whose number is in the file, if its payload says so.
const CMD: &str = "read payload; case \"$payload\" in *bad*) \
    while ! [ -s worker.pid ]; do sleep 0.05; done; kill -9 \"$(cat worker.pid)\"; sleep 60;; esac";

/// Waits for its end; a signal is a negative code.
fn ended(mut worker: Process) -> i32 {
    let status = worker.end();
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

struct Place {
    dir: TempDir,
    url: String,
}

impl Place {
    fn pid_file(&self) -> PathBuf {
        self.dir.path().join("worker.pid")
    }

    /// A worker lives until the last death is found out, and all others are done.
    fn is_not_run_a_fourth_time(&self) {
        let mut worker = self.start(&[]);
        let begun = Instant::now();
        let unfinished = || {
            let states = answer(&self.url, &["stats"])["jobs"].clone();
            ["ready", "blocked", "scheduled", "running"].iter().any(|state| states[state] != 0)
        };
        while unfinished() && begun.elapsed() < PATIENCE {
            assert_eq!(worker.status().map(|status| status.to_string()), None);
            std::thread::sleep(Duration::from_millis(50));
        }
        worker.signal(Signal::SIGTERM);
        assert_eq!(ended(worker), 0);
    }

    fn work(&self, options: &[&str]) -> i32 {
        ended(self.start(options))
    }

    fn start(&self, options: &[&str]) -> Process {
        let _ = std::fs::remove_file(self.pid_file());
        let work = [&["work", "q", "-c", "4", "--ttl", "2s"], options, &["--", "sh", "-c", CMD]];
        let mut work = client(&self.url, &work.concat());
        work.current_dir(self.dir.path()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let worker = Process::start(&mut work, PATIENCE);
        let written = self.dir.path().join("written");
        std::fs::write(&written, worker.id().to_string()).unwrap();
        std::fs::rename(&written, self.pid_file()).unwrap();
        worker
    }

    fn is_found_out_after_three_deaths(&self) {
        answer(&self.url, &["push", "q", "\"bad\"", "--id", "bad"]);
        for n in 0..7 {
            answer(&self.url, &["push", "q", "\"good\"", "--id", &format!("good{n}")]);
        }
        for death in 1..=3 {
            assert_eq!(self.work(&[]), -9, "death {death}");
        }
        if self.url.starts_with("file:") {
            // The process that opens the folder takes back the leases of the dead, and has it alone.
            assert_eq!(self.work(&["--until-empty"]), 0, "it is not run a fourth time");
        } else {
            self.is_not_run_a_fourth_time();
        }
        let bad = answer(&self.url, &["job", "bad"]);
        assert_eq!((&bad["state"], &bad["error"]), (&"failed".into(), &"poison".into()), "{bad}");
        let outcomes: Vec<&Value> =
            bad["errors"].as_array().unwrap().iter().map(|error| &error["outcome"]).collect();
        assert_eq!(outcomes, ["lost"; 3]);
        for n in 0..7 {
            assert_eq!(answer(&self.url, &["job", &format!("good{n}")])["state"], "succeeded");
        }
    }
}

#[test]
fn on_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file:{}", dir.path().join("store").display());
    Place { dir, url }.is_found_out_after_three_deaths();
}

#[test]
fn with_a_server() {
    let server = Server::start(&mut serving("memory:"), PATIENCE);
    let (dir, url) = (tempfile::tempdir().unwrap(), server.url());
    Place { dir, url }.is_found_out_after_three_deaths();
}
