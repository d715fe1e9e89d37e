//! The short form of `tenure bench soak`.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

#[test]
fn nothing_is_lost_in_mixed_use() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["--json", "bench", "soak", "--duration", "6s", "--users", "4"]);
    for name in ["TENURE_URL", "TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {} {said}", output.status));
    assert!(answer["ended"].as_u64().unwrap() > 0, "{answer}");
    assert_eq!(answer["pushed"], answer["ended"], "{answer}");
    assert_eq!(answer["samples"].as_array().unwrap().len(), 20, "{answer}");
    assert!(answer["store"]["percent"].as_f64().unwrap() > 0.0, "{answer}");
    // In seconds nothing has levelled off: that is judged after an hour.
    let early = |fault: &&serde_json::Value| !fault.as_str().unwrap().contains(" grows on: ");
    let faults: Vec<_> = answer["shown"].as_array().unwrap().iter().filter(early).collect();
    assert!(faults.is_empty(), "{faults:?}");
}
