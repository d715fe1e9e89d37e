//! Requests about flows, and about the jobs that wait for each other.

use super::Page;
use crate::bounded::unbounded;
use crate::names::{FlowName, JobRef};
use crate::time::Span;

/// Lists the jobs and flows for which a job waits or waited, in the order of its `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListParents {
    pub job: JobRef,
    /// Shows their results too.
    pub full: bool,
    /// Its cursor is a place in `after`.
    pub page: Page,
}

/// Lists the jobs that wait or waited for a job, in the order of their pushes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListChildren {
    pub job: JobRef,
    /// Its cursor is a row number.
    pub page: Page,
}

/// Lists flows in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListFlows {
    pub page: Page,
}

/// Shows a flow; waits until it is finished if it is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetFlow {
    pub flow: FlowName,
    /// How long to wait for its end, at most a minute. After that, the flow is shown as it is.
    pub wait: Span,
}

/// Cancels all unfinished jobs of a flow, and the jobs that these push into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelFlow {
    pub flow: FlowName,
}

unbounded! { CancelFlow }
