//! A `tenure` that is killed takes its CMD with it: all that CMD started, and its files.

// A test that cannot even start the command is to fail loudly.
#![allow(clippy::unwrap_used)]
// Elsewhere a process that left CMD's group is not found.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How many are killed, of `work` and of `lock`.
const KILLS: usize = 100;
/// So many at once.
const AT_ONCE: usize = 25;
/// What is promised is a second; a machine that is busy with other tests may need more.
const SOON: Duration = Duration::from_secs(10);

/// CMD: with a child, a grandchild that is deaf to SIGTERM, one in a session of its own, and one whose
/// parents are gone as well. Each writes its number into a file.
const CMD: &str = r#"
sh -c 'trap "" TERM; echo $$ > deaf; while :; do sleep 1; done' &
setsid sh -c 'echo $$ > session; exec sleep 300' &
sh -c 'sh -c "echo \$\$ > orphan; exec setsid sleep 300" &'
sleep 300 & echo $! > child
echo "$TENURE_LEASE_FILE" > lease
echo $$ > cmd
wait
"#;
const NUMBERS: [&str; 5] = ["deaf", "session", "orphan", "child", "cmd"];

fn tenure(url: &str, within: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    command.args(arguments).env("TENURE_URL", url).current_dir(within);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < 6 * SOON, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server, killed when it is dropped.
struct Server(Child, String);

impl Server {
    fn start() -> Self {
        let mut command = tenure("http://127.0.0.1:1", Path::new("/"), &["serve"]);
        command.args(["--listen", "127.0.0.1:0", "--store", "memory:"]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        words.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        Server(child, at)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = tenure(&self.1, Path::new("/"), arguments);
        let output = command.stdout(Stdio::piped()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `tenure` that runs CMD in a folder of its own.
struct Round {
    tenure: Child,
    folder: tempfile::TempDir,
}

impl Round {
    fn start(url: &str, arguments: &[&str], script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [arguments, &["--", "sh", "-c", script]].concat();
        let tenure = tenure(url, folder.path(), &arguments).spawn().unwrap();
        Round { tenure, folder }
    }

    /// What CMD wrote into this file, once it has.
    fn wrote(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        until(name, || read().ends_with('\n'));
        read().trim().to_owned()
    }

    fn number(&self, name: &str) -> i32 {
        self.wrote(name).parse().unwrap()
    }

    fn lease_folder(&self) -> PathBuf {
        Path::new(&self.wrote("lease")).parent().unwrap().to_owned()
    }
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn runs(pid: i32) -> bool {
    field(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

/// A field of `/proc/PID/stat` after the name: 0 is the state, 1 the parent.
fn field(pid: i32, at: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(at).map(str::to_owned)
}

fn end(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}

/// Starts so many, kills them when all of each runs, and looks at what survives.
fn kill_a_hundred(start: impl Fn(usize) -> Round) {
    let mut slowest = Duration::ZERO;
    let mut survivors = Vec::new();
    for batch in 0..KILLS / AT_ONCE {
        let mut rounds: Vec<Round> = (0..AT_ONCE).map(|one| start(batch * AT_ONCE + one)).collect();
        let seen: Vec<(Vec<i32>, PathBuf)> = rounds
            .iter()
            .map(|round| (NUMBERS.map(|name| round.number(name)).to_vec(), round.lease_folder()))
            .collect();
        for (round, (numbers, folder)) in rounds.iter_mut().zip(&seen) {
            assert!(folder.join("lease.json").exists());
            let killed = Instant::now();
            round.tenure.kill().unwrap();
            let left = || numbers.iter().any(|pid| runs(*pid)) || folder.exists();
            while left() && killed.elapsed() < SOON {
                std::thread::sleep(Duration::from_millis(5));
            }
            slowest = slowest.max(killed.elapsed());
            let names = NUMBERS.iter().zip(numbers).filter(|(_, pid)| runs(**pid));
            survivors.extend(names.map(|(name, _)| *name));
            survivors.extend(folder.exists().then_some("folder"));
            numbers.iter().for_each(|pid| end(*pid));
            round.tenure.wait().unwrap();
            if survivors.len() > 10 {
                break;
            }
        }
        // What is not guarded must not outlive a test that fails.
        seen.iter().flat_map(|(numbers, _)| numbers).for_each(|pid| end(*pid));
        for round in &mut rounds {
            let _ = round.tenure.kill();
            let _ = round.tenure.wait();
        }
        assert_eq!(survivors, Vec::<&str>::new());
    }
    eprintln!("{KILLS} killed, the last of each over after {slowest:?} at most");
}

#[test]
fn of_a_hundred_killed_works_nothing_survives() {
    let server = Server::start();
    kill_a_hundred(|number| {
        let queue = format!("q{number}");
        server.run(&["push", &queue, "1"]);
        Round::start(&server.1, &["work", &queue], CMD)
    });
}

#[test]
fn of_a_hundred_killed_locks_nothing_survives() {
    let server = Server::start();
    kill_a_hundred(|number| Round::start(&server.1, &["lock", &format!("x{number}")], CMD));
}

#[test]
fn a_killed_guard_takes_cmd_with_it_and_that_is_how_cmd_ended() {
    let server = Server::start();
    server.run(&["push", "q", "1", "--id", "j"]);
    for arguments in [&["lock", "x"][..], &["work", "q", "--max-jobs", "1"]] {
        let mut round = Round::start(&server.1, arguments, CMD);
        let numbers = NUMBERS.map(|name| round.number(name));
        let guard: i32 = field(round.number("cmd"), 1).unwrap().parse().unwrap();
        assert_ne!(guard, round.tenure.id() as i32);
        end(guard);
        let code = round.tenure.wait().unwrap().code();
        assert_eq!(code, Some(if arguments[0] == "lock" { 137 } else { 0 }));
        // One that is in another session, and whose parents are gone, is not found any more.
        let [deaf, _, orphan, child, cmd] = numbers;
        for pid in [deaf, child, cmd] {
            until("the end of CMD", || !runs(pid));
        }
        numbers.iter().for_each(|pid| end(*pid));
        let _ = orphan;
    }
    assert!(server.run(&["--json", "job", "j"]).contains("signal 9"));
}

#[test]
fn what_cmd_leaves_behind_is_ended_unless_it_may_stay() {
    let server = Server::start();
    let script = "sleep 300 & echo $! > child; \
                  sh -c 'sh -c \"echo \\$\\$ > orphan; exec setsid sleep 300\" &'; \
                  while [ ! -s orphan ]; do sleep 0.01; done; exit ";
    for (code, option, stays) in [
        (0, None, false),
        (0, Some("--leave-children"), true),
        (3, Some("--leave-children"), false),
    ] {
        server.run(&["push", "q", "1"]);
        for command in [&["work", "q", "--max-jobs", "1"][..], &["lock", "x"]] {
            let arguments = [command, option.as_slice()].concat();
            let mut round = Round::start(&server.1, &arguments, &format!("{script}{code}"));
            round.tenure.wait().unwrap();
            for pid in [round.number("child"), round.number("orphan")] {
                assert_eq!(runs(pid), stays, "{arguments:?} exit {code}");
                end(pid);
            }
        }
    }
}

#[test]
fn a_detached_cmd_outlives_a_killed_tenure() {
    let server = Server::start();
    let mut round = Round::start(&server.1, &["lock", "x", "--detach"], CMD);
    let numbers = NUMBERS.map(|name| round.number(name));
    let folder = round.lease_folder();
    round.tenure.kill().unwrap();
    round.tenure.wait().unwrap();
    std::thread::sleep(Duration::from_millis(1_000));
    assert!(numbers.iter().all(|pid| runs(*pid)));
    numbers.iter().for_each(|pid| end(*pid));
    until("its folder to go", || !folder.exists());
}
