//! Waits: how long a request may wait until its answer exists.

use super::{GetFlow, GetResult, Lease, ReadEvents, Request, Settle};
use crate::time::Span;

impl Request {
    /// The longest wait of the request; `None` for one that never waits.
    pub fn wait_mut(&mut self) -> Option<&mut Span> {
        match self {
            Request::GetResult(GetResult { wait, .. })
            | Request::GetFlow(GetFlow { wait, .. })
            | Request::ReadEvents(ReadEvents { wait, .. })
            | Request::Lease(Lease { wait, .. }) => Some(wait),
            Request::Settle(Settle { lease, .. }) => lease.as_mut().map(|lease| &mut lease.wait),
            _ => None,
        }
    }

    /// Shortens the wait by the time that the caller has already waited, down to zero.
    pub fn waited(&mut self, already: Span) {
        if let Some(wait) = self.wait_mut() {
            *wait = Span::from_us(wait.us().saturating_sub(already.us()));
        }
    }
}
