//! SIGKILL of `tenure`, and of the guard between it and CMD: what survives.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::killed::rounds::{
    CMD, NUMBERS, Round, SOON, end, field, run, runs, serve, tenure, until,
};

/// How many are killed at once.
const AT_ONCE: usize = 25;

/// Starts `AT_ONCE`, kills them when all of each runs, and looks for survivors; repeats that `times` times.
fn kill_all(times: usize, start: impl Fn(usize) -> Round) {
    let mut slowest = Duration::ZERO;
    let mut survivors = Vec::new();
    for batch in 0..times {
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
        // A process that is not guarded must not outlive a test that fails.
        seen.iter().flat_map(|(numbers, _)| numbers).for_each(|pid| end(*pid));
        for round in &mut rounds {
            let _ = round.tenure.kill();
            let _ = round.tenure.wait();
        }
        assert_eq!(survivors, Vec::<&str>::new());
    }
    let killed = times * AT_ONCE;
    eprintln!("{killed} killed, the last of each over after {slowest:?} at most");
}

fn kill_works(times: usize) {
    let server = serve();
    kill_all(times, |number| {
        let queue = format!("q{number}");
        run(&server, &["push", &queue, "1"]);
        Round::start(&server.url(), &["work", &queue], CMD)
    });
}

fn kill_locks(times: usize) {
    let server = serve();
    kill_all(times, |number| Round::start(&server.url(), &["lock", &format!("x{number}")], CMD));
}

#[test]
fn of_killed_works_nothing_survives() {
    kill_works(1);
}

#[test]
fn of_killed_locks_nothing_survives() {
    kill_locks(1);
}

#[test]
#[ignore = "long: the same, four times"]
fn of_a_hundred_killed_works_nothing_survives() {
    kill_works(4);
}

#[test]
#[ignore = "long: the same, four times"]
fn of_a_hundred_killed_locks_nothing_survives() {
    kill_locks(4);
}

#[test]
fn a_killed_guard_takes_cmd_with_it_and_that_is_how_cmd_ended() {
    let server = serve();
    run(&server, &["push", "q", "1", "--id", "j"]);
    for arguments in [&["lock", "x"][..], &["work", "q", "--max-jobs", "1"]] {
        let mut round = Round::start(&server.url(), arguments, CMD);
        let numbers = NUMBERS.map(|name| round.number(name));
        let guard: i32 = field(round.number("cmd"), 1).unwrap().parse().unwrap();
        assert_ne!(guard, round.tenure.id() as i32);
        end(guard);
        let code = round.tenure.wait().unwrap().code();
        assert_eq!(code, Some(if arguments[0] == "lock" { 137 } else { 0 }));
        // All of it, before `tenure` ends: also what is in another session, and whose parents are gone.
        let survivors: Vec<_> = NUMBERS.iter().zip(numbers).filter(|(_, pid)| runs(*pid)).collect();
        numbers.iter().for_each(|pid| end(*pid));
        assert_eq!(survivors, [], "{arguments:?}");
    }
    assert!(run(&server, &["--json", "job", "j"]).contains("signal 9"));
}

#[test]
fn what_cmd_leaves_behind_is_ended_unless_it_may_stay() {
    let server = serve();
    let script = "sleep 300 & echo $! > child; \
                  sh -c 'sh -c \"echo \\$\\$ > orphan; exec setsid sleep 300\" &'; \
                  while [ ! -s orphan ]; do sleep 0.01; done; exit ";
    for (code, option, stays) in [
        (0, None, false),
        (0, Some("--leave-children"), true),
        (3, Some("--leave-children"), false),
    ] {
        run(&server, &["push", "q", "1"]);
        for command in [&["work", "q", "--max-jobs", "1"][..], &["lock", "x"]] {
            let arguments = [command, option.as_slice()].concat();
            let mut round = Round::start(&server.url(), &arguments, &format!("{script}{code}"));
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
    let server = serve();
    let mut round = Round::start(&server.url(), &["lock", "x", "--detach"], CMD);
    let numbers = NUMBERS.map(|name| round.number(name));
    let folder = round.lease_folder();
    round.tenure.kill().unwrap();
    round.tenure.wait().unwrap();
    std::thread::sleep(Duration::from_millis(1_000));
    assert!(numbers.iter().all(|pid| runs(*pid)));
    run(&server, &["lock", "y", "--", "true"]);
    assert!(folder.join("lease.json").exists(), "its guard still holds it");
    numbers.iter().for_each(|pid| end(*pid));
    until("its folder to go", || !folder.exists());
}

#[test]
fn files_of_a_killed_tenure_and_its_guard_are_swept_by_the_next() {
    let server = serve();
    // Other tests would sweep it, too.
    let temporary = tempfile::tempdir().unwrap();
    let mut round = Round::start_with(&server.url(), &["lock", "x"], CMD, |command| {
        command.env("TMPDIR", temporary.path());
    });
    let numbers = NUMBERS.map(|name| round.number(name));
    let guard: i32 = field(round.number("cmd"), 1).unwrap().parse().unwrap();
    kill(Pid::from_raw(guard), Signal::SIGSTOP).unwrap();
    round.tenure.kill().unwrap();
    end(guard);
    round.tenure.wait().unwrap();
    numbers.iter().for_each(|pid| end(*pid));
    let left = || std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left(), 1);
    let mut next = tenure(&server.url(), temporary.path(), &["lock", "y", "--", "true"]);
    assert!(next.env("TMPDIR", temporary.path()).status().unwrap().success());
    assert_eq!(left(), 0);
}
