//! The last changes of a trail, in memory. A page of a limit, pool, queue or schedule shows those of its own each time
//! that it is drawn, and pages are drawn again with each event: none of them reads a file.
//!
//! The lines of leases would push changes out of any part of the files that is small enough to be read for a page.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tenure_core::bounds::{TRAIL_RECENT_BYTES_MAX, TRAIL_RECENT_MAX};
use tenure_core::trail::TrailLine;

use super::search::newest_lines;

/// Changes, oldest first, at most [`TRAIL_RECENT_MAX`].
#[derive(Debug, Default)]
pub(super) struct RecentChanges(VecDeque<Arc<TrailLine>>);

impl RecentChanges {
    /// Remembers a line that was written now, if it is a change.
    pub(super) fn add(&mut self, line: &TrailLine) {
        if !line.is_change() {
            return;
        }
        if self.0.len() >= TRAIL_RECENT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Arc::new(line.clone()));
    }

    /// Adds lines of the files, newest first. Those that were written meanwhile are here already.
    pub(super) fn fill(&mut self, older: Vec<TrailLine>) {
        let first = self.0.front().map_or(u64::MAX, |line| line.seq);
        let room = TRAIL_RECENT_MAX.saturating_sub(self.0.len());
        let older = older.into_iter().filter(|line| line.seq < first).take(room);
        older.for_each(|line| self.0.push_front(Arc::new(line)));
    }

    /// Those of a target in a namespace, newest first.
    pub(super) fn of(&self, namespace: &str, target: &str, most: usize) -> Vec<Arc<TrailLine>> {
        let is_meant = |line: &&Arc<TrailLine>| {
            line.namespace.as_deref() == Some(namespace) && line.is_about(target)
        };
        self.0.iter().rev().filter(is_meant).take(most).cloned().collect()
    }
}

/// The newest changes in the files of a folder, newest first. At most [`TRAIL_RECENT_BYTES_MAX`] are read.
pub(super) fn changes_in(folder: &Path) -> io::Result<Vec<TrailLine>> {
    let mut found = Vec::new();
    newest_lines(folder, TRAIL_RECENT_BYTES_MAX, |line| {
        if line.is_change() {
            found.push(line);
        }
        found.len() < TRAIL_RECENT_MAX
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(seq: u64, target: &str) -> TrailLine {
        let line = TrailLine::of("put_limit").about([target.to_owned()]);
        TrailLine { seq, status: Some(200), namespace: Some("default".to_owned()), ..line }
    }

    fn seqs(changes: &RecentChanges, target: &str, most: usize) -> Vec<u64> {
        changes.of("default", target, most).iter().map(|line| line.seq).collect()
    }

    #[test]
    fn the_newest_changes_of_a_target_come_first() {
        let mut changes = RecentChanges::default();
        for seq in 0..8 {
            changes.add(&change(seq, if seq % 2 == 0 { "limit:a" } else { "limit:b" }));
        }
        changes.add(&TrailLine { status: Some(403), ..change(8, "limit:a") });
        assert_eq!(seqs(&changes, "limit:a", 3), [6, 4, 2]);
        assert_eq!(seqs(&changes, "limit:b", 9), [7, 5, 3, 1]);
        assert!(changes.of("web", "limit:a", 9).is_empty());
    }

    #[test]
    fn lines_of_the_files_stand_before_those_of_this_process() {
        let mut changes = RecentChanges::default();
        changes.add(&change(7, "limit:a"));
        // Line 7 was in the file when it was read.
        changes.fill(vec![change(7, "limit:a"), change(5, "limit:a"), change(2, "limit:a")]);
        assert_eq!(seqs(&changes, "limit:a", 9), [7, 5, 2]);
    }

    #[test]
    fn the_number_of_changes_is_bounded() {
        let mut changes = RecentChanges::default();
        let most = TRAIL_RECENT_MAX as u64;
        (1_000..1_000 + most / 2).for_each(|seq| changes.add(&change(seq, "limit:a")));
        changes.fill((0..1_000).rev().map(|seq| change(seq, "limit:a")).collect());
        assert_eq!(changes.0.len(), TRAIL_RECENT_MAX);
        assert_eq!(seqs(&changes, "limit:a", 1), [1_000 + most / 2 - 1]);
        (5_000..5_000 + 2 * most).for_each(|seq| changes.add(&change(seq, "limit:b")));
        assert_eq!(changes.0.len(), TRAIL_RECENT_MAX);
        assert!(seqs(&changes, "limit:a", 9).is_empty());
    }
}
