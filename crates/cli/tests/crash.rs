//! The short form of `tenure bench crash`.

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
