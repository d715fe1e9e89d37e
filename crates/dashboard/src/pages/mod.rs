//! The table of pages. Each file has the rows of its subject: a path, its page, and its form's action. A row without a
//! form is a page to look at; one that has both asks first and then acts.

mod bulk;
mod chosen;
mod coming;
mod edit;
mod events;
mod failures;
mod first_found;
mod flow_graph;
mod flows;
mod job;
mod jobs;
mod last_changes;
mod leases;
mod limit;
mod limits;
mod overview;
mod pictures;
mod pool;
mod pools;
mod queue;
mod queues;
mod rate_fields;
mod resource;
mod schedule;
mod schedules;
mod system;
mod trail;
mod workers;

use std::future::Future;
use std::pin::Pin;

use tenure_core::access::Scope;
use tenure_core::requests::Spec;

use crate::visit::{Drawn, Unanswered, Visit};

/// The place of a page in the navigation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Overview,
    Queues,
    Jobs,
    Failures,
    Flows,
    Schedules,
    Limits,
    Pools,
    Leases,
    Workers,
    Events,
    Trail,
    System,
}

/// A function that answers a request.
type Draw =
    for<'v> fn(&'v Visit) -> Pin<Box<dyn Future<Output = Result<Drawn, Unanswered>> + Send + 'v>>;

/// A path, and its page and form.
pub(crate) struct PageRow {
    pub section: Section,
    /// With `{}` for each name.
    path: &'static str,
    /// The page, if there is one to look at.
    pub shown: Option<Draw>,
    /// The action of a form that is sent there, and the operation that it calls.
    pub posted: Option<(&'static Spec, Draw)>,
}

impl PageRow {
    const fn new(section: Section, path: &'static str) -> Self {
        PageRow { section, path, shown: None, posted: None }
    }
    /// Whether its page is a question or a form before its action.
    pub(crate) fn asks_first(&self) -> bool {
        self.shown.is_some() && self.posted.is_some()
    }
    const fn shows(mut self, draw: Draw) -> Self {
        self.shown = Some(draw);
        self
    }
    const fn acts(mut self, action: (&'static Spec, Draw)) -> Self {
        self.posted = Some(action);
        self
    }
}

/// A function of a page, for the table.
macro_rules! draw {
    ($function:path) => {
        |visit| Box::pin($function(visit))
    };
}
use draw;

/// The operation of an action, and its function, for the table: `action!(CancelJob, cancel)`. A visitor without the
/// scope of the operation sees no button that leads there.
macro_rules! action {
    ($operation:ident, $function:path) => {
        (&<$operation as ::tenure_core::requests::Operation>::SPEC, $crate::pages::draw!($function))
    };
}
use action;

fn all() -> impl Iterator<Item = &'static PageRow> {
    [
        overview::ROWS,
        queues::ROWS,
        queue::ROWS,
        jobs::ROWS,
        bulk::ROWS,
        chosen::ROWS,
        job::ROWS,
        edit::ROWS,
        failures::ROWS,
        limits::ROWS,
        limit::ROWS,
        pools::ROWS,
        pool::ROWS,
        resource::ROWS,
        leases::ROWS,
        workers::ROWS,
        schedules::ROWS,
        schedule::ROWS,
        flows::ROWS,
        events::ROWS,
        system::ROWS,
        trail::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The page at a path, and the values of its names, still encoded.
pub(crate) fn find(path: &str) -> Option<(&'static PageRow, Vec<&str>)> {
    all().find_map(|row| Some((row, matches(row.path, path)?)))
}

/// The scope of the action at a path; `None`: there is no action.
pub(crate) fn scope_of(path: &str) -> Option<Scope> {
    find(path)?.0.posted.map(|(spec, _)| spec.scope)
}

fn matches<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut parts, mut names) = (path.split('/'), Vec::new());
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted {
            "{}" if !part.is_empty() => names.push(part),
            "{}" => return None,
            wanted if wanted == part => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_path_is_matched_part_by_part() {
        for (pattern, path, names) in [
            ("/", "/", Some(vec![])),
            ("/", "", None),
            ("/jobs/{}", "/jobs/a%2Fb", Some(vec!["a%2Fb"])),
            ("/jobs/{}", "/jobs/", None),
            ("/jobs/{}", "/jobs/a/b", None),
            ("/pools/{}/resources/{}/ban", "/pools/p/resources/r/ban", Some(vec!["p", "r"])),
            ("/jobs", "/job", None),
        ] {
            assert_eq!(matches(pattern, path), names, "{pattern} {path}");
        }
    }

    #[test]
    fn no_path_stands_twice_and_each_does_something() {
        let mut seen = HashSet::new();
        for row in all() {
            assert!(seen.insert(row.path), "{} stands twice", row.path);
            assert!(row.shown.is_some() || row.posted.is_some(), "{} does nothing", row.path);
        }
    }
}
