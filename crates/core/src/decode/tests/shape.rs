//! Properties of every body: an answer or a good refusal, whose pointer leads somewhere.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::is_a_good_refusal;
use crate::bounded::Bounded;
use crate::decode::*;
use crate::refusal::{Code, Refusal};
use crate::requests::OPERATIONS;

/// The names of all fields, and two that a pointer escapes.
fn keys() -> Vec<&'static str> {
    let fields = objects().into_iter().flat_map(|object| object.fields);
    fields.map(|field| field.name).chain(["a/b", "~"]).collect()
}

const WORDS: &[&str] = &[
    "",
    "a",
    "5m",
    "0s",
    "9999d",
    "2026-12-01T09:55:00Z",
    "1969-01-01T00:00:00Z",
    "succeeded",
    "failed",
    "snoozed",
    "released",
    "ok",
    "cool",
    "ban",
    "site:*",
    "lock:a",
    "list",
    "fixed",
    "keep",
    "0 9 * * 1-5",
    "UTC",
    "1500ms",
    "start",
    "run",
    "done",
    "anonymous",
    "ü/~",
    "a\u{0}",
];

fn body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop::sample::select(vec![-1_i64, 0, 1, 5, 100, 1_000, 1 << 40]).prop_map(Value::from),
        Just(Value::from(1.5)),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 80, 6, |inner| {
        let key = prop::sample::select(keys()).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            3 => prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Reads one body as that of every operation, and with the other readers of bodies.
fn read_all(body: &[u8]) -> Vec<Result<(), Refusal>> {
    let names = ["p", "r"].map(Cow::Borrowed);
    let owner = [(Cow::Borrowed("owner"), Cow::Borrowed("o"))];
    let with_body = OPERATIONS.iter().filter(|spec| spec.body != BodySpec::Nothing);
    let requests = with_body.map(|spec| {
        let query = if spec.name == "sync_schedules" { &owner[..] } else { &[] };
        let request = (spec.decode)(RawCall { names: &names, query, body })?;
        if let Err(no) = request.within_bounds() {
            panic!("the reader of {} took what is beyond its bounds: {no}", spec.name);
        }
        Ok(())
    });
    let others = [
        push_line(body).map(drop),
        settle_item_without_lease(body).map(drop),
        ResourceLines::default().read_all(body).map(drop),
        preview(body).map(drop),
        no_body(body),
    ];
    requests.chain(others).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_pointer_leads_to_a_value_or_to_where_one_is_missing(body in body()) {
        for read in read_all(body.to_string().as_bytes()) {
            let Err(no) = read else { continue };
            is_a_good_refusal(&no);
            prop_assert!(no.code != Code::BadJson, "{no}");
            let pointer = no.pointer.clone().unwrap_or_else(|| panic!("{no} has no pointer"));
            let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            prop_assert!(body.pointer(parent).is_some(), "{no} in {body}");
            let there = body.pointer(&pointer).is_some();
            prop_assert!(there || no.code == Code::InvalidField, "{no} in {body}");
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for read in read_all(&bytes) {
            if let Err(no) = read {
                is_a_good_refusal(&no);
            }
        }
    }

    #[test]
    fn any_short_need_is_answered(
        text in "(limit|pool|\\{)?:?[a-z*:#]{0,6}(,(weight|cost|id|prefer|count)?=?[0-9a]{0,3}){0,3}",
    ) {
        if let Err(no) = one_need(&text) {
            is_a_good_refusal(&no);
        }
    }
}
