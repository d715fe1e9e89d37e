//! Cancels a lease call that still waits, without leaving a grant behind.
//!
//! Dropping the call is not enough: its answer may be on the way already, and then the lease belongs to nobody until
//! its ttl is over. The same call is sent again under its request id and without a wait: the engine answers the first
//! at once, and no grant can come after both were read. All grants of the two calls are given back.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use tenure_core::lease::{LeaseView, Leased, SettleItem};
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::time::{sleep, timeout};

use crate::asking::passes;
use crate::backoff::Backoff;
use crate::client::Client;
use crate::ids;
use crate::outcome::SettleOutcome;

/// The calls are read for this long at most. An engine that does not answer within it keeps its grants until the ttl
/// is over.
const CLOSE_MAX: Duration = Duration::from_secs(3);
/// The two calls may arrive in the wrong order; the second is repeated after this, then after twice as
/// long, and so on.
const AGAIN: Duration = Duration::from_millis(50);
/// Giving back is retried for this long; then the leases expire by themselves.
const GIVE_BACK_MAX: Duration = Duration::from_secs(5);

/// Asks for leases until it is answered or `off` completes. After `off` it returns nothing, and every grant has been
/// given back.
///
/// # Errors
/// As [`Client::lease`].
pub async fn lease_unless(
    client: &Client,
    mut lease: Lease,
    off: impl Future<Output = ()>,
) -> Result<Leased, CallError> {
    lease.request_id.get_or_insert_with(ids::request_id);
    answer_unless(client, client.lease(lease.clone()), lease, off).await
}

/// The same for `first`, which sends the lease call `lease` in its own way; it has a request id.
///
/// # Errors
/// Those of `first`.
pub async fn answer_unless(
    client: &Client,
    first: impl Future<Output = Result<Leased, CallError>>,
    lease: Lease,
    off: impl Future<Output = ()>,
) -> Result<Leased, CallError> {
    let mut first = Box::pin(first);
    tokio::select! {
        biased;
        answer = &mut first => return answer,
        () = off => {}
    }
    let mut granted = Vec::new();
    // Grants that were read before the time was over are given back too.
    let _ = timeout(CLOSE_MAX, close(client, lease, first, &mut granted)).await;
    give_back(client, granted).await;
    Ok(Leased::default())
}

/// Returns when neither of the two calls can be granted anything more.
async fn close(
    client: &Client,
    mut lease: Lease,
    mut first: impl Future<Output = Result<Leased, CallError>> + Unpin,
    granted: &mut Vec<LeaseView>,
) {
    lease.wait = Span::ZERO;
    let mut answered = false;
    let mut pause = AGAIN;
    let mut note = |answer: Result<Leased, CallError>| {
        granted.extend(answer.into_iter().flat_map(|leased| leased.leases));
    };
    loop {
        let mut again = Box::pin(client.lease(lease.clone()));
        loop {
            tokio::select! {
                answer = &mut first, if !answered => {
                    answered = true;
                    note(answer);
                }
                answer = &mut again => {
                    note(answer);
                    break;
                }
            }
        }
        if answered {
            return;
        }
        tokio::select! {
            answer = &mut first => return note(answer),
            () = sleep(pause) => pause *= 2,
        }
    }
}

/// Gives back the grants of a lease call whose answer is lost: the same request id without a wait finds them.
pub async fn take_back(client: &Client, mut lease: Lease) {
    lease.wait = Span::ZERO;
    let mut granted = Vec::new();
    let asking = async {
        let mut backoff = Backoff::default();
        loop {
            match client.lease(lease.clone()).await {
                Ok(leased) => return granted = leased.leases,
                Err(error @ CallError::Fault(_)) if passes(&error) => sleep(backoff.wait()).await,
                // An engine that ends, say: it will not tell any more.
                Err(_) => return,
            }
        }
    };
    let _ = timeout(CLOSE_MAX, asking).await;
    give_back(client, granted).await;
}

/// Gives back leases that nobody works on, and waits for the answer.
pub async fn give_back(client: &Client, leases: Vec<LeaseView>) {
    let mut seen = HashSet::new();
    let ids = leases.into_iter().filter_map(|lease| lease.lease);
    let items: Vec<SettleItem> = ids
        .filter(|id| seen.insert(id.clone()))
        .map(|lease| SettleOutcome::released().of(lease))
        .collect();
    settle_back(client, items).await;
}

/// Settles leases that nobody works on, and waits for the answer.
pub(crate) async fn settle_back(client: &Client, items: Vec<SettleItem>) {
    if items.is_empty() {
        return;
    }
    let telling = async {
        let mut backoff = Backoff::default();
        while let Err(error) = client.settle(items.clone()).await
            && passes(&error)
        {
            sleep(backoff.wait()).await;
        }
    };
    let _ = timeout(GIVE_BACK_MAX, telling).await;
}
