//! A whole set in a file, for the commands that sync one: a JSON array, NDJSON, or CSV with a header.
//!
//! A set that cannot be read whole is not sent at all. Its values may be secret: messages name lines
//! and fields, never values.

mod rows;

use std::path::Path;

use tenure_core::decode;
use tenure_core::json::{Document, Kind, Node};
use tenure_core::refusal::{Code, Refusal};

use crate::args::settings::Format;
use crate::cmd::job::json;
pub use crate::cmd::set_file::rows::{CsvRow, LineBreaks};
use crate::exit::Failure;
use crate::{input, json_args};

/// Largest file that is read: a set is sent in one call.
const FILE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The items of a set, and how each is written.
pub trait SetItems {
    /// One of the set.
    type Item;

    /// An item of a JSON array, or a line of NDJSON.
    fn object(&mut self, node: Node<'_>) -> Result<Self::Item, Refusal>;
    /// Refuses a header of CSV without the columns that must be there. No column appears twice.
    fn check_header(&self, names: &[&str]) -> Result<(), Failure>;
    /// A row of CSV, whose cells stand below these names.
    fn row(&mut self, names: &[&str], row: &CsvRow<'_>) -> Result<Self::Item, Refusal>;
}

/// The bytes of the file, or of stdin (`-`).
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    input::read_all(file, FILE_BYTES_MAX)
}

/// Names the option of these commands in place of the API's `?force=true`.
pub fn meant_by_option(failure: Failure) -> Failure {
    match failure.refusal.as_ref().map(|no| no.code) {
        Some(Code::EmptySet | Code::RetiresMost) => {
            failure.hint("check what made the file; if the set is right, add --force")
        }
        _ => failure,
    }
}

/// A file, and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct SetFile<'a> {
    /// The file, or `-` for stdin.
    pub file: &'a Path,
    /// The format; if it is not given, the name of the file and its first byte decide.
    pub format: Option<Format>,
    /// Whether a cell of CSV may have several lines.
    pub breaks: LineBreaks,
}

/// All items of a file.
pub fn read<S: SetItems>(
    bytes: &[u8],
    how: SetFile<'_>,
    items: &mut S,
) -> Result<Vec<S::Item>, Failure> {
    match format_of(bytes, how.file, how.format)? {
        Format::Csv => table(bytes, how.breaks, items),
        Format::Ndjson => lines(bytes, items),
        Format::Json => array(bytes, items),
    }
}

/// The format: as the caller names it, otherwise by the suffix, otherwise by the first byte.
fn format_of(bytes: &[u8], file: &Path, option: Option<Format>) -> Result<Format, Failure> {
    let suffix = file.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let begins = bytes.trim_ascii_start().first();
    match (option, suffix.to_ascii_lowercase().as_str(), begins) {
        (Some(format), _, _) => Ok(format),
        (None, "csv", _) => Ok(Format::Csv),
        (None, "ndjson" | "jsonl", _) => Ok(Format::Ndjson),
        (None, "json", Some(b'{')) => Ok(Format::Ndjson),
        (None, "json", _) | (None, _, Some(b'[')) => Ok(Format::Json),
        (None, _, Some(b'{')) => Ok(Format::Ndjson),
        _ => Err(Failure::usage("the format of the set is unknown")
            .hint("add --format json, ndjson or csv")),
    }
}

fn at_line(line: u64, no: &Refusal) -> Failure {
    json_args::usage(&format!("line {line}"), no)
}

fn array<S: SetItems>(bytes: &[u8], items: &mut S) -> Result<Vec<S::Item>, Failure> {
    let document =
        Document::parse(bytes).map_err(|error| json_args::usage("the set", &error.into()))?;
    let root = document.root();
    if root.kind() != Kind::Array {
        return Err(Failure::usage(format!(
            "the set must be a JSON array, not {}",
            root.kind().noun()
        ))
        .hint("write the whole set as a JSON array, or add --format ndjson"));
    }
    root.items()
        .enumerate()
        .map(|(at, node)| {
            items.object(node).map_err(|no| json_args::usage(&format!("item {at}"), &no))
        })
        .collect()
}

fn lines<S: SetItems>(bytes: &[u8], items: &mut S) -> Result<Vec<S::Item>, Failure> {
    let mut one = |number: usize, line: decode::LineRead<'_>| {
        let read = match line {
            decode::LineRead::TooLong => Err(decode::line_too_long()),
            decode::LineRead::Whole(line) => Document::parse(line)
                .map_err(Refusal::from)
                .and_then(|document| items.object(document.root())),
        };
        read.map_err(|no| at_line(number as u64, &no))
    };
    let mut lines = decode::Lines::default();
    let mut all = Vec::new();
    let mut rest = bytes;
    while let Some((number, line)) = lines.next(&mut rest) {
        all.push(one(number, line)?);
    }
    if let Some((number, line)) = lines.finish() {
        all.push(one(number, line)?);
    }
    Ok(all)
}

/// A header, then a row per item.
fn table<S: SetItems>(
    bytes: &[u8],
    breaks: LineBreaks,
    items: &mut S,
) -> Result<Vec<S::Item>, Failure> {
    let wrong = |bad: rows::BadCsv| Failure::usage(bad.sentence).hint(bad.hint);
    let rows = rows::rows(bytes, breaks).map_err(wrong)?;
    let header = rows.first().map_or(&[][..], |row| &row.cells[..]);
    let names: Vec<&str> = header.iter().map(|name| name.trim()).collect();
    if let [one] = names[..]
        && let Some(other) = [";", "\t"].into_iter().find(|other| one.contains(other))
    {
        let other = if other == ";" { "semicolons" } else { "tabs" };
        return Err(Failure::usage(format!("the columns of the header are separated by {other}"))
            .hint("separate them with commas, in each row"));
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(Failure::usage(format!("the column '{name}' appears twice")));
        }
    }
    items.check_header(&names)?;
    let mut all = Vec::new();
    for row in rows.iter().skip(1) {
        all.push(items.row(&names, row).map_err(|no| at_line(row.line as u64, &no))?);
    }
    Ok(all)
}

/// A JSON object of members whose values are JSON already.
pub fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let text: Vec<String> = members.map(|(key, value)| format!("{}:{value}", json(&key))).collect();
    format!("{{{}}}", text.join(","))
}
