//! The short form of `tenure bench crash`; and a demo that is stopped leaves nothing behind.

use std::process::{Command, Output, Stdio};

fn tenure(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["TENURE_URL", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn nothing_answered_is_lost_when_the_server_is_killed_under_load() {
    let output = tenure(&["--json", "bench", "crash", "--rounds", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["ok"], &answer["faults"]), (&true.into(), &0.into()), "{}", said(&output));
    for count in ["pushed", "runs", "settled"] {
        assert!(answer[count].as_u64().unwrap() > 0, "{count}: {}", said(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_demo_that_is_stopped_leaves_no_process_and_no_file() {
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    let mut demo = tenure(&["demo"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let until = Instant::now() + Duration::from_secs(60);
    while processes_naming(folder.path()) == 0 {
        assert!(Instant::now() < until, "no server was started");
        assert_eq!(demo.try_wait().unwrap(), None, "the demo ended by itself");
        std::thread::yield_now();
    }
    assert!(files() > 0);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(demo.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_eq!((processes_naming(folder.path()), files()), (0, 0));
}

#[cfg(target_os = "linux")]
/// Processes of our binary whose arguments name this folder: the server, which has its store there.
fn processes_naming(folder: &std::path::Path) -> usize {
    let name = folder.as_os_str().as_encoded_bytes();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let arguments = |one: std::fs::DirEntry| std::fs::read(one.path().join("cmdline")).ok();
    let named = |line: &Vec<u8>| line.windows(name.len()).any(|part| part == name);
    processes.filter_map(arguments).filter(named).count()
}
