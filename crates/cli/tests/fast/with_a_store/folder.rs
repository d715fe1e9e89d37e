//! A folder of its own for a test, and the built command on it.

use std::process::{Command, Output};

use tempfile::TempDir;
use tenure_testkit::tenure::{done, fails, told};

use crate::client;

/// Removed with the test.
pub struct Folder(pub TempDir);

impl Folder {
    /// Makes an empty folder.
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }
    /// The command on the store in this folder; the variables of the test's own process do not reach it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let folder = self.0.path().join("store");
        let mut command = client(&format!("file:{}", folder.display()), arguments);
        // Moments are shown by the clock of the machine's zone, wherever the tests run.
        command.current_dir(self.0.path()).env("TZ", "UTC");
        command
    }
    /// Runs the command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
    /// Runs the command; the exit code, stdout and stderr.
    pub fn told(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.command(arguments))
    }
    /// stdout of a command that must end well.
    #[track_caller]
    pub fn done(&self, arguments: &[&str]) -> String {
        done(&mut self.command(arguments))
    }
    /// Runs a command that must end with this exit code, and say this on stderr.
    #[track_caller]
    pub fn fails(&self, code: i32, arguments: &[&str], part: &str) {
        fails(code, &mut self.command(arguments), part);
    }
    /// The answer, which is one document.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[&["--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
