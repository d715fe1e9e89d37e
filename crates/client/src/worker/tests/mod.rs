//! A worker against a scripted engine, on a clock that a test moves.

use std::time::Duration;

use tenure_core::requests::Request;

use std::sync::Mutex;

use super::*;
use crate::keeper::lock;
use tenure_testkit::fake::{Fake, Says, granted, well};

mod ahead;
mod asking;
mod ending;
mod executing;
mod settling;

fn queues(names: &[&str]) -> Vec<QueueName> {
    names.iter().map(|name| QueueName::parse(name).unwrap()).collect()
}

fn worker(fake: &Arc<Fake>) -> Worker {
    Client::on_this_runtime(fake.clone()).worker(queues(&["q"]))
}

/// Grants these jobs in the first lease call, and nothing more.
fn once(jobs: std::ops::RangeInclusive<usize>) -> impl FnMut(&Request, usize) -> Says {
    move |call, before| match call {
        Request::Lease(_) if before == 0 => granted(jobs.clone()),
        call => well(call),
    }
}

/// The lease calls that ask for jobs, without those that only cancel one: under its id, without a wait.
fn asked_for(fake: &Fake) -> Vec<(Instant, tenure_core::requests::Lease)> {
    let mut leases = fake.leases();
    let mut seen = std::collections::HashSet::new();
    leases.retain(|(_, lease)| seen.insert(lease.request_id.clone()) || lease.wait > Span::ZERO);
    leases
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ends(items: &[tenure_core::lease::SettleItem]) -> Vec<(String, &'static str)> {
    items.iter().map(|item| (item.lease.clone(), item.ending.outcome().as_str())).collect()
}
