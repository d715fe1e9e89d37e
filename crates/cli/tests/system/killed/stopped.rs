//! SIGSTOP of `tenure` or of its guard never lets a CMD work on beside the next holder.
//!
//! A process that is stopped can do nothing, so the other one of the two acts: the guard if `tenure` is stopped, and
//! `tenure` if its guard is.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_testkit::tenure::Server;

use crate::killed::rounds::{Round, end, field, run, runs, serve, tenure, until};

/// Of the leases: a twentieth of it lies between the end of a CMD and the next holder.
const TTL: &str = "4s";
const TTL_TIME: Duration = Duration::from_secs(4);

/// Forms of CMD. One process writes down its number and then the time into `beats`, fifty times a second: CMD itself,
/// one that is deaf to SIGTERM, and one that left CMD's group, session and parents.
const SHAPES: [(&str, &str); 3] = [
    ("plain", "echo $$ > cmd; while :; do date +%s.%N >> beats; sleep 0.02; done"),
    ("deaf", "trap '' TERM; echo $$ > cmd; while :; do date +%s.%N >> beats; sleep 0.02; done"),
    (
        "daemon",
        "sh -c 'setsid sh -c \"echo \\$\\$ > cmd; while :; do date +%s.%N >> beats; sleep 0.02; done\" &'; \
         sleep 300",
    ),
];
const COMMANDS: [&str; 3] = ["lock", "lease", "work"];

/// The process may be gone already.
fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// A holder, and what it holds; nobody else wants the same in a test.
struct Contest<'a> {
    server: &'a Server,
    holds: Vec<String>,
    holder: Round,
    /// The process that writes.
    writer: i32,
    guard: i32,
}

impl<'a> Contest<'a> {
    fn start(server: &'a Server, command: &str, name: &str, script: &str) -> Self {
        let holds: Vec<String> = match command {
            "lock" => vec!["lock".into(), name.into()],
            "lease" => vec!["lease".into(), "--need".into(), format!("limit:lock:{name}")],
            _ => {
                run(server, &["push", name, "1"]);
                ["work", name, "--max-jobs", "1"].map(str::to_owned).to_vec()
            }
        };
        let mut arguments: Vec<&str> = holds.iter().map(String::as_str).collect();
        arguments.extend(["--ttl", TTL]);
        let holder = Round::start(&server.url(), &arguments, script);
        let writer = holder.number("cmd");
        let guard = child_of(holder.tenure.id().try_into().unwrap()).unwrap();
        let contest = Contest { server, holds, holder, writer, guard };
        until("a beat", || contest.last_beat() > 0.0);
        // It has reported that CMD runs, and has a thread each that waits for CMD and for the end of the lease.
        until("a guard that has said all", || threads(guard) == 3);
        contest
    }

    fn tenure(&self) -> i32 {
        self.holder.tenure.id().try_into().unwrap()
    }

    fn last_beat(&self) -> f64 {
        let beats = self.holder.folder.path().join("beats");
        let text = std::fs::read_to_string(beats).unwrap_or_default();
        // The last line may not be whole.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0.0)
    }

    /// Waits for the next holder, and answers when it began.
    fn next(&self) -> f64 {
        let arguments: Vec<&str> = self.holds.iter().map(String::as_str).collect();
        let script = "date +%s.%N > began; exec sleep 300";
        let mut next = Round::start(&self.server.url(), &arguments, script);
        let began = next.wrote("began").parse().unwrap();
        next.tenure.kill().unwrap();
        next.tenure.wait().unwrap();
        began
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.holder.tenure.wait().unwrap().code()
    }
}

impl Drop for Contest<'_> {
    fn drop(&mut self) {
        let _ = self.holder.tenure.kill();
        let _ = self.holder.tenure.wait();
        // A process whose end the test did not see must not outlive it.
        signal(self.guard, Signal::SIGCONT);
        if runs(self.writer) {
            end(self.writer);
        }
    }
}

fn threads(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// The child of `tenure`, which is its guard.
fn child_of(tenure: i32) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let mut pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| field(*pid, 1).is_some_and(|parent| parent == tenure.to_string()))
}

/// Plays each shape of CMD under each of these commands, all at the same time.
fn each(commands: &[&str], play: impl Fn(&mut Contest<'_>, &str) + Sync) {
    let server = serve();
    std::thread::scope(|threads| {
        for command in commands {
            for (shape, script) in SHAPES {
                let (server, play) = (&server, &play);
                threads.spawn(move || {
                    let what = format!("{command} of {shape}");
                    let mut contest = Contest::start(server, command, shape, script);
                    play(&mut contest, &what);
                });
            }
        }
    });
}

/// `work` gives up the job and goes on; the others exit as CMD ended.
fn code(what: &str, others: i32) -> Option<i32> {
    Some(if what.starts_with("work") { 0 } else { others })
}

#[test]
fn a_cmd_of_a_stopped_tenure_ends_before_the_next_holder_begins() {
    for command in COMMANDS {
        each(&[command], |contest, what| {
            signal(contest.tenure(), Signal::SIGSTOP);
            let began = contest.next();
            let (survives, last) = (runs(contest.writer), contest.last_beat());
            assert!(!survives && last < began, "{what}: {survives}, {last} and then {began}");
            signal(contest.tenure(), Signal::SIGCONT);
            assert_eq!(contest.exit_code(), code(what, 75), "{what}");
        });
    }
}

#[test]
fn a_cmd_whose_guard_is_stopped_is_ended_by_tenure() {
    for command in COMMANDS {
        each(&[command], |contest, what| {
            signal(contest.guard, Signal::SIGSTOP);
            // As if the guard had been killed.
            assert_eq!(contest.exit_code(), code(what, 137), "{what}");
            assert!(!runs(contest.writer), "{what}");
        });
    }
}

#[test]
fn a_guard_stopped_before_its_first_word_is_not_waited_for() {
    let server = serve();
    for _ in 0..3 {
        let script = "echo $$ > cmd; exec sleep 300";
        let mut round = Round::start(&server.url(), &["lock", "x", "--ttl", "1s"], script);
        let tenure = i32::try_from(round.tenure.id()).unwrap();
        let mut guard = None;
        until("its guard", || {
            let is_guard = |pid: &i32| {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
                line.is_ok_and(|line| line.starts_with("cmd-guard"))
            };
            guard = child_of(tenure).filter(is_guard);
            guard.is_some()
        });
        signal(guard.unwrap(), Signal::SIGSTOP);
        let code = round.tenure.wait().unwrap().code();
        // Not started, or started and ended, or refused as too late: the guard may have come that far.
        assert!([Some(125), Some(137), Some(75)].contains(&code), "{code:?}");
        let cmd = std::fs::read_to_string(round.folder.path().join("cmd")).unwrap_or_default();
        assert!(cmd.trim().parse().is_ok_and(|pid| !runs(pid)) || cmd.is_empty(), "{cmd}");
        assert!(!runs(guard.unwrap()));
    }
}

#[test]
fn a_lost_lease_ends_a_cmd_whose_guard_is_stopped() {
    each(&["lock"], |contest, what| {
        signal(contest.guard, Signal::SIGSTOP);
        let limit = format!("lock:{}", contest.holds[1]);
        let listed = run(contest.server, &["--json", "leases", "--limit", &limit]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        run(contest.server, &["leases", "force", listed["items"][0]["lease"].as_str().unwrap()]);
        assert_eq!(contest.exit_code(), Some(75), "{what}");
        assert!(!runs(contest.writer), "{what}");
    });
}

/// Either of the two may go on first.
fn both_stopped(tenure_first: bool) {
    each(&["lock"], |contest, what| {
        let (first, then) = if tenure_first {
            (contest.tenure(), contest.guard)
        } else {
            (contest.guard, contest.tenure())
        };
        signal(first, Signal::SIGSTOP);
        signal(then, Signal::SIGSTOP);
        contest.next();
        // Nobody is left who could have ended it.
        assert!(runs(contest.writer), "{what}");
        let continued = now();
        signal(first, Signal::SIGCONT);
        until("the end of CMD", || !runs(contest.writer));
        // Its time was over long ago: there is no grace.
        let late = contest.last_beat() - continued;
        assert!(late < 3.0, "{what}: {late} s");
        signal(then, Signal::SIGCONT);
        assert_eq!(contest.exit_code(), Some(75), "{what}");
    });
}

#[test]
fn a_cmd_is_killed_when_both_go_on_after_its_lease_is_over() {
    both_stopped(true);
    both_stopped(false);
}

#[test]
fn a_stopped_guard_ends_the_cmd_of_a_killed_tenure() {
    each(&["lock"], |contest, _| {
        let folder = lease_folder(contest.writer);
        signal(contest.guard, Signal::SIGSTOP);
        contest.holder.tenure.kill().unwrap();
        contest.holder.tenure.wait().unwrap();
        // The system does that by itself, unless a process of the same session adopts the guard.
        signal(contest.guard, Signal::SIGCONT);
        until("the end of CMD", || !runs(contest.writer));
        until("its folder to go", || !folder.exists());
        until("the end of the guard", || !runs(contest.guard));
    });
}

fn lease_folder(pid: i32) -> PathBuf {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let file = environment.split('\0').find_map(|one| one.strip_prefix("TENURE_LEASE_FILE="));
    Path::new(file.unwrap()).parent().unwrap().to_owned()
}

#[test]
fn a_cmd_with_a_live_lease_goes_on_though_its_output_is_unread() {
    let server = serve();
    // Two, so that each of the threads on which CMDs are watched hangs.
    for _ in 0..2 {
        run(&server, &["push", "q", "1"]);
    }
    let script = "echo $$ > cmd.$TENURE_JOB_ID; yes >&2";
    let arguments = ["work", "q", "-c", "2", "--ttl", TTL, "--", "sh", "-c", script];
    let folder = tempfile::tempdir().unwrap();
    let mut command = tenure(&server.url(), folder.path(), &arguments);
    let mut tenure = command.stderr(Stdio::piped()).spawn().unwrap();
    let numbers = || -> Vec<i32> {
        let all = std::fs::read_dir(folder.path()).unwrap();
        let texts = all.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        texts.filter_map(|text| text.strip_suffix('\n')?.parse().ok()).collect()
    };
    until("two CMDs", || numbers().len() == 2);
    let (begun, pids) = (Instant::now(), numbers());
    let watch = || {
        while begun.elapsed() < TTL_TIME * 3 / 2 {
            if !pids.iter().all(|pid| runs(*pid)) {
                return Some(begun.elapsed());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    };
    let ended = watch();
    tenure.kill().unwrap();
    tenure.wait().unwrap();
    for pid in pids {
        until("the end of CMD", || !runs(pid));
    }
    assert_eq!(ended, None);
}
