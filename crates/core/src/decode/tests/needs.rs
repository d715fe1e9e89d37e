//! Needs, as JSON and as the command line writes them.

use super::{is_a_good_refusal, refused, row};
use crate::decode::{one_need, one_need_of_json};
use crate::job::Need;
use crate::names::{LimitName, PoolName, ResourceId, Tag};
use crate::refusal::Code::*;

fn limit(name: &str, weight: u32, cost: u32) -> Need {
    Need::Limit { limit: LimitName::parse(name).unwrap(), weight, cost }
}

fn pool(name: &str, tag: Option<&str>, ids: [Option<&str>; 2], count: u32) -> Need {
    let [prefer, id] = ids.map(|id| id.map(|id| ResourceId::parse(id).unwrap()));
    let tag = tag.map(|tag| Tag::parse(tag).unwrap());
    Need::Pool { pool: PoolName::parse(name).unwrap(), tag, prefer, id, count }
}

#[test]
fn a_need_is_the_same_in_both_forms() {
    for (json, cli, need) in [
        (r#"{"limit":"scrapy"}"#, "limit:scrapy", limit("scrapy", 1, 1)),
        (
            r#"{"limit":"site:a:b","weight":2,"cost":0}"#,
            "limit:site:a:b,cost=0,weight=2",
            limit("site:a:b", 2, 0),
        ),
        (r#"{"limit":"a","weight":null}"#, "limit:a", limit("a", 1, 1)),
        (r#"{"pool":"accounts"}"#, "pool:accounts", pool("accounts", None, [None, None], 1)),
        (
            r#"{"pool":"a","tag":"cn","prefer":"p=1"}"#,
            "pool:a#cn,prefer=p=1",
            pool("a", Some("cn"), [Some("p=1"), None], 1),
        ),
        (r#"{"pool":"a","id":"x#y"}"#, "pool:a,id=x#y", pool("a", None, [None, Some("x#y")], 1)),
        (r#"{"pool":"a","count":3}"#, "pool:a,count=3", pool("a", None, [None, None], 3)),
    ] {
        assert_eq!(one_need_of_json(json).as_ref(), Ok(&need), "{json}");
        assert_eq!(one_need(json).as_ref(), Ok(&need), "{json}");
        assert_eq!(one_need(cli).as_ref(), Ok(&need), "{cli}");
    }
}

#[test]
fn a_need_is_shown_as_the_command_line_takes_it() {
    for text in [
        "limit:site:example.com",
        "limit:gpu,weight=2",
        "limit:api,weight=2,cost=5",
        "pool:accounts",
        "pool:accounts#cn,prefer=139",
        "pool:accounts#cn,count=2",
        "pool:accounts,id=139",
        "pool:accounts,count=3",
    ] {
        assert_eq!(one_need(text).unwrap().to_string(), text);
    }
}

#[test]
fn a_wrong_need_is_refused_with_its_place() {
    refused(
        vec![
            row("[]", InvalidField, "", "as a JSON object"),
            row("{}", InvalidField, "/limit", "{\"pool\": NAME}"),
            row(r#"{"weight":1}"#, InvalidField, "/limit", "a need is"),
            row(r#"{"limit":"a","pool":"b"}"#, ConflictingFields, "/pool", "not both"),
            row(r#"{"limit":"a","tag":"b"}"#, ConflictingFields, "/tag", "leave out"),
            row(r#"{"limit":"a","count":1}"#, ConflictingFields, "/count", "leave out"),
            row(r#"{"pool":"a","weight":1}"#, ConflictingFields, "/weight", "leave out"),
            row(r#"{"pool":"a","id":"b","count":2}"#, ConflictingFields, "/count", "leave out"),
            row(r#"{"limit":"site:*"}"#, InvalidField, "/limit", "\"site:example.com\""),
            row(r#"{"limit":"lock:*"}"#, InvalidField, "/limit", "one limit of the family"),
            row(r#"{"limit":"Site"}"#, InvalidField, "/limit", "[a-z0-9._-]+"),
            row(r#"{"limit":1}"#, InvalidField, "/limit", "string"),
            row(r#"{"limit":"a","weight":0}"#, OutOfBounds, "/weight", "1 to"),
            row(r#"{"limit":"a","weight":1.5}"#, InvalidField, "/weight", "whole number"),
            row(r#"{"limit":"a","weight":1000000001}"#, OutOfBounds, "/weight", "1 to 1000000000"),
            row(r#"{"limit":"a","cost":-1}"#, OutOfBounds, "/cost", "0 to"),
            row(r#"{"limit":"a","wait":1}"#, UnknownField, "/wait", "\"weight\""),
            row(r#"{"pool":"a/b"}"#, InvalidField, "/pool", "'/'"),
            row(r#"{"pool":"a","tag":""}"#, InvalidField, "/tag", "1 to 128"),
            row(r#"{"pool":"a","tag":["b"]}"#, InvalidField, "/tag", "string"),
            row(r#"{"pool":"a","prefer":""}"#, InvalidField, "/prefer", "1 to 256"),
            row(r#"{"pool":"a","id":5}"#, InvalidField, "/id", "string"),
            row(r#"{"pool":"a","count":0}"#, OutOfBounds, "/count", "1 to"),
        ],
        |body| one_need_of_json(std::str::from_utf8(body).unwrap()),
    );
}

#[test]
fn a_wrong_short_form_says_the_right_one() {
    for (text, code, hint) in [
        ("", InvalidField, "limit:NAME"),
        ("scrapy", InvalidField, "limit:NAME"),
        ("lock:deploy", InvalidField, "limit:NAME"),
        ("limit:", InvalidField, "1 to 128"),
        ("limit:site:*", InvalidField, "one limit of the family"),
        ("limit:a,2", InvalidField, "weight=N"),
        ("limit:a,weight=x", InvalidField, "whole number"),
        ("limit:a,weight=0", OutOfBounds, "1 to"),
        ("limit:a,weight=99999999999999999999", OutOfBounds, "1 to"),
        ("limit:a,weight=1,weight=1", InvalidField, "weight=N"),
        ("limit:a,wieght=1", UnknownField, "did you mean \"weight\"?"),
        ("limit:a,tag=b", UnknownField, "\"weight\" or \"cost\""),
        ("pool:", InvalidField, "1 to 128"),
        ("pool:a#", InvalidField, "1 to 128"),
        ("pool:a,weight=1", UnknownField, "\"prefer\", \"id\" or \"count\""),
        ("pool:a,id=", InvalidField, "1 to 256"),
        ("pool:a,count=0", OutOfBounds, "1 to"),
        ("pool:a,id=b,count=2", ConflictingFields, "leave out"),
        ("{", BadJson, ""),
        ("{\"x\":1}", UnknownField, "\"limit\""),
    ] {
        let no = one_need(text).unwrap_err();
        assert_eq!(no.code, code, "{text}: {no}");
        assert!(no.hint.contains(hint), "{text}: {}", no.hint);
        assert!(text.starts_with('{') || no.pointer.is_none(), "{text}: {no}");
        is_a_good_refusal(&no);
    }
}
