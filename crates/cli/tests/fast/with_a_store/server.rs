//! A server of a test's own.

use std::process::Command;
use std::time::Duration;

use tenure_testkit::tenure;

use crate::with_a_store::folder::Folder;

/// No wait for it is longer.
const LONG: Duration = Duration::from_secs(60);

/// A server on the folder; it listens at its old address, or at any.
pub struct Server(tenure::Server);

impl Server {
    pub fn start(folder: &Folder, at: &str) -> Server {
        let store = format!("file:{}", folder.0.path().join("store").display());
        let mut command = folder.command(&["serve", "--listen", at, "--store", &store]);
        Server(tenure::Server::start(&mut command, LONG))
    }

    pub fn at(&self) -> String {
        self.0.at.clone()
    }

    /// Ends it by SIGKILL; answers where it listened.
    pub fn kill(self) -> String {
        self.at()
    }

    pub fn command(&self, folder: &Folder, arguments: &[&str]) -> Command {
        let mut command = folder.command(arguments);
        command.env("TENURE_URL", self.0.url());
        command
    }

    /// stdout of a command at this server, which must end well.
    #[track_caller]
    pub fn done(&self, folder: &Folder, arguments: &[&str]) -> String {
        tenure::done(&mut self.command(folder, arguments))
    }

    /// The answer to a GET, which is one document.
    pub fn get(&self, path: &str) -> serde_json::Value {
        self.0.look(path).1
    }
}
