//! The log of requests: a line for each at debug, and warnings about callers that an operator should know.
//!
//! A line shows method, path, status, time and sizes, and never a query, a header, a body or a token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Response;
use hyper::body::Body;
use hyper::http::request::Parts;
use tenure_core::refusal::Code;
use tenure_core::requests::Reply;
use tenure_engine_api::Seldom;
use tokio::time::{Instant, sleep};

use crate::gate;
use crate::out::Out;
use crate::routes::{self, Found};

/// Between two lines about one address.
const APART: Duration = Duration::from_secs(60);
/// Addresses with lines of their own at one time; all others share one.
const ADDRESSES_MAX: usize = 256;

/// The start of a request that will have a line.
pub(crate) fn begin() -> Option<Instant> {
    tracing::enabled!(tracing::Level::DEBUG).then(Instant::now)
}

/// Writes the line of a request whose answer is made and perhaps not yet written. `test_clock`: the server has the
/// routes of a test clock.
pub(crate) fn tell(
    head: &Parts,
    peer: Option<IpAddr>,
    began: Instant,
    response: &Response<Out>,
    test_clock: bool,
) {
    // A path without a route may be anything, also a secret in a wrong place.
    let found = match routes::find(&head.method, head.uri.path(), test_clock) {
        Found::Route(route, _) => Some((route.path, head.uri.path())),
        Found::Methods(_) | Found::Nothing => None,
    };
    let (route, path) = found.unzip();
    let length = head.headers.get(hyper::header::CONTENT_LENGTH);
    let bytes_in: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    tracing::debug!(
        method = head.method.as_str(),
        route,
        path,
        namespace = gate::namespace(&head.headers).ok().flatten(),
        status = response.status().as_u16(),
        took_us = began.elapsed().as_micros() as u64,
        bytes_in,
        bytes_out = response.body().size_hint().exact(),
        peer = peer.map(tracing::field::display),
        "request"
    );
}

/// Addresses whose callers recently showed no token or a wrong one, and how often since their last line.
#[derive(Debug, Default)]
pub(crate) struct RefusedCallers(Mutex<HashMap<Option<IpAddr>, u64>>);

impl RefusedCallers {
    /// Counts a refused caller: a line at once, and then one a minute as long as it goes on.
    pub(crate) fn refused(self: &Arc<Self>, peer: Option<IpAddr>, code: Code) {
        if code != Code::Unauthorized {
            return;
        }
        let mut refused = self.lock();
        // An attacker may have any number of addresses.
        let has_room = refused.len() < ADDRESSES_MAX || refused.contains_key(&peer);
        let peer = peer.filter(|_| has_room);
        if let Some(untold) = refused.get_mut(&peer) {
            *untold += 1;
            return;
        }
        refused.insert(peer, 0);
        drop(refused);
        warn(peer, 1);
        let callers = self.clone();
        tokio::spawn(async move {
            loop {
                sleep(APART).await;
                let mut refused = callers.lock();
                match refused.get_mut(&peer).map(std::mem::take) {
                    Some(times) if times > 0 => warn(peer, times),
                    _ => {
                        refused.remove(&peer);
                        return;
                    }
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn(peer: Option<IpAddr>, times: u64) {
    let peer = peer.map_or("other addresses".to_owned(), |peer| peer.to_string());
    tracing::warn!(peer, times, "calls were refused: they showed no token or a wrong one");
}

/// Holders that came back to leases that were over.
#[derive(Debug, Default)]
pub(crate) struct LateHolders(Mutex<Seldom>);

impl LateHolders {
    /// Counts the late holders in a reply.
    pub(crate) fn heard(&self, reply: &Reply) {
        let late = match reply {
            Reply::Extend(extended) => extended.too_late().count(),
            Reply::Settle(settled) => {
                let lost = |item: &&_| lease_lost(item);
                settled.settled.iter().filter(lost).count()
            }
            _ => 0,
        };
        if late == 0 {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.happened(late as u64);
        if let Some(times) = lines.due(std::time::Instant::now()) {
            tracing::warn!(
                times,
                "heartbeats or outcomes came for leases that were over: their holders were too late"
            );
        }
    }
}

fn lease_lost(item: &tenure_core::lease::SettledLease) -> bool {
    item.code == Some(Code::LeaseLost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn addresses_are_told_once_a_minute_and_there_are_never_many() {
        let callers = Arc::<RefusedCallers>::default();
        let address = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for n in 0..10_000 {
            callers.refused(address(n), Code::Unauthorized);
            callers.refused(address(n), Code::Unauthorized);
            callers.refused(address(n), Code::JobNotFound);
        }
        // One guard a statement: two of them at once would deadlock.
        let own = callers.lock().len();
        let others = callers.lock().get(&None).copied();
        assert_eq!(
            (own, others),
            (ADDRESSES_MAX + 1, Some(2 * (10_000 - ADDRESSES_MAX as u64) - 1))
        );
        assert_eq!(callers.lock()[&address(0)], 1, "the first has a line, the second waits");
        sleep(APART * 3).await;
        assert!(callers.lock().is_empty(), "all is told");
    }
}
