//! `tenure schedule sync`: makes a file of schedules the whole set of an owner.
//!
//! A set that cannot be read whole is not sent at all. Payloads may be secret: messages name lines
//! and fields, never values.

use tenure::Client;
use tenure_core::decode::{LineRead, ScheduleLines};
use tenure_core::json::Node;
use tenure_core::names::ScheduleId;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Meant, SyncSchedules};
use tenure_core::schedule::{ScheduleSettings, SyncedSchedules};

use crate::args::schedules::ScheduleSyncArgs;
use crate::cmd::job::json;
use crate::cmd::set_file::{self, CsvRow, LineBreaks, SetFile, SetItems, object};
use crate::exit::Failure;
use crate::output::Output;

/// Columns of CSV that are not part of the payload.
const OWN_COLUMNS: [&str; 5] = ["id", "cron", "every", "zone", "queue"];

/// A schedule of the set.
type SetItem = (ScheduleId, ScheduleSettings);

/// Makes the file the whole set of the owner.
pub async fn run(client: &Client, out: Output, args: ScheduleSyncArgs) -> Result<(), Failure> {
    let mut items = Schedules(ScheduleLines::of(args.owner.clone()));
    let bytes = set_file::bytes(&args.file)?;
    let breaks = LineBreaks::said(args.multiline);
    let how = SetFile { file: &args.file, format: args.format, breaks };
    let schedules = set_file::read(&bytes, how, &mut items)?;
    let ids: Vec<ScheduleId> = schedules.iter().map(|(id, _)| id.clone()).collect();
    let meant = if args.force { Meant::Yes } else { Meant::Ask };
    let request = SyncSchedules { owner: args.owner, schedules, meant, version: args.version };
    match client.sync_schedules(request).await {
        Ok(synced) => out.answer(&synced, people),
        Err(error) => Err(set_file::meant_by_option(named(error.into(), &ids))),
    }
}

/// A refusal of one schedule names it: the caller knows its place in a file, not in the request.
fn named(mut failure: Failure, ids: &[ScheduleId]) -> Failure {
    let Some(no) = &failure.refusal else { return failure };
    let at = no.index.or_else(|| no.line.and_then(|line| line.checked_sub(1)));
    if let Some(id) = at.and_then(|at| ids.get(at)) {
        let subject = format!("schedule {:?}", id.as_str());
        failure.sentence = Some(if no.detail.contains(&subject) {
            no.detail.clone()
        } else {
            format!("{subject}: {}", no.detail)
        });
    }
    failure
}

fn people(synced: &SyncedSchedules) -> String {
    let SyncedSchedules { added, updated, unchanged, deleted } = synced;
    format!("{added} added, {updated} updated, {unchanged} unchanged, {deleted} deleted\n")
}

/// Schedules as the API takes them.
struct Schedules(ScheduleLines);

impl Schedules {
    fn one(&mut self, text: &str) -> Result<SetItem, Refusal> {
        // The reader of the file names the line, so that this number does not matter.
        self.0.read((1, LineRead::Whole(text.as_bytes())))
    }
}

impl SetItems for Schedules {
    type Item = SetItem;

    fn object(&mut self, node: Node<'_>) -> Result<SetItem, Refusal> {
        self.one(node.text())
    }

    fn check_header(&self, names: &[&str]) -> Result<(), Failure> {
        for needed in [&["id"][..], &["cron", "every"]] {
            if !names.iter().any(|name| needed.contains(name)) {
                let sentence = format!("the header has no column '{}'", needed.join("' or '"));
                return Err(Failure::usage(sentence)
                    .hint("begin the file with a header, such as id,every,queue,url"));
            }
        }
        Ok(())
    }

    /// The columns of [`OWN_COLUMNS`] have their meaning, and say nothing where they are empty; all others are the
    /// payload.
    fn row(&mut self, names: &[&str], row: &CsvRow<'_>) -> Result<SetItem, Refusal> {
        let (mut fields, mut job, mut payload) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in names.iter().zip(&row.cells) {
            let list = match *name {
                "queue" => &mut job,
                name if OWN_COLUMNS.contains(&name) => &mut fields,
                _ => {
                    payload.push((*name, json(&value)));
                    continue;
                }
            };
            if !value.trim().is_empty() {
                list.push((*name, json(&value.trim())));
            }
        }
        job.push(("payload", member_text(&payload)));
        fields.push(("job", member_text(&job)));
        self.one(&member_text(&fields))
    }
}

fn member_text(members: &[(&str, String)]) -> String {
    object(members.iter().map(|(name, value)| (*name, value.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tenure_core::names::Owner;

    fn read(text: &str, file: &str) -> Result<Vec<SetItem>, Failure> {
        let mut items = Schedules(ScheduleLines::of(Owner::parse("sources").unwrap()));
        let file = Path::new(file);
        let how = SetFile { file, format: None, breaks: LineBreaks::Refused };
        set_file::read(text.as_bytes(), how, &mut items)
    }

    fn shown((id, settings): &SetItem) -> String {
        let timing = &settings.timing;
        let cron = timing.cron.clone().or(timing.every.map(|every| every.to_string()));
        let payload = settings.job.payload.as_ref().map(|payload| payload.text().to_owned());
        format!(
            "{id} {} {} {} {} {}",
            settings.owner.as_ref().map_or("-", Owner::as_str),
            cron.unwrap_or_default(),
            timing.zone.as_deref().unwrap_or("-"),
            settings.job.queue,
            payload.unwrap_or_default(),
        )
    }

    #[test]
    fn every_format_makes_the_same_set() {
        let a = r#"{"id":"a","cron":"0 9 * * *","zone":"Europe/Berlin","job":{"queue":"q","payload":{"u":"1"}}}"#;
        let b = r#"{"id":"b","every":"15m","owner":"sources","job":{"queue":"q","payload":{"u":"x,y"}}}"#;
        let want = [
            "a sources 0 9 * * * Europe/Berlin q {\"u\":\"1\"}",
            "b sources 15m - q {\"u\":\"x,y\"}",
        ];
        let csv = "id,cron,every,zone,queue,u\na,0 9 * * *,,Europe/Berlin,q,1\nb,,15m,,q,\"x,y\"\n";
        for (file, text) in [
            ("x.json", format!("[{a},{b}]")),
            ("x.ndjson", format!("{a}\n\n{b}\n")),
            ("-", format!("[{a},{b}]")),
            ("x.csv", csv.to_owned()),
        ] {
            let set: Vec<String> = read(&text, file).unwrap().iter().map(shown).collect();
            assert_eq!(set, want, "{file}");
        }
    }

    #[test]
    fn other_columns_of_a_row_are_strings_of_its_payload() {
        let set = read("id,every,n,empty\na,1h,007,\n", "x.csv").unwrap();
        assert_eq!(shown(&set[0]), "a sources 1h - default {\"n\":\"007\",\"empty\":\"\"}");
    }

    #[test]
    fn what_cannot_be_read_says_where_and_never_what() {
        let good = r#"{"id":"a","every":"1h","job":{"payload":"secret"}}"#;
        for (file, text, part) in [
            ("x.csv", "id,every,p\na,1h,secret\nb\n".to_owned(), "line 3: it has 1 column,"),
            ("x.csv", "every,p\n1h,secret\n".to_owned(), "no column 'id'"),
            ("x.csv", "id,p\na,secret\n".to_owned(), "no column 'cron' or 'every'"),
            ("x.csv", "id,id,every\na,a,1h\n".to_owned(), "appears twice"),
            ("x.csv", "id,every,p\na,,secret\n".to_owned(), "line 2"),
            ("x.csv", "id,every,cron,p\na,1h,@daily,secret\n".to_owned(), "line 2"),
            ("x.csv", "id,every,p\na,1h,secret\na,2h,x\n".to_owned(), "line 3"),
            ("x.ndjson", format!("{good}\n{good}\n"), "line 2"),
            ("x.ndjson", "{\"id\":\"a\"\n".to_owned(), "line 1"),
            (
                "x.json",
                format!("[{good},{{\"id\":\"b\",\"every\":\"1h\",\"pass\":\"secret\"}}]"),
                "item 1",
            ),
            (
                "x.json",
                "[{\"id\":\"a\",\"every\":\"1h\",\"owner\":\"b\",\"job\":{}}]".to_owned(),
                "item 0",
            ),
            ("x", "id,every\n".to_owned(), "is unknown"),
        ] {
            let failure = read(&text, file).unwrap_err();
            let said = format!("{} {:?}", failure.sentence.unwrap(), failure.hint);
            assert_eq!(failure.code, 2);
            assert!(said.contains(part), "{file} {text}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn a_refusal_names_the_schedule_instead_of_its_position() {
        use tenure_core::refusal::Code;
        let ids = [ScheduleId::parse("a").unwrap(), ScheduleId::parse("b").unwrap()];
        let no = Refusal::heard(Code::NeverFires, "it has no moment", "try").item(1);
        assert_eq!(named(no.into(), &ids).sentence.unwrap(), "schedule \"b\": it has no moment");
        let no = Refusal::heard(Code::NeverFires, "it has no moment", "try").on_line(1);
        assert_eq!(named(no.into(), &ids).sentence.unwrap(), "schedule \"a\": it has no moment");
        let no = Refusal::heard(Code::OtherOwner, "schedule \"b\" belongs to the owner \"o\"", "");
        let said = named(no.item(1).into(), &ids).sentence.unwrap();
        assert_eq!(said, "schedule \"b\" belongs to the owner \"o\"");
    }
}
