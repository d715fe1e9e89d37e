//! The reader against a table, and against the well-known library.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;

use super::{BadJson, Document, Kind, Node};
use crate::bounds::JSON_DEPTH_MAX;
use crate::refusal::{Code, Refusal};

fn bad(text: impl AsRef<[u8]>) -> BadJson {
    let text = text.as_ref();
    match Document::parse(text) {
        Ok(_) => panic!("{:?} was taken", String::from_utf8_lossy(text)),
        Err(bad) => bad,
    }
}

/// The same tree in the other library, for comparison. Numbers are compared by their text.
fn value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::Null => Value::Null,
        Kind::Bool => Value::Bool(node.boolean().unwrap()),
        Kind::Number => serde_json::from_str(node.text()).unwrap(),
        Kind::String => Value::String(node.string().unwrap().into_owned()),
        Kind::Array => Value::Array(node.items().map(value).collect()),
        Kind::Object => {
            Value::Object(node.members().map(|(k, v)| (k.into_owned(), value(v))).collect())
        }
    }
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    for (text, what, line, column) in [
        (&b""[..], "it ends where a value is expected", 1, 1),
        (b" \n ", "it ends where a value is expected", 2, 2),
        (b"{", "it ends where a key", 1, 2),
        (b"[", "it ends where a value", 1, 2),
        (b"[1", "it ends where ',' or ']'", 1, 3),
        (b"{\"a\"", "it ends where ':'", 1, 5),
        (b"{\"a\":1", "it ends where ',' or '}'", 1, 7),
        (b"{\"a\":}", "a value is expected", 1, 6),
        (b"{a:1}", "a key in double quotes", 1, 2),
        (b"{'a':1}", "a key in double quotes", 1, 2),
        (b"{\"a\":1,}", "a key in double quotes", 1, 8),
        (b"{\"a\" 1}", "':' is expected", 1, 6),
        (b"{\"a\":1 \"b\":2}", "',' or '}'", 1, 8),
        (b"[1,]", "a value is expected", 1, 4),
        (b"[1 2]", "',' or ']'", 1, 4),
        (b"[1}", "',' or ']'", 1, 3),
        (b"{\"a\":1]", "',' or '}'", 1, 7),
        (b"{} {}", "after the end", 1, 4),
        (b"1 x", "after the end", 1, 3),
        (b"{}\0", "after the end", 1, 3),
        (b"tru", "a value is expected", 1, 1),
        (b"nul ", "a value is expected", 1, 1),
        (b"True", "a value is expected", 1, 1),
        (b"NaN", "a value is expected", 1, 1),
        (b"truex", "after the end", 1, 5),
        (b"// a\n1", "a value is expected", 1, 1),
        (b"01", "a number begins with 0", 1, 1),
        (b"-01", "a number begins with 0", 1, 1),
        (b"+1", "a value is expected", 1, 1),
        (b"1.", "it ends where a digit", 1, 3),
        (b"[1.]", "a digit is expected", 1, 4),
        (b".5", "a value is expected", 1, 1),
        (b"-", "it ends where a digit", 1, 2),
        (b"1e", "it ends where a digit", 1, 3),
        (b"[1e+]", "a digit is expected", 1, 5),
        (b"0x10", "after the end", 1, 2),
        (b"\"abc", "it ends inside a string", 1, 5),
        (b"\"a\nb\"", "a control character", 1, 3),
        (b"\"123456789\x01\"", "a control character", 1, 11),
        (b"\"\\x\"", "no such escape", 1, 2),
        (b"\"\\", "it ends where an escape", 1, 3),
        (b"\"\\u12g4\"", "four hexadecimal digits", 1, 6),
        (b"\"\\ud800\"", "a high surrogate", 1, 2),
        (b"\"\\ud800\\n\"", "a high surrogate", 1, 2),
        (b"\"\\ud800\\ud800\"", "a high surrogate", 1, 2),
        (b"\"\\udc00\"", "a low surrogate", 1, 2),
        (b"\"\xff\"", "not UTF-8", 1, 2),
        (b"[\"\xc3\xbc\",\n \"\xc3\"]", "not UTF-8", 2, 3),
        (b"\"\xed\xa0\x80\"", "not UTF-8", 1, 2),
        ("\u{feff}{}".as_bytes(), "a byte order mark", 1, 1),
        (b"{\"a\":1,\"a\":2}", "the key \"a\" stands twice", 1, 8),
        (b"{\"a\":1,\"\\u0061\":2}", "the key \"a\" stands twice", 1, 8),
        (b"{\"\\n\":1,\"\\u000a\":2}", "the key \"\\n\" stands twice", 1, 9),
        (b"{\"p\":[{\"x\":{\"k\":1,\n\"k\":1}}]}", "the key \"k\" stands twice", 2, 1),
        (b"{\"abcdefgh1\":1,\"abcdefgh1\":1}", "stands twice", 1, 16),
        ("{\"ü\":1, x".as_bytes(), "a key in double quotes", 1, 9),
    ] {
        let bad = bad(text);
        assert!(bad.what.contains(what), "{:?}: {bad}", String::from_utf8_lossy(text));
        assert_eq!((bad.line, bad.column), (line, column), "{:?}: {bad}", text.escape_ascii());
        let no = Refusal::from(bad);
        assert_eq!(no.code, Code::BadJson);
        assert!(no.detail.contains(&format!("line {line}, column {column}, byte ")), "{no}");
        assert!(!no.hint.is_empty());
    }
}

#[test]
fn level_64_is_taken_and_level_65_is_not() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
        assert!(Document::parse(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let no = bad(nested(JSON_DEPTH_MAX + 1));
        assert!(no.what.contains("deeper than 64"), "{no}");
        assert_eq!(no.offset, JSON_DEPTH_MAX * open.len());
    }
    // Depth is not the number of all values that open.
    assert!(Document::parse(format!("[{}[]]", "[],".repeat(1_000)).as_bytes()).is_ok());
}

#[test]
fn a_wide_object_is_watched_as_a_small_one_is() {
    for n in [15, 16, 17, 18, 40, 2_000] {
        let keys: Vec<String> = (0..n).map(|i| format!("\"key-{i}\":{i}")).collect();
        let all = format!("{{{}}}", keys.join(","));
        assert_eq!(
            value(Document::parse(all.as_bytes()).unwrap().root()).as_object().unwrap().len(),
            n
        );
        for again in [0, n / 2, n - 1] {
            let twice = format!("{{{},\"\\u006bey-{again}\":{{}}}}", keys.join(","));
            assert!(bad(&twice).what.contains(&format!("key-{again}")), "{n}, {again}");
        }
        // The keys of an inner object do not count for the outer one, before and after it.
        let nested = format!("{{\"a\":{all},\"b\":{all},\"key-0\":1}}");
        assert!(Document::parse(nested.as_bytes()).is_ok(), "{n}");
        assert!(bad(format!("{{\"a\":{all},\"a\":1}}")).what.contains("\"a\""), "{n}");
    }
}

#[test]
fn hostile_bodies_are_answered_soon() {
    // A generous bound: a quadratic or recursive reader would take minutes, or the stack.
    let many_keys: Vec<String> = (0..100_000).map(|i| format!("\"{i}\":0")).collect();
    for (what, text) in [
        ("only openings", "[".repeat(10_000_000)),
        ("openings and keys", "{\"a\":".repeat(2_000_000)),
        ("many keys", format!("{{{}}}", many_keys.join(","))),
        ("many small arrays", format!("[{}1]", "[],".repeat(1_000_000))),
        ("one long string", format!("\"{}\"", "a".repeat(8_000_000))),
        ("only escapes", format!("\"{}\"", "\\u0041".repeat(1_000_000))),
        ("one long number", "1".repeat(8_000_000)),
        ("many newlines", "\n".repeat(8_000_000)),
    ] {
        let begun = Instant::now();
        let _ = Document::parse(text.as_bytes());
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
    }
}

#[test]
fn opaque_parts_keep_their_exact_text() {
    let text =
        "{ \"payload\" : { \"b\" : 1.50, \"a\":[ ] ,\"\\u0041\":1e999 } , \"s\":\"\\u0041\" }";
    let document = Document::parse(text.as_bytes()).unwrap();
    let payload = document.root().member("payload").unwrap();
    let exact = "{ \"b\" : 1.50, \"a\":[ ] ,\"\\u0041\":1e999 }";
    assert_eq!(payload.text(), exact);
    assert_eq!(payload.json().unwrap().text(), exact);
    assert_eq!(&text[payload.span()], exact);
    assert_eq!(document.root().member("s").unwrap().text(), "\"\\u0041\"");
    assert_eq!(document.root().member("s").unwrap().string().unwrap(), "A");
    assert!(document.root().member("absent").is_none());
}

#[test]
fn escapes_say_what_they_say() {
    for (text, said) in [
        (r#""""#, ""),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""\u00e9x\u4e2d""#, "éx中"),
        (r#""a\ud83d\ude00b""#, "a😀b"),
        (r#""\uD834\uDD1E""#, "𝄞"),
        (r#""\udbff\udfff""#, "\u{10ffff}"),
        (r#""\u0000""#, "\0"),
        (r#""\\u0041""#, "\\u0041"),
        ("\"ü中😀\u{7f}\"", "ü中😀\u{7f}"),
    ] {
        let document = Document::parse(text.as_bytes()).unwrap();
        assert_eq!(document.root().string().unwrap(), said, "{text}");
    }
}

/// Only our reader checks for repeated keys and depth, so texts that it refuses for these are left
/// out of the comparison.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let theirs: Result<Value, _> = serde_json::from_slice(bytes);
    match (Document::parse(bytes), theirs) {
        (Ok(ours), Ok(theirs)) => prop_assert_eq!(value(ours.root()), theirs),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(e)) => {
            prop_assert!(e.to_string().contains("number out of range"), "we took it, they: {e}")
        }
        (Err(bad), Ok(_)) => {
            let ours_alone = bad.what.contains("twice") || bad.what.contains("deeper");
            prop_assert!(ours_alone, "they took it, we: {bad}");
        }
    }
    Ok(())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::String),
        "[a-c\"\\\\\n\u{1}é😀]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::btree_map("[a-e\"\\\\é]{0,3}", inner, 0..24)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1_000 } else { 20_000 }))]

    #[test]
    fn what_they_write_we_read(json in any_json()) {
        for text in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
            let ours = Document::parse(text.as_bytes());
            prop_assert!(ours.is_ok(), "{:?}", ours.err());
            prop_assert_eq!(value(ours.unwrap().root()), serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn damaged_json_is_read_as_they_read_it(
        json in any_json(),
        cut in any::<prop::sample::Index>(),
        what in prop::sample::select(b"{}[],:\"\\0123456789.eE+-truefalsn u\xff\xc3\n\t\x00".to_vec()),
        how in 0..3,
    ) {
        let mut bytes = json.to_string().into_bytes();
        let at = cut.index(bytes.len());
        match how {
            0 => bytes[at] = what,
            1 => bytes.insert(at, what),
            _ => { bytes.remove(at); }
        }
        agree(&bytes)?;
    }

    #[test]
    fn a_soup_of_tokens_is_read_as_they_read_it(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\u0061\"", "1", "-0", "0.5", "1e5",
            "1E-2", "01", "-", "true", "false", "null", " ", "\n", "\"", "\\", "\\u", "d800", "1e400",
            "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "\u{feff}", "é",
        ]), 0..12),
    ) {
        agree(tokens.concat().as_bytes())?;
    }

    #[test]
    fn a_number_is_taken_as_they_take_it(text in "-?[0-9]{0,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?") {
        agree(text.as_bytes())?;
    }

    #[test]
    fn a_string_is_taken_as_they_take_it(
        text in "(\\\\u[dD][89aAbBcCdDeEfF][0-9a-f]{2}|\\\\u[0-9a-fA-F]{3,4}|\\\\[bfnrt\"/x]|[a-z\u{1}é中]){0,9}",
    ) {
        agree(format!("\"{text}\"").as_bytes())?;
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        agree(&bytes)?;
    }
}
