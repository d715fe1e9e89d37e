//! A list of jobs that skips empty pages.

use tenure_core::job::JobView;
use tenure_core::requests::{ListJobs, Listed};

use crate::visit::{Unanswered, Visit};

/// A search that finds nothing in the first ten thousand jobs goes on up to this many times that number.
pub(super) const LOOKS_MAX: usize = 5;

/// The first page that is not empty, within the next calls: a call looks at ten thousand jobs, and a queue may have
/// been quiet for longer.
pub(super) async fn first_found(
    visit: &Visit,
    mut request: ListJobs,
) -> Result<Listed<JobView>, Unanswered> {
    for _ in 1..LOOKS_MAX {
        let list = visit.ask(request.clone()).await?;
        if !list.items.is_empty() || list.next.is_none() {
            return Ok(list);
        }
        request.page.cursor = list.next;
    }
    visit.ask(request).await
}
