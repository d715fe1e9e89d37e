//! One request: right, or broken in its path, query, headers, body or framing.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::document::{Document, Operation};
use super::value::{broken, pick, value, word};
use crate::chance::Chance;

/// The namespaces of the requests; the first is the default one.
pub const NAMESPACES: [&str; 3] = ["default", "fuzz-a", "fuzz-b"];
const METHODS: [&str; 8] = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];
/// Header lines that are wrong, odd, or foreign.
const HEADERS: [&str; 14] = [
    "Tenure-Namespace: \r\n",
    "Tenure-Namespace: UPPER\r\n",
    "Tenure-Namespace: a\r\nTenure-Namespace: b\r\n",
    "Origin: http://else.where\r\n",
    "Origin: null\r\n",
    "Expect: 100-continue\r\n",
    "Authorization: Bearer \r\n",
    "Authorization: Basic eDp5\r\n",
    "Content-Type: text/plain\r\n",
    "Content-Encoding: gzip\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\nUpgrade: websocket\r\n",
    "Prefer: return=minimal\r\n",
    "X-Long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n",
];

/// How the body is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// One body with its `Content-Length`.
    Length,
    /// In chunks of random size.
    Chunks,
    /// With a length beyond its end; then the sending side is closed.
    Cut,
    /// Against the rules of HTTP: two lengths, wrong chunks, a bad head.
    Wrong,
}

/// One request, as bytes, with its meaning.
#[derive(Clone, Debug)]
pub struct Sent {
    /// For messages: method and target.
    pub name: String,
    pub method: String,
    /// All that is sent.
    pub bytes: Vec<u8>,
    /// How its body is sent.
    pub framing: Framing,
}

/// Also escapes what our own client leaves as it is, so that the server meets both forms.
fn percent(text: &str) -> String {
    const ESCAPED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// A value for a name in a path.
fn named(chance: &mut Chance, path: &str, name: &str, leases: &[String]) -> String {
    let field = match (path.split('/').nth(2).unwrap_or_default(), name) {
        ("jobs", _) if chance.percent(15) => return format!("key:k{}", chance.within(0, 6)),
        ("jobs", _) => return format!("j{}", chance.within(0, 40)),
        ("pools", "id") => "prefer",
        ("leases", _) => "lease",
        ("queues", _) => "queue",
        ("limits", _) => "limit",
        ("flows", _) => "flow",
        _ => "pool",
    };
    word(chance, field, leases).unwrap_or_default()
}

fn target(chance: &mut Chance, operation: &Operation, leases: &[String]) -> String {
    let mut path = String::new();
    for part in operation.path.split('/').skip(1) {
        path.push('/');
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => path += &percent(&named(chance, &operation.path, name, leases)),
            None => path += part,
        }
    }
    if chance.percent(4) {
        let odd = ["%", "%zz", "%00", "%C3", "..", "/", "//", "/%2F", "%2e%2e/", "/x/y/z", ";a=b"];
        let at = path.char_indices().map(|(at, _)| at).nth(chance.within(1, 12) as usize);
        path.insert_str(at.unwrap_or(path.len()), pick(chance, &odd));
    }
    let mut separator = '?';
    for name in &operation.query {
        if !chance.percent(30) {
            continue;
        }
        let text = match name.as_str() {
            "max" => pick(chance, &["1", "7", "100", "1000", "0", "1001", "x", "-1", ""]),
            "full" | "force" => pick(chance, &["true", "false", "1", "TRUE", ""]),
            "version" => pick(chance, &["1", "2", "9007199254740993", "-1"]),
            "label" => pick(chance, &["g0:1", "a:b:c", "none", ":"]),
            "kind" => pick(chance, &["", "a", "größe"]),
            "cursor" => pick(chance, &["", "0", "9", "q1", "x", "\u{1F600}"]),
            "worker" => pick(chance, &["w0", "anonymous"]),
            other => &word(chance, other, leases).unwrap_or_default(),
        };
        let _ = write!(path, "{separator}{name}={}", percent(text));
        separator = '&';
    }
    if chance.percent(3) {
        path.push(separator);
        path += pick(chance, &["nothing_like_it=1", "max=1&max=2", "max", "%ff=1", "&&", "a=%"]);
    }
    path
}

/// The text of a body, possibly broken as text.
fn text(chance: &mut Chance, value: &Value) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    if !chance.percent(12) {
        return text;
    }
    let at = chance.within(0, text.len().max(1) as u64) as usize;
    match chance.within(0, 9) {
        0 => text.truncate(at),
        1 => text.extend_from_within(..),
        2 => text.extend_from_slice(b" x"),
        3 => text.splice(0..0, *b"\xEF\xBB\xBF").for_each(drop),
        4 => text.splice(at..at, [0xFF]).for_each(drop),
        5 => text.splice(at..at, *b"\\ud800").for_each(drop),
        6 => text.clear(),
        7 => {
            // The same key twice.
            if let Some(open) = text.iter().position(|byte| *byte == b'{') {
                text.splice(open + 1..=open, *b"\"queue\":\"q0\",\"queue\":\"q1\",").for_each(drop);
            }
        }
        _ => {
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << chance.within(0, 8);
            }
        }
    }
    text
}

fn body(
    chance: &mut Chance,
    document: &Document,
    operation: &Operation,
    leases: &[String],
) -> (Vec<u8>, &'static str) {
    let Some(schema) = &operation.body else {
        return match chance.within(0, 25) {
            0 => (b"{}".to_vec(), "application/json"),
            1 => (b"{\"x\":1}".to_vec(), "application/json"),
            2 => (vec![b' '; 100_000], "application/json"),
            _ => (Vec::new(), ""),
        };
    };
    let lines = operation.lines && chance.percent(25);
    let mut one = || {
        let mut made = value(chance, document, (schema, ""), leases, 0);
        if chance.percent(35) {
            broken(chance, &mut made);
        }
        if lines && let Value::Array(items) = made {
            made = items.into_iter().next().unwrap_or_default();
        }
        text(chance, &made)
    };
    if !lines {
        let text = one();
        let media = ["application/json", "application/json; charset=utf-8", "text/plain", ""];
        let at = if chance.percent(95) { chance.within(0, 2) } else { chance.within(2, 4) };
        return (text, media[at as usize]);
    }
    let mut all = Vec::new();
    for _ in 0..4 {
        all.extend(one());
        all.push(b'\n');
    }
    (all, "application/x-ndjson")
}

/// A random request of the document.
pub fn request(chance: &mut Chance, document: &Document, host: &str, leases: &[String]) -> Sent {
    let at = chance.within(0, document.operations.len() as u64) as usize;
    let operation = &document.operations[at];
    let mut method = operation.method.clone();
    if chance.percent(3) {
        method = pick(chance, &METHODS).to_owned();
    }
    let target = target(chance, operation, leases);
    let (body, media) = body(chance, document, operation, leases);
    let mut framing = match chance.within(0, 100) {
        0..=9 => Framing::Chunks,
        10 | 11 => Framing::Cut,
        12 | 13 => Framing::Wrong,
        _ => Framing::Length,
    };
    if body.is_empty() && framing != Framing::Wrong {
        framing = Framing::Length;
    }
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    let space = NAMESPACES[chance.within(0, NAMESPACES.len() as u64) as usize];
    if space != NAMESPACES[0] {
        let _ = write!(head, "Tenure-Namespace: {space}\r\n");
    }
    if !media.is_empty() {
        let _ = write!(head, "Content-Type: {media}\r\n");
    }
    if chance.percent(4) {
        head += pick(chance, &HEADERS);
    }
    let name = format!("{method} {target}");
    Sent { name, method, bytes: framed(chance, head, &body, framing), framing }
}

fn framed(chance: &mut Chance, mut head: String, body: &[u8], framing: Framing) -> Vec<u8> {
    let chunks = |body: &[u8], size: usize| {
        let mut all = Vec::new();
        for chunk in body.chunks(size) {
            all.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            all.extend_from_slice(chunk);
            all.extend_from_slice(b"\r\n");
        }
        all
    };
    match framing {
        Framing::Length => {
            let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
            [head.as_bytes(), body].concat()
        }
        Framing::Chunks => {
            head += "Transfer-Encoding: chunked\r\n\r\n";
            let size = chance.within(1_000, 100_000) as usize;
            [head.as_bytes(), &chunks(body, size), b"0\r\n\r\n"].concat()
        }
        Framing::Cut => {
            let more = chance.within(1, 1_000) as usize;
            let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len() + more);
            [head.as_bytes(), body].concat()
        }
        Framing::Wrong => {
            match chance.within(0, 6) {
                0 => head += "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
                1 => head += "Content-Length: -1\r\n\r\n",
                // Complete by its chunks: a server that waits for more would be right.
                2 => head += "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                3 => head += "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                4 => head += "no colon in this line\r\n\r\n",
                _ => {
                    let _ = write!(head, "X: {}\r\n\r\n", "x".repeat(500_000));
                }
            }
            [head.as_bytes(), body].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_requests_again() {
        let document = Document::read(tenure_server::document()).unwrap();
        let made = |seed| {
            let mut chance = Chance::of(seed);
            let next = |_| request(&mut chance, &document, "localhost", &[]).bytes;
            (0..200).map(next).collect::<Vec<_>>()
        };
        assert!(made(7) == made(7));
        assert!(made(7) != made(8));
    }
}
