//! Is this Redis set up so that Tenure keeps its promises on it?
//!
//! It asks; it changes nothing, but that it loads a function library of its own and removes it, to see
//! whether that is allowed. What it makes of the answers is in [`rules`].

use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_engine_redis::library::Library;
use tenure_engine_redis::link::{Address, Link, LinkError, LinkOptions, cmd};

use super::finding::Finding;
use super::{Examined, facts, rules};
use crate::exit::{Failure, NOT_STARTED};
use crate::store::on_redis;

/// How often the latency is measured; half of them are below what is said.
const PINGS: usize = 20;
/// Whoever asks a doctor is not in a hurry, and a first TLS connection may be far away.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks every primary.
pub async fn examined(address: Address, namespace: &Namespace) -> Result<Examined, Failure> {
    let options = LinkOptions {
        connections: 1,
        connect_within: PATIENCE,
        patience: PATIENCE,
        ..LinkOptions::with(Library::release())
    };
    let link =
        Link::open(address, options).map_err(|why| Failure::new(NOT_STARTED, why.to_string()))?;
    let namespace = namespace.as_str();
    let facts = facts::gather(&link, namespace).await.map_err(on_redis::unreachable)?;
    let unheard = facts::unheard(&link, namespace, PATIENCE).await;
    let latency = latency(&link, namespace).await.map_err(on_redis::unreachable)?;
    let mut findings: Vec<Finding> =
        facts.iter().flat_map(|facts| rules::examine(link.address(), facts)).collect();
    findings.push(rules::listening(unheard, link.channels()));
    findings.push(rules::latency(PINGS, latency));
    let servers = facts.into_iter().map(|facts| facts.server).collect();
    Ok(Examined { what: "Redis", store: link.address().to_string(), servers, findings })
}

/// The median of what the primary that has the namespace takes to answer.
async fn latency(link: &Link, namespace: &str) -> Result<Duration, LinkError> {
    let mut took = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let begin = Instant::now();
        link.command(namespace, &cmd("PING")).await?;
        took.push(begin.elapsed());
    }
    took.sort_unstable();
    Ok(took[PINGS / 2])
}
