//! Extend: keeps leases alive, and names those that are lost and those whose job should stop.

use crate::answer::{Context, acts};
use crate::rows::Archive;
use crate::rows::stored::{lease_id, parse_lease_id};
use crate::state::{LiveJobId, Space};
use tenure_core::lease::{Extended, ExtendedLease, Fence};
use tenure_core::requests::Extend;
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

impl Space {
    /// Extends live leases. An extend before the tick that reaps is honoured.
    pub(crate) fn extend(&mut self, ask: Extend, archive: &dyn Archive, now: Moment) -> Extended {
        let mut answer = Extended::default();
        for item in ask.leases {
            let live = parse_lease_id(&item.lease).and_then(|id| self.leases.named(id));
            let Some(lease) = live else {
                if self.was_settled(&item.lease, archive) {
                    answer.crossed.push(item.lease.clone());
                }
                answer.lost.push(item.lease);
                continue;
            };
            let (fence, seq) = (lease.fence, lease.seq);
            let has_new_ttl = ask.ttl.is_some_and(|ttl| ttl != lease.ttl);
            // A sign of life is later than a deafness that ended at the same time.
            let seen_at = now.max(self.deaf_at.plus(Span::from_us(1)));
            let Some(lease) = self.leases.extend(fence, ask.ttl, seen_at, now) else { continue };
            let (job, holder, expires_at) = (lease.job, lease.holder.clone(), lease.expires_at);
            if has_new_ttl {
                // A lease gets its ttl again after a restart, so the ttl is stored in a row.
                self.written_lease(fence);
            }
            self.workers.hear(holder.as_ref(), now);
            if let Some(slot) = self.report(fence, item.progress) {
                self.tell_progress(slot, now);
            }
            if job.is_some_and(|slot| self.jobs[slot].cancel_requested) {
                answer.cancel.push(lease_id(fence, seq));
            }
            answer.extended.push(ExtendedLease { lease: item.lease, expires_at });
        }
        answer
    }

    /// Stores a holder's progress: the job shows it until the next report, also in its next runs. A lease without a job
    /// cannot show it, and JSON's `null` is no report.
    pub(crate) fn report(&mut self, fence: Fence, progress: Option<Json>) -> Option<LiveJobId> {
        let progress = progress.filter(|progress| !progress.is_null())?;
        let slot = self.leases.get(fence)?.job?;
        let seq = self.jobs[slot].seq;
        self.outbox.job(seq).progress = Some(Some(progress));
        Some(slot)
    }
}

acts! {
    Extend => Extended, |ask, Context { space, now, rest, .. }| Ok(space.extend(ask, rest, now));
}
