//! How many namespaces a server takes, and what an empty one costs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::serve::{Server, end, start, start_with};

/// A connection that is kept.
struct Caller {
    stream: BufReader<TcpStream>,
}

impl Caller {
    fn of(server: &Server) -> Caller {
        Caller { stream: BufReader::new(TcpStream::connect(&server.at).unwrap()) }
    }

    /// The status of one call.
    fn call(&mut self, method: &str, path: &str, namespace: &str, body: &str) -> u16 {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nTenure-Namespace: {namespace}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes()).unwrap();
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "the connection ended");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().unwrap();
            }
        }
        self.stream.read_exact(&mut vec![0; length]).unwrap();
        status.unwrap()
    }
}

#[test]
fn one_namespace_more_than_the_option_says_is_refused() {
    let server = start_with("memory:", &["--namespaces-max", "2"], None);
    let url = server.url();
    let push = |namespace: &str| {
        end(&["--url", &url, "--namespace", namespace, "push", "q", "--id", "same"], None)
    };
    assert_eq!(push("a").0, Some(0));
    assert_eq!(push("b").0, Some(0));
    let (code, log) = push("c");
    assert_eq!(code, Some(1), "{log}");
    let wanted = "the store has 2 namespaces, and takes no other (\"--namespaces-max\")";
    assert!(log.contains(wanted) && log.contains("namespaces_full"), "{log}");
    assert_eq!(push("a").0, Some(0), "those that are there go on");
}

/// Before the fix: 38 KiB.
#[cfg(target_os = "linux")]
#[test]
fn an_empty_namespace_takes_less_than_4_kib() {
    const NAMESPACES: u64 = 2_000;
    let server = start("memory:", None);
    let rss_kib = || {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", server.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
    };
    let mut caller = Caller::of(&server);
    let mut limit_comes_and_goes = |n: u64| {
        let namespace = format!("n{n}");
        let put = caller.call("PUT", "/v1/limits/l", &namespace, r#"{"concurrency": 1}"#);
        assert_eq!(put, 201);
        assert_eq!(caller.call("DELETE", "/v1/limits/l", &namespace, ""), 204);
    };
    // Memory that a server takes once.
    (0..100).for_each(&mut limit_comes_and_goes);
    let before = rss_kib();
    (100..100 + NAMESPACES).for_each(&mut limit_comes_and_goes);
    let each = rss_kib().saturating_sub(before) as f64 / NAMESPACES as f64;
    assert!(each < 4.0, "{each} KiB each");
}
