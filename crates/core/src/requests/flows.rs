//! Requests about flows, and about the jobs that wait for each other.

use super::Page;
use crate::bounded::queries::wait;
use crate::bounded::{Bounded, bounded_pages, unbounded};
use crate::names::{FlowName, JobRef};
use crate::refusal::Refusal;
use crate::time::Span;

/// Shows the jobs and flows for which a job waits or waited, in the order of its `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListParents {
    /// Which job.
    pub job: JobRef,
    /// With their results.
    pub full: bool,
    /// The page; its cursor is a place in `after`.
    pub page: Page,
}

/// Shows the jobs that wait or waited for a job, as they were pushed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListChildren {
    /// Which job.
    pub job: JobRef,
    /// The page; its cursor is a row number.
    pub page: Page,
}

/// Lists flows by their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListFlows {
    /// The page.
    pub page: Page,
}

/// Shows a flow; waits until it is finished if it is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetFlow {
    /// Which flow.
    pub flow: FlowName,
    /// How long to wait for its end, at most a minute. When it is over the flow is shown as it is.
    pub wait: Span,
}

/// Calls off all unfinished jobs of a flow, and what these push into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelFlow {
    /// Which flow.
    pub flow: FlowName,
}

impl Bounded for GetFlow {
    fn within_bounds(&self) -> Result<(), Refusal> {
        wait(self.wait)
    }
}

unbounded! { CancelFlow }

bounded_pages! { ListParents ListChildren ListFlows }
