//! The parents of a job, in a file for CMD of `work`: a line of JSON each, with their results.
//!
//! Results are never logged, and nobody but the owner can read the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use tenure::{CallError, Client};
use tenure_core::bounds::LIST_MAX;
use tenure_core::flow::{FlowCounts, ParentJob, ParentState, ParentView};
use tenure_core::names::{FlowName, JobId, JobRef};
use tenure_core::requests::Page;
use tenure_core::secret::Json;

use crate::child::environment::private;

/// The file has the first of a job's parents, and no more than these.
const PARENTS_MAX: usize = 1_000;

/// Why there is no file.
#[derive(Debug)]
pub enum NoFile {
    /// The parents cannot be read now.
    Call(CallError),
    /// The disk does not write.
    Disk(io::Error),
}

impl From<CallError> for NoFile {
    fn from(error: CallError) -> Self {
        NoFile::Call(error)
    }
}
impl From<io::Error> for NoFile {
    fn from(error: io::Error) -> Self {
        NoFile::Disk(error)
    }
}

/// A line of the file.
#[derive(Serialize)]
#[serde(untagged)]
enum ParentLine<'a> {
    Job { id: &'a JobId, state: ParentState, result: Option<&'a Json>, error: Option<&'a str> },
    Flow { flow: &'a FlowName, counts: FlowCounts },
}

impl<'a> From<&'a ParentView> for ParentLine<'a> {
    fn from(parent: &'a ParentView) -> Self {
        match parent {
            ParentView::Job(ParentJob { id, state, error, result, .. }) => {
                let (result, error) = (result.as_ref(), error.as_deref());
                ParentLine::Job { id, state: *state, result, error }
            }
            ParentView::Flow { flow, counts } => ParentLine::Flow { flow, counts: *counts },
        }
    }
}

/// Makes the file.
///
/// # Errors
/// [`NoFile`].
pub async fn write(client: &Client, job: &JobId, path: &Path) -> Result<(), NoFile> {
    let mut file = BufWriter::new(private(path)?);
    let (mut left, mut cursor) = (PARENTS_MAX, None);
    // A page ends early where its results are large, so that only one of them is in memory.
    while left > 0 {
        let page = Page { max: left.min(LIST_MAX), cursor: cursor.take() };
        let listed = client.list_parents(JobRef::Id(job.clone()), true, page).await?;
        left = left.saturating_sub(listed.items.len());
        lines(&mut file, &listed.items)?;
        match listed.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    file.flush()?;
    Ok(())
}

fn lines(file: &mut BufWriter<File>, parents: &[ParentView]) -> io::Result<()> {
    for parent in parents {
        serde_json::to_writer(&mut *file, &ParentLine::from(parent))?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    use tenure_core::names::Namespace;
    use tenure_core::requests::{ListParents, Listed, Reply, Request};
    use tenure_testkit::fake::{Fake, Says, unavailable};

    /// Answers pages of 400 parents, without an end.
    fn many(call: &Request, before: usize) -> Says {
        let Request::ListParents(ListParents { full: true, page, .. }) = call else {
            panic!("only parents with their results are asked for: {call:?}")
        };
        assert_eq!(page.cursor, (before > 0).then(|| format!("after {before}")));
        let items = (0..page.max.min(400)).map(|n| match (before, n) {
            (0, 0) => r#"{"flow":"f","counts":{"succeeded":2}}"#.to_owned(),
            (0, 1) => r#"{"id":"gone","state":"gone","error":null,"finished_at":null}"#.to_owned(),
            _ => format!(
                r#"{{"id":"p{n}","state":"succeeded","error":null,"finished_at":null,"result":{{"n": 1.50}}}}"#
            ),
        });
        let items = items.map(|text| serde_json::from_str(&text).unwrap()).collect();
        let next = Some(format!("after {}", before + 1));
        Says::Now(Ok(Reply::ListParents(Listed { items, next, partial: false })))
    }

    #[tokio::test]
    async fn the_first_thousand_parents_are_written_a_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parents");
        let client = Client::new(Fake::new(many), Namespace::main());
        write(&client, &JobId::parse("j").unwrap(), &path).await.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), PARENTS_MAX);
        let flow =
            r#"{"flow":"f","counts":{"unfinished":0,"succeeded":2,"failed":0,"cancelled":0}}"#;
        assert_eq!(lines[0], flow);
        assert_eq!(lines[1], r#"{"id":"gone","state":"gone","result":null,"error":null}"#);
        let succeeded = r#"{"id":"p2","state":"succeeded","result":{"n": 1.50},"error":null}"#;
        assert_eq!(lines[2], succeeded);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_store_that_is_away_is_told_from_a_disk_that_does_not_write() {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::new(Fake::new(|_, _| unavailable()), Namespace::main());
        let job = JobId::parse("j").unwrap();
        let away = write(&client, &job, &folder.path().join("parents")).await;
        assert!(matches!(away, Err(NoFile::Call(_))), "{away:?}");
        let disk = write(&client, &job, &folder.path().join("no/such/folder")).await;
        assert!(matches!(disk, Err(NoFile::Disk(_))), "{disk:?}");
    }
}
