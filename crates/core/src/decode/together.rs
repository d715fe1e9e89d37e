//! Batches of NDJSON lines: finds how many lines one push may store.

use std::collections::HashSet;

use crate::bounds::AFTER_MAX;
use crate::flow::Parent;
use crate::job::NewJob;
use crate::names::{JobId, JobRef, UniqueKey};

/// How many of these jobs one push may store with the same effect as a push for each, in their order; at least one if
/// there are any.
///
/// In a push of several jobs, the second job with a unique key is always a duplicate of the first, an id may name any
/// item of the push, `key:KEY` is the job that held the key before the call, and a flow includes members that come
/// later. A line is a push of its own: its parents are in earlier lines or stored, and only stored jobs hold a key.
pub fn stored_together<'j>(jobs: impl IntoIterator<Item = &'j NewJob>) -> usize {
    let mut before = LinesBefore::default();
    jobs.into_iter().take_while(|job| before.lets(job)).count()
}

/// Names and entries of the earlier lines of a batch.
#[derive(Default)]
struct LinesBefore<'j> {
    any: bool,
    /// Unique keys, and the ids of their jobs: such a job may turn out to be another one.
    keys: HashSet<&'j UniqueKey>,
    keyed: HashSet<&'j JobId>,
    /// Jobs that one of the lines waits for.
    awaited: HashSet<&'j JobId>,
    /// One of the lines waits for a flow.
    awaits_flow: bool,
    /// Number of their entries of `after`.
    entries: usize,
}

impl<'j> LinesBefore<'j> {
    /// Adds this line to the batch, unless it must be pushed apart.
    fn lets(&mut self, job: &'j NewJob) -> bool {
        if std::mem::replace(&mut self.any, true) && self.would_change(job) {
            return false;
        }
        if let Some(unique) = &job.unique {
            self.keys.insert(&unique.key);
            self.keyed.extend(&job.id);
        }
        for entry in &job.after {
            match &entry.parent {
                Parent::Job(JobRef::Id(id)) => {
                    self.awaited.insert(id);
                }
                Parent::Flow(_) => self.awaits_flow = true,
                Parent::Job(JobRef::Key(_)) | Parent::Item(_) => {}
            }
        }
        self.entries += job.after.len();
        true
    }

    /// True if one push would have another effect than a push for each line.
    fn would_change(&self, job: &NewJob) -> bool {
        let may_be_of_a_flow = job.flow.is_some() || !job.after.is_empty();
        job.unique.as_ref().is_some_and(|unique| self.keys.contains(&unique.key))
            || job.id.as_ref().is_some_and(|id| self.awaited.contains(id))
            || (self.awaits_flow && may_be_of_a_flow)
            || self.entries + job.after.len() > AFTER_MAX
            || job.after.iter().any(|entry| match &entry.parent {
                Parent::Job(JobRef::Key(key)) => self.keys.contains(key),
                Parent::Job(JobRef::Id(id)) => self.keyed.contains(id),
                Parent::Flow(_) | Parent::Item(_) => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::push_line;

    #[test]
    fn lines_with_another_meaning_in_one_call_are_pushed_apart() {
        for (lines, together) in [
            (&[][..], 0),
            (&[r#"{"id": "a"}"#, r#"{"id": "a"}"#, r#"{"after": ["a"]}"#], 3),
            (&[r#"{"id": "a", "after": ["a"]}"#], 1),
            (&[r#"{"after": ["a"]}"#, r#"{}"#, r#"{"id": "a"}"#], 2),
            (&[r#"{"unique": {"key": "k"}}"#, r#"{"unique": {"key": "k"}}"#], 1),
            (&[r#"{"unique": {"key": "k"}}"#, r#"{"after": ["key:k"]}"#], 1),
            (&[r#"{"unique": {"key": "k"}}"#, r#"{"after": ["key:l"]}"#], 2),
            (&[r#"{"id": "a", "unique": {"key": "k"}}"#, r#"{"after": ["b", "a"]}"#], 1),
            (&[r#"{"flow": "f"}"#, r#"{"after": [{"flow": "f"}]}"#, r#"{}"#], 3),
            (&[r#"{"after": [{"flow": "f"}]}"#, r#"{"flow": "f"}"#], 1),
            (&[r#"{"after": [{"flow": "f"}]}"#, r#"{"after": ["a"]}"#], 1),
        ] {
            let jobs: Vec<NewJob> =
                lines.iter().map(|line| push_line(line.as_bytes()).unwrap()).collect();
            assert_eq!(stored_together(&jobs), together, "{lines:?}");
        }
    }

    #[test]
    fn lines_together_have_no_more_parents_than_a_call_may_name() {
        let parents: Vec<String> = (0..AFTER_MAX / 2).map(|n| format!("\"p{n}\"")).collect();
        let line = format!(r#"{{"after": [{}]}}"#, parents.join(","));
        let job = push_line(line.as_bytes()).unwrap();
        assert_eq!(stored_together(&[job.clone(), job.clone(), job]), 2);
    }
}
