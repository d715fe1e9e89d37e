//! Every refusal of the contract that depends only on the call: a row each.

mod changes;
mod flows;
mod gauges;
mod jobs;
mod leases;
mod needs;
mod requests;
mod settings;
mod settles;
mod shape;
mod timings;

use std::borrow::Cow;

use super::{Decode, RawCall};
use crate::refusal::{Code, Refusal};

/// The names in a path without any.
pub(super) const NONE: [&str; 0] = [];

/// Reads a request by the name in its path and its query; the body is an empty set.
pub(super) fn read<R: Decode>(name: &str, query: &[(&str, &str)]) -> Result<R, Refusal> {
    read_set(name, query, "[]")
}

/// Reads a request by the name in its path, its query and its body.
pub(super) fn read_set<R: Decode>(
    name: &str,
    query: &[(&str, &str)],
    body: &str,
) -> Result<R, Refusal> {
    let pairs = query.iter().map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(*value)));
    let query: Vec<_> = pairs.collect();
    R::decode(RawCall { names: &[Cow::Borrowed(name)], query: &query, body: body.as_bytes() })
}

/// A body, and its expected refusal: the code, the pointer, and a part of the hint.
pub(super) type Row = (String, Code, &'static str, &'static str);

pub(super) fn row(
    body: impl Into<String>,
    code: Code,
    pointer: &'static str,
    hint: &'static str,
) -> Row {
    (body.into(), code, pointer, hint)
}

/// Checks that each row gets its refusal.
pub(super) fn refused<T>(rows: Vec<Row>, read: impl Fn(&[u8]) -> Result<T, Refusal>) {
    for (body, code, pointer, hint) in rows {
        let shown: String = body.chars().take(200).collect();
        match read(body.as_bytes()) {
            Ok(_) => panic!("{shown} was taken"),
            Err(no) => {
                assert_eq!(no.code, code, "{shown}: {no}");
                assert_eq!(no.pointer.as_deref(), Some(pointer), "{shown}: {no}");
                assert!(no.hint.contains(hint), "{shown}: {no}, hint: {}", no.hint);
                is_a_good_refusal(&no);
            }
        }
    }
}

/// Checks the parts that every refusal has.
pub(super) fn is_a_good_refusal(no: &Refusal) {
    assert!(!no.hint.is_empty(), "{no} has no hint");
    assert!(!no.detail.is_empty() && !no.detail.ends_with('.'), "{no}");
    let first = no.detail.chars().next().unwrap_or('A');
    assert!(!first.is_ascii_uppercase(), "{no} begins with a capital");
    assert!(no.detail.len() < 1_000 && no.hint.len() < 1_000, "{no} repeats what was sent");
}
