//! Views of a whole namespace: workers, totals, the audit.

use crate::answer::{Act, Compared, Context, Totals};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Audit, GetStats, ListWorkers, Listed, WorkerView};

impl Act for ListWorkers {
    type Known = Listed<WorkerView>;
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal> {
        Ok(context.space.list_workers(&self.page, context.now))
    }
}

impl Act for GetStats {
    type Known = Totals;
    fn act(self, context: Context<'_>) -> Result<Totals, Refusal> {
        Ok(Totals(context.space.get_stats(context.now)))
    }
}

impl Act for Audit {
    type Known = Compared;
    fn act(self, context: Context<'_>) -> Result<Compared, Refusal> {
        Ok(Compared { found: context.space.audit(context.now), deep: self.deep })
    }
}
