//! Every case of the table once, with sample parameters: its texts, and the rules for texts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::*;
use crate::refusal::{Code, Refusal};

pub(super) type Reader = fn(&Value) -> Result<Refusal, String>;

/// Reads one case of a type from its stable name and its parameters, and writes it again.
pub(super) fn read<T>(case: &Value) -> Result<Refusal, String>
where
    T: DeserializeOwned + Serialize + Into<Refusal>,
{
    let read: T = serde_json::from_value(case.clone()).map_err(|why| why.to_string())?;
    let written = serde_json::to_value(&read).unwrap();
    // A parameter that was left out has its default.
    for (name, told) in case.as_object().unwrap() {
        assert_eq!(written[name], *told);
    }
    Ok(read.into())
}

/// A sample parameter for each name.
fn parameters() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("address", json!("ADDRESS")),
        ("advice", json!("write each key of an object once")),
        ("allowed", json!("GET, PUT")),
        ("because", json!("the outcome \"failed\"")),
        ("bounds", json!("at most \"1h\"")),
        ("burst", json!(3)),
        ("bytes", json!(600)),
        ("calls", json!("200/1s")),
        ("caller", json!("crawler")),
        ("character", json!("/")),
        ("child", json!("j2")),
        ("column", json!(7)),
        ("concurrency", json!(2)),
        ("cost", json!(5)),
        ("cursor", json!("x")),
        ("family", json!("site")),
        ("deletes", json!(2)),
        ("fault", json!("the store cannot be reached: no route to it")),
        ("field", json!("minute")),
        ("fields", json!(["id", "queue"])),
        ("flow", json!("import-7")),
        ("form", json!("\"id\": \"a\"")),
        ("frozen", json!("copied")),
        ("given", json!(3)),
        ("held", json!(1)),
        ("holder", json!("j1")),
        ("items", json!(1_001)),
        ("job", json!("j1")),
        ("key", json!("article-42")),
        ("kind", json!("limit")),
        ("known", json!(["weight", "cost"])),
        ("guide", json!("docs/guides/redis.md")),
        ("bound", json!("\"maxmemory\"")),
        ("enters_all", json!(false)),
        ("label", json!("\"priority\"")),
        ("lacking", json!(["read", "work"])),
        ("labels", json!(40)),
        ("last", json!(4)),
        ("lease", json!("L1")),
        ("least", json!("6s")),
        ("limit", json!("site:a")),
        ("line", json!(2)),
        ("max", json!(16)),
        ("message", json!("this user has no permissions")),
        ("method", json!("PURGE")),
        ("min", json!(1)),
        ("most", json!(512)),
        ("most_bytes", json!(1_000_000)),
        ("name", json!("queue")),
        ("namespace", json!("web")),
        ("noun", json!("a number")),
        ("offset", json!(30)),
        ("one", json!("for")),
        ("operation", json!("cancel_job")),
        ("option", json!("weight")),
        ("other", json!("until")),
        ("outcome", json!("failed")),
        ("owner", json!("cms")),
        ("page", json!(4)),
        ("parent", json!("j0")),
        ("parents", json!(10_001)),
        ("path", json!("/v1/job")),
        ("per", json!("1s")),
        ("first", json!({"item": 1})),
        ("permitted", json!("\"web\", \"web-*\"")),
        ("place", json!("http://127.0.0.1:7171")),
        ("scope", json!("operate")),
        ("scopes", json!("push and work")),
        ("second", json!({"line": 4})),
        ("pool", json!("accounts")),
        ("queue", json!("crawl")),
        ("resource", json!("r1")),
        ("retires", json!(2)),
        ("schedule", json!("news-42")),
        ("sent", json!(1_001)),
        ("shown", json!("qeue")),
        ("state", json!("running")),
        ("status", json!(401)),
        ("store", json!("redis")),
        ("sync", json!(9)),
        ("template", json!("site:*")),
        ("there", json!(3)),
        ("unfinished", json!(1)),
        ("until", json!("2026-12-01T09:55:00.000000Z")),
        ("wait_s", json!(1)),
        ("waiting", json!(512)),
        ("weight", json!(4)),
        ("what", json!("a job")),
        ("why", json!("has a fragment; leave it out")),
        ("words", json!(["keep", "replace"])),
        ("wrong", json!("the key \"a\" stands twice in one object")),
    ])
}

/// Every case once, with samples.
fn samples() -> Vec<(&'static SentenceRow, Refusal)> {
    let parameters = parameters();
    let sample = |(row, read): (&'static SentenceRow, Reader)| {
        // Serde names the next missing parameter until the case is complete.
        let mut case = Map::from_iter([("case".to_owned(), json!(row.name))]);
        loop {
            let why = match read(&Value::Object(case.clone())) {
                Ok(no) => return (row, no),
                Err(why) => format!("{}: {why}", row.name),
            };
            let missing = why.split('`').nth(1).unwrap_or_default();
            let Some(value) = parameters.get(missing) else { panic!("{why}: give it a sample") };
            assert!(case.insert(missing.to_owned(), value.clone()).is_none(), "{why}");
        }
    };
    let subjects = readers().into_iter();
    subjects.flat_map(|(rows, read)| rows.iter().map(move |row| (row, read))).map(sample).collect()
}

#[test]
fn every_case_has_a_name_of_its_own_in_snake_case() {
    let mut names = BTreeSet::new();
    for row in rows() {
        assert!(names.insert(row.name), "{} stands twice", row.name);
        let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(row.name.chars().all(snake), "{}", row.name);
    }
}

#[test]
fn every_case_says_what_is_wrong_and_what_to_do() {
    for (row, no) in samples() {
        let (name, Refusal { code, detail, hint, .. }) = (row.name, &no);
        assert_eq!(*code, row.code, "{name}");
        for text in [detail, hint] {
            assert!(
                !text.is_empty() && text.trim() == text && !text.contains('\n'),
                "{name}: {text:?}"
            );
            assert!(!text.contains("  "), "{name}: two spaces in {text:?}");
            assert!(!text.ends_with('.'), "{name}: a full stop ends {text:?}");
            assert!(text.len() < 400, "{name}: {text:?} is long");
            for homely in [" is due", "be it ", "but for ", "so many", "nobody's"] {
                assert!(!text.contains(homely), "{name}: {text:?}");
            }
        }
        for secret in ["payload", "data", "result", "token", "password"] {
            // A doubled brace stands for a single one in the text, and is no parameter.
            let told = |text: &str| text.replace("{{", "").contains(&format!("{{{secret}"));
            assert!(!told(row.detail) && !told(row.hint), "{name} tells a {secret}");
        }
        let first = detail.chars().next().expect("a first letter");
        assert!(!first.is_uppercase(), "{name}: {detail:?} begins with a capital");
    }
}

#[test]
fn the_latest_moment_is_the_bound() {
    assert_eq!(super::values::LATEST.parse(), Ok(crate::time::Moment::LAST));
}

#[test]
fn a_case_says_its_parameters_where_they_belong() {
    let no = read::<LimitRefusal>(&json!({"case": "limit_not_set", "limit": "scrapy"})).unwrap();
    assert_eq!(no.code, Code::LimitNotFound);
    assert_eq!(no.detail, "the limit \"scrapy\" is not set");
    let near = json!({"case": "settle_snooze_too_near", "until": "2027-01-15T08:00:00.000000Z"});
    let said = "a snooze until 2027-01-15T08:00:00.000000Z is less than 100 ms ahead";
    assert_eq!(read::<LeaseRefusal>(&near).unwrap().detail, said);
}

#[test]
fn a_refusal_names_the_job_in_the_way_or_the_time_to_retry() {
    for (row, no) in samples() {
        let of_a_token = ["too_many_calls", "too_many_in_flight"].contains(&row.name);
        assert_eq!(no.caller.as_deref(), of_a_token.then_some("crawler"), "{}", row.name);
        let naming = ["schedule_job_ended", "parent_ended", "job_followed_by"];
        let in_the_way = no.code == Code::UniqueConflict || naming.contains(&row.name);
        assert_eq!(no.job.is_some(), in_the_way, "{}", row.name);
        let passing = [
            Code::QueueFull,
            Code::LineFull,
            Code::StoreFull,
            Code::Overloaded,
            Code::Draining,
            Code::TrailUnwritable,
            Code::NotOwner,
        ];
        let waits = passing.contains(&no.code);
        assert_eq!(no.retry_after_s.is_some(), waits, "{}", row.name);
    }
}

/// A code without a page does not help a refused caller; a page without a row is no code any more.
#[test]
fn every_code_has_a_page_and_a_row_in_the_list() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let list = std::fs::read_to_string(docs.join("README.md")).unwrap();
    for code in Code::ALL {
        assert!(docs.join(format!("{code}.md")).is_file(), "docs/errors/{code}.md is not there");
        let row = format!("| [`{code}`]({code}.md) | {} | {} |", code.status(), code.title());
        assert!(list.contains(&row), "docs/errors/README.md has no row {row}");
    }
    for page in std::fs::read_dir(&docs).unwrap() {
        let page = page.unwrap().path();
        let name = page.file_stem().and_then(|name| name.to_str()).unwrap().to_owned();
        assert!(name == "README" || name.parse::<Code>().is_ok(), "{name}.md is of no code");
    }
}
