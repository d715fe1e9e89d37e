//! CMD does not get the token of the command that runs it.
#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Root may read everything: then an ordinary user is one whom the test becomes.
fn as_anybody(arguments: &[&str]) -> Command {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(env!("CARGO_BIN_EXE_tenure"));
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_tenure"))
    };
    command
        .args(arguments)
        .current_dir("/")
        .env("TENURE_URL", "memory:")
        .env("HOME", "/nonexistent");
    command
}

#[test]
fn cmd_cannot_read_the_token_out_of_the_processes_above_it() {
    // Every process above CMD that is of the same program: the wrapper and the guard.
    let script = "p=$PPID; while [ \"$p\" -gt 1 ]; do \
                    cat /proc/$p/environ 2>/dev/null | tr '\\0' '\\n' | grep TENURE_PROBE && echo \"read $p\"; \
                    case $(cat /proc/$p/comm) in tenure|cmd-guard) ;; *) break;; esac; \
                    p=$(cut -d' ' -f4 /proc/$p/stat); n=$((n+1)); done; echo \"looked at $n\"";
    let mut command = as_anybody(&["lock", "x", "--", "sh", "-c", script]);
    // The shell's own environment does not count: the parent's copy must not be readable.
    let output = command.env("TENURE_TOKEN", "TENURE_PROBE").output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(out.contains("looked at") && !out.contains("looked at \n"), "{out} {err}");
    assert!(!out.contains("TENURE_PROBE"), "{out}");
}

#[test]
fn control_characters_of_a_refused_line_reach_no_terminal() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    let output = command.args(["cancel", "nosuch\u{9b}31m"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("nosuch") && !err.contains('\u{9b}'), "{err:?}");
}
