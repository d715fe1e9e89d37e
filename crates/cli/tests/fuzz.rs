//! The short form of `tenure bench fuzz`.

use std::process::{Command, Stdio};

#[test]
fn no_request_gets_an_answer_that_the_contract_does_not_allow() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["--json", "bench", "fuzz", "--requests", "2000"]).stdin(Stdio::null());
    for name in ["TENURE_URL", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let said = format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for status in ["200", "201", "204", "400", "404", "405", "409", "413", "415", "422"] {
        assert!(answer["statuses"][status].as_u64() > Some(0), "no {status} at all: {said}");
    }
}
