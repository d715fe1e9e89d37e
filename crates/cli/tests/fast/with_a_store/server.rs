//! A server of a test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::with_a_store::folder::Folder;
use crate::with_a_store::signal;

/// A server on the folder; it listens at its old address, or at any.
pub struct Server {
    child: Child,
    pub at: String,
}

impl Server {
    pub fn start(folder: &Folder, at: &str) -> Server {
        let store = format!("file:{}", folder.0.path().join("store").display());
        let mut child = folder
            .command(&["serve", "--listen", at, "--store", &store])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        // As text or as JSON: the address ends where no address can go on.
        let (_, at) = line.split_once("listening on http://").unwrap();
        let at = at.split(['"', ' ', '\n']).next().unwrap().to_owned();
        Server { child, at }
    }

    pub fn kill(mut self) -> String {
        signal(&self.child, "-KILL");
        self.child.wait().unwrap();
        self.at
    }

    pub fn command(&self, folder: &Folder, arguments: &[&str]) -> Command {
        let mut command = folder.command(arguments);
        command.env("TENURE_URL", format!("http://{}", self.at));
        command
    }

    /// The answer to a GET, which is one document.
    pub fn get(&self, path: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}
