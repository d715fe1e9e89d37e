//! Keys as a text that is kept: a line with a key's name and type, and below it a line for each thing in it.
//!
//! What is no plain letter is written as Rust writes it in a byte string (`\x00`), a blank as `\x20`, so that blanks
//! separate; nothing at all is `""`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::dump::Stored;

const EMPTY: &str = "\"\"";

fn escaped(bytes: &[u8]) -> String {
    match bytes {
        [] => EMPTY.to_owned(),
        _ => bytes.escape_ascii().to_string().replace(' ', r"\x20"),
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    if text == EMPTY {
        return Vec::new();
    }
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.as_bytes());
        let (byte, taken) = match after.as_bytes() {
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'r', ..] => (b'\r', 1),
            [b'x', ..] => (u8::from_str_radix(&after[1..3], 16).expect("two digits"), 3),
            [other, ..] => (*other, 1),
            [] => panic!("nothing follows a backslash: {text}"),
        };
        bytes.push(byte);
        rest = &after[taken..];
    }
    bytes.extend(rest.as_bytes());
    bytes
}

pub fn text_of(keys: &BTreeMap<Vec<u8>, Stored>) -> String {
    let mut text = String::new();
    for (name, Stored { kind, items }) in keys {
        let of_line = if matches!(kind.as_str(), "hash" | "zset") { 2 } else { 1 };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {kind}", escaped(name));
        for line in items.chunks(of_line) {
            let words: Vec<String> = line.iter().map(|item| escaped(item)).collect();
            let _ = writeln!(text, "  {}", words.join(" "));
        }
    }
    text
}

pub fn keys_of(text: &str) -> Vec<(Vec<u8>, Stored)> {
    let mut keys: Vec<(Vec<u8>, Stored)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            None => {
                let (name, kind) = line.split_once(' ').expect("a name and a type");
                keys.push((unescaped(name), Stored { kind: kind.to_owned(), items: Vec::new() }));
            }
            Some(items) => {
                let (_, stored) = keys.last_mut().expect("a key stands above");
                stored.items.extend(items.split(' ').map(unescaped));
            }
        }
    }
    keys
}

#[test]
fn what_is_written_is_read() {
    let odd: Vec<Vec<u8>> = vec![b"a \\ \"b'\n\0\xff".to_vec(), Vec::new(), "ä\t\r".into()];
    let more = Stored { kind: "list".to_owned(), items: odd };
    let keys = BTreeMap::from([(b"n:1".to_vec(), more)]);
    assert_eq!(keys_of(&text_of(&keys)), keys.into_iter().collect::<Vec<_>>());
}
