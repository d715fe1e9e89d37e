//! Merges several changes of one job in a batch, so that each row is written once with its last
//! content.

use std::sync::Arc;

use tenure_machine::rows::JobChange;

/// Merges `later` into `change`.
pub(crate) fn merge(change: &mut JobChange, later: JobChange) {
    let JobChange {
        new,
        queue,
        flow,
        patch,
        state,
        shape,
        life,
        end,
        kept,
        revived,
        error,
        progress,
        deleted,
    } = later;
    assert!(new.is_none(), "a job is new only once");
    if let Some(patch) = patch {
        match &mut change.new {
            // A row that is not written yet gets its newest content.
            Some(new) => {
                let content = &mut Arc::make_mut(new).2;
                if let Some(kind) = patch.kind {
                    content.kind = kind;
                }
                if let Some(payload) = patch.payload {
                    content.payload = payload;
                }
                if let Some(labels) = patch.labels {
                    content.labels = labels;
                }
                if let Some(traceparent) = patch.traceparent {
                    content.traceparent = traceparent;
                }
            }
            None => match &mut change.patch {
                Some(there) => {
                    there.kind = patch.kind.or(there.kind.take());
                    there.payload = patch.payload.or(there.payload.take());
                    there.labels = patch.labels.or(there.labels.take());
                    there.traceparent = patch.traceparent.or(there.traceparent.take());
                }
                None => change.patch = Some(patch),
            },
        }
    }
    // No step both ends a job and revives it, so the order of these two is that of steps.
    if revived {
        (change.end, change.kept) = (None, None);
        change.revived = change.new.is_none();
    }
    if let Some(kept) = kept {
        match &mut change.end {
            Some(end) => (end.until, end.bytes) = (kept.until, kept.bytes),
            None => change.kept = Some(kept),
        }
    }
    if end.is_some() {
        change.end = end;
        change.kept = None;
        change.revived = false;
    }
    fn newest<T>(there: &mut Option<T>, later: Option<T>) {
        if later.is_some() {
            *there = later;
        }
    }
    newest(&mut change.queue, queue);
    newest(&mut change.flow, flow);
    newest(&mut change.state, state);
    newest(&mut change.shape, shape);
    newest(&mut change.life, life);
    newest(&mut change.error, error);
    newest(&mut change.progress, progress);
    change.deleted |= deleted;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::job::{JobState, Labels};
    use tenure_core::names::{JobId, Namespace};
    use tenure_core::secret::Json;
    use tenure_core::time::Moment;
    use tenure_machine::rows::{ContentPatch, JobContent, JobEnd};

    use super::*;

    fn text(text: &str) -> Json {
        Json::from(text)
    }
    fn fresh() -> JobChange {
        let content = JobContent {
            kind: "k".to_owned(),
            payload: text("p"),
            labels: Labels::new(),
            traceparent: None,
        };
        JobChange {
            new: Some(Arc::new((Namespace::main(), JobId::parse("a").unwrap(), content))),
            state: Some(JobState::Ready),
            shape: Some(Arc::from([1u8].as_slice())),
            life: Some(vec![1]),
            ..JobChange::default()
        }
    }
    fn to(state: JobState, life: u8) -> JobChange {
        JobChange { state: Some(state), life: Some(vec![life]), ..JobChange::default() }
    }
    fn ended(life: u8) -> JobChange {
        let end = JobEnd {
            namespace: Namespace::main(),
            id: JobId::parse("a").unwrap(),
            shape: Arc::from([1u8].as_slice()),
            until: Moment::from_us(u64::from(life)),
            bytes: 1,
            result: Some(text("r")),
        };
        JobChange { end: Some(end), error: Some(None), ..to(JobState::Succeeded, life) }
    }
    fn revived(life: u8) -> JobChange {
        JobChange { revived: true, error: Some(None), ..to(JobState::Ready, life) }
    }
    fn patched(kind: Option<&str>, payload: Option<&str>) -> JobChange {
        let patch = ContentPatch {
            kind: kind.map(str::to_owned),
            payload: payload.map(text),
            ..ContentPatch::default()
        };
        JobChange { patch: Some(Box::new(patch)), ..JobChange::default() }
    }
    fn all(changes: impl IntoIterator<Item = JobChange>) -> JobChange {
        let mut changes = changes.into_iter();
        let mut sum = changes.next().unwrap();
        changes.for_each(|later| merge(&mut sum, later));
        sum
    }

    #[test]
    fn the_newest_life_is_written() {
        let sum = all([to(JobState::Running, 1), JobChange::default(), to(JobState::Ready, 2)]);
        assert_eq!(sum, to(JobState::Ready, 2));
    }

    #[test]
    fn a_new_row_is_written_with_its_newest_content() {
        let sum = all([fresh(), patched(None, Some("p2")), patched(Some("k2"), None)]);
        let content = &sum.new.as_ref().unwrap().2;
        assert_eq!((content.kind.as_str(), &content.payload), ("k2", &text("p2")));
        assert!(sum.patch.is_none());
    }

    #[test]
    fn patches_of_a_row_that_is_there_add_up() {
        let sum = all([
            to(JobState::Ready, 1),
            patched(Some("k1"), Some("p1")),
            patched(Some("k2"), None),
        ]);
        let patch = sum.patch.unwrap();
        assert_eq!((patch.kind.as_deref(), patch.payload), (Some("k2"), Some(text("p1"))));
    }

    #[test]
    fn the_last_of_ending_and_living_again_holds() {
        let sum = all([to(JobState::Running, 1), ended(2), revived(3)]);
        assert!(sum.end.is_none() && sum.revived);
        assert_eq!(sum.state, Some(JobState::Ready));
        let sum = all([revived(1), to(JobState::Running, 2), ended(3)]);
        assert!(sum.end.is_some() && !sum.revived);
        let sum = all([ended(1), revived(2), ended(3)]);
        assert_eq!(sum.end.as_ref().unwrap().until, Moment::from_us(3));
        assert!(!sum.revived);
    }

    #[test]
    fn a_new_row_that_lived_again_has_no_old_row_to_clear() {
        let sum = all([fresh(), ended(2), revived(3)]);
        assert!(sum.new.is_some() && sum.end.is_none() && !sum.revived);
    }

    #[test]
    fn a_deleted_row_stays_deleted() {
        let gone = JobChange { deleted: true, ..JobChange::default() };
        assert!(all([fresh(), ended(2), gone.clone()]).deleted);
        assert!(all([gone, JobChange::default()]).deleted);
    }

    #[test]
    fn an_error_that_was_taken_away_stays_away() {
        let with = JobChange { error: Some(Some("e".to_owned())), ..JobChange::default() };
        let without = JobChange { error: Some(None), ..JobChange::default() };
        assert_eq!(all([with.clone(), without.clone()]).error, Some(None));
        assert_eq!(all([without, with.clone()]).error, Some(Some("e".to_owned())));
        assert_eq!(all([with, JobChange::default()]).error, Some(Some("e".to_owned())));
    }
}
