//! Views of a whole namespace: workers, totals, the audit.

use crate::answer::{Compared, Totals, acts};
use tenure_core::requests::{Audit, GetStats, ListWorkers, Listed, WorkerView};

acts! {
    ListWorkers => Listed<WorkerView>, |ask, at| Ok(at.space.list_workers(&ask.page, at.now));
    GetStats => Totals, |_, at| Ok(Totals(at.space.get_stats(at.now)));
    Audit => Compared, |ask, at| Ok(Compared { found: at.space.audit(at.now), deep: ask.deep });
}
