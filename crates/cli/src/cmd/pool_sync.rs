//! `tenure pool sync`: makes a file of resources the whole set of a pool.
//!
//! A set that cannot be read whole is not sent at all. Its content may be secret: messages name
//! lines and fields, never values.

use serde_json::value::RawValue;
use tenure::Client;
use tenure_core::decode;
use tenure_core::json::{Kind, Node};
use tenure_core::names::PoolName;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Meant, SyncResources};
use tenure_core::secret::Json;
use tenure_core::settings::{NewResource, Synced};

use crate::cmd::job::json;
use crate::cmd::set_file::{self, CsvRow, SetFile, SetItems, object};
use crate::exit::Failure;
use crate::output::Output;

/// How the file is read.
#[derive(Clone, Copy)]
pub struct SyncHow<'a> {
    /// The file and its format.
    pub file: SetFile<'a>,
    /// The field that is the id.
    pub id: &'a str,
}

/// Makes the file the whole set of the pool.
pub async fn run(
    client: &Client,
    out: Output,
    pool: PoolName,
    how: SyncHow<'_>,
    force: bool,
    version: Option<u64>,
) -> Result<(), Failure> {
    let resources = read(&set_file::bytes(how.file.file)?, how)?;
    let meant = if force { Meant::Yes } else { Meant::Ask };
    let request = SyncResources { pool, resources, meant, version };
    let synced =
        client.run(request).await.map_err(|error| set_file::meant_by_option(error.into()))?;
    out.answer(&synced, people)
}

fn people(synced: &Synced) -> String {
    let Synced { added, updated, unchanged, retired, retiring } = synced;
    format!(
        "{added} added, {updated} updated, {unchanged} unchanged, {retired} retired, \
         {retiring} retiring\n"
    )
}

/// All resources of a file.
fn read(bytes: &[u8], how: SyncHow<'_>) -> Result<Vec<NewResource>, Failure> {
    set_file::read(bytes, how.file, &mut Resources { id: how.id })
}

/// Resources, whose id is the field of this name.
struct Resources<'a> {
    id: &'a str,
}

impl SetItems for Resources<'_> {
    type Item = NewResource;

    fn object(&mut self, node: Node<'_>) -> Result<NewResource, Refusal> {
        resource(node, self.id)
    }
    fn check_header(&self, names: &[&str]) -> Result<(), Failure> {
        if names.contains(&self.id) {
            return Ok(());
        }
        Err(Failure::usage(format!("the header has no column '{}'", self.id))
            .hint("name the column of the ids with --id, and begin the file with a header"))
    }
    /// The columns of the id, `tags` and `slots` have their meaning, all others are data.
    fn row(&mut self, names: &[&str], row: &CsvRow<'_>) -> Result<NewResource, Refusal> {
        let text = row_text(names, row, self.id);
        decode::resource_line(text.as_bytes()).map_err(|no| id_is(no, self.id))
    }
}

/// One resource. Without `data` the object is its own data, less what is the resource's own: tags
/// and slots.
fn resource(node: Node<'_>, id: &str) -> Result<NewResource, Refusal> {
    if node.kind() != Kind::Object {
        return decode::resource_line(node.text().as_bytes());
    }
    let own = node.member("data").is_none_or(Node::is_null);
    let mut fields: Vec<(&str, String)> = Vec::new();
    if let Some(value) = node.member(id) {
        // A database's ids are often numbers; a resource's id is text.
        let text = match value.kind() {
            Kind::Number => json(&value.text()),
            _ => value.text().to_owned(),
        };
        fields.push(("id", text));
    }
    for name in ["tags", "slots"] {
        fields.extend(node.member(name).map(|value| (name, value.text().to_owned())));
    }
    let members: Vec<(String, String)> = node
        .members()
        .filter(|(key, _)| !matches!(key.as_ref(), "tags" | "slots"))
        .map(|(key, value)| (key.into_owned(), value.text().to_owned()))
        .collect();
    let data = own.then(|| object(members.iter().map(|(k, v)| (k.as_str(), v.as_str()))));
    if let Some(data) = data {
        fields.push(("data", data));
    } else {
        // Beside `data` nothing else has a meaning: what is unknown is refused, not dropped.
        fields.extend(
            members.iter().filter(|(key, _)| key != id).map(|(k, v)| (k.as_str(), v.clone())),
        );
    }
    let text = object(fields.iter().map(|(k, v)| (*k, v.as_str())));
    decode::resource_line(text.as_bytes()).map_err(|no| id_is(no, id))
}

/// A refusal of the id names the field that `--id` names.
fn id_is(mut no: Refusal, id: &str) -> Refusal {
    if id != "id" && no.pointer.as_deref() == Some("/id") {
        no.hint = format!("--id says that the field {id:?} is the id; {}", no.hint);
    }
    no
}

fn row_text(names: &[&str], row: &CsvRow<'_>, id: &str) -> String {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let mut data: Vec<(&str, String)> = Vec::new();
    for (name, value) in names.iter().zip(&row.cells) {
        if *name == id {
            fields.push(("id", json(&value)));
        }
        match *name {
            "tags" => {
                let tags = value.split(';').map(str::trim).filter(|tag| !tag.is_empty());
                fields.push(("tags", json(&tags.collect::<Vec<_>>())));
            }
            "slots" if value.trim().is_empty() => {}
            // A number as JSON; any other text is refused as it is.
            "slots" => {
                let number = Json::parse(value)
                    .filter(|_| serde_json::from_str::<&RawValue>(value.trim()).is_ok());
                fields.push(("slots", number.map_or_else(|| json(&value), |n| n.text().into())));
            }
            "id" if id == "id" => {}
            name => data.push((name, json(&value))),
        }
    }
    fields.push(("data", object(data.iter().map(|(k, v)| (*k, v.as_str())))));
    object(fields.iter().map(|(k, v)| (*k, v.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::set_file::LineBreaks;
    use std::path::Path;

    fn how<'a>(file: &'a str, id: &'a str) -> SyncHow<'a> {
        let file = SetFile { file: Path::new(file), format: None, breaks: LineBreaks::Refused };
        SyncHow { file, id }
    }

    fn shown(resources: &[NewResource]) -> Vec<String> {
        let tags =
            |r: &NewResource| r.tags.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
        let one = |r: &NewResource| format!("{} {} {} {}", r.id, r.data.text(), tags(r), r.slots);
        resources.iter().map(one).collect()
    }

    #[test]
    fn every_format_makes_the_same_set() {
        let whole = [
            ("x.json", r#"[{"id":"a","data":{"u":"1"},"tags":["cn","de"],"slots":2},{"id":"b"}]"#),
            (
                "x.ndjson",
                "{\"id\":\"a\",\"data\":{\"u\":\"1\"},\"tags\":[\"cn\",\"de\"],\"slots\":2}\n\n{\"id\":\"b\"}\n",
            ),
            (
                "-",
                " [{\"id\":\"a\",\"data\":{\"u\":\"1\"},\"tags\":[\"cn\",\"de\"],\"slots\":2},{\"id\":\"b\"}]",
            ),
        ];
        for (file, text) in whole {
            let read = read(text.as_bytes(), how(file, "id")).unwrap();
            assert_eq!(shown(&read), ["a {\"u\":\"1\"} cn+de 2", "b {\"id\":\"b\"}  1"], "{file}");
        }
        let text = "id,u,tags,slots\na,1,cn; de,2\nb,\"x,y\",,\n";
        let read = read(text.as_bytes(), how("x.CSV", "id")).unwrap();
        assert_eq!(shown(&read), ["a {\"u\":\"1\"} cn+de 2", "b {\"u\":\"x,y\"}  1"]);
    }

    #[test]
    fn a_line_without_data_is_its_own_data_under_any_id_field() {
        let line = r#"{"phone":139,"pass":"x","tags":["cn"]}"#;
        let read = |text: &str, file| read(text.as_bytes(), how(file, "phone"));
        let want = ["139 {\"phone\":139,\"pass\":\"x\"} cn 1"];
        assert_eq!(shown(&read(line, "x.jsonl").unwrap()), want);
        let both = r#"{"phone":"139","data":{"pass":"x"}}"#;
        assert_eq!(shown(&read(both, "-").unwrap()), ["139 {\"pass\":\"x\"}  1"]);
        let csv = "phone,pass\n139,x\n";
        let want = ["139 {\"phone\":\"139\",\"pass\":\"x\"}  1"];
        assert_eq!(shown(&read(csv, "x.csv").unwrap()), want);
    }

    #[test]
    fn what_cannot_be_read_says_where_and_never_what() {
        for (file, text, part) in [
            ("x.csv", "id,pass\na,secret\nb\n", "line 3: it has 1 column,"),
            ("x.csv", "name,pass\na,secret\n", "no column 'id'"),
            ("x.csv", "id,id\na,secret\n", "appears twice"),
            ("x.csv", "id,slots,p\na,0,secret\n", "line 2"),
            ("x.csv", "id,slots,p\na,many,secret\n", "line 2"),
            ("x.ndjson", "{\"id\":\"a\"}\n{\"data\":\"secret\"}\n", "line 2"),
            ("x.ndjson", "{\"id\":\"a\"\n", "line 1"),
            ("x.json", "[{\"id\":\"a\",\"data\":1,\"pass\":\"secret\"}]", "item 0"),
            ("x.json", "{}", "line 1"),
            ("x.json", "\"secret\"", "must be a JSON array"),
            ("x", "id,pass\n", "is unknown"),
        ] {
            let failure = read(text.as_bytes(), how(file, "id")).unwrap_err();
            let said = format!("{} {:?}", failure.sentence.unwrap(), failure.hint);
            assert_eq!(failure.code, 2);
            assert!(said.contains(part), "{file} {text}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn an_empty_set_is_read_and_is_the_stores_to_refuse() {
        for (file, text) in [("x.json", "[]"), ("x.ndjson", ""), ("x.csv", "id,u\n")] {
            assert_eq!(read(text.as_bytes(), how(file, "id")).unwrap(), [], "{file}");
        }
    }
}
