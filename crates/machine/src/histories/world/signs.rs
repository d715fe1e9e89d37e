//! The last sign of life of each holder, by a clock that never leaps: a holder works by that clock, and stops at 0.8 of
//! its ttl. No lease may be taken back earlier.

use std::collections::BTreeMap;

use crate::parse_lease_id;
use tenure_core::bounds::LEAP_US;
use tenure_core::lease::Fence;
use tenure_core::time::Span;

/// Signs of life, by lease.
#[derive(Default)]
pub(super) struct Signs {
    /// Starts at zero, and moves with time.
    now_us: u64,
    /// For each live lease: the last sign of life, and its ttl.
    last: BTreeMap<Fence, (u64, Span)>,
}

impl Signs {
    pub(super) fn go_on(&mut self, span: Span) {
        self.now_us += span.us();
    }

    pub(super) fn granted(&mut self, fence: Fence, ttl: Span) {
        self.last.insert(fence, (self.now_us, ttl));
    }

    /// The holder sends a heartbeat.
    pub(super) fn of_life(&mut self, lease: &str) {
        let sign = parse_lease_id(lease).and_then(|(fence, _)| self.last.get_mut(&fence));
        if let Some((at, _)) = sign {
            *at = self.now_us;
        }
    }

    /// The lease may be taken back at any time: by hand, or because its holder ended with the process that had the
    /// folder open.
    pub(super) fn forget(&mut self, fence: Fence) {
        self.last.remove(&fence);
    }

    /// A lease ended: a reap is an error while its holder may still work.
    pub(super) fn ended(&mut self, fence: Fence, reaped: bool) -> Result<(), String> {
        let Some((at, ttl)) = self.last.remove(&fence) else { return Ok(()) };
        let quiet = self.now_us - at;
        if reaped && quiet + LEAP_US < ttl.us() {
            return Err(format!("lease {fence} with ttl {ttl} was reaped after {quiet} us"));
        }
        Ok(())
    }
}
