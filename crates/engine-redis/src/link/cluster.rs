//! Who has which slots of a cluster: asked of its nodes, at once when something points to a change,
//! and every few seconds in any case.
//!
//! It never touches a call. While nobody answers, the last map stands.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tenure_engine::redis_address::Endpoint;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::error::LinkError;
use super::node::{Node, Sending};
use super::routes::{KnownMap, Map, NOBODY, Nodes, SLOTS};

/// Between two looks at the least: a lost node makes many causes.
const PAUSE: Duration = Duration::from_millis(200);
/// How long one node may take to tell.
const TELL_WITHIN: Duration = Duration::from_secs(1);

/// A range of slots, from and to (both in it), and who has it.
type Range = (usize, usize, Endpoint);

/// Looks for ever.
pub(crate) async fn look(
    seeds: Vec<Endpoint>,
    nodes: Arc<Nodes>,
    every: Duration,
    found: watch::Sender<KnownMap>,
) {
    let (mut last, mut turn) = (Vec::new(), 0);
    loop {
        turn += 1;
        let known = match &*found.borrow() {
            KnownMap::At(map) => map.nodes.clone(),
            KnownMap::Looking { .. } => Vec::new(),
        };
        match asked(&known, &seeds, &nodes, turn).await {
            Ok(ranges) if ranges != last => {
                let map = map(&ranges, &nodes);
                nodes.keep(&map.nodes);
                found.send_replace(KnownMap::At(Arc::new(map)));
                last = ranges;
            }
            // A node that one call was sent to and that has nothing after all.
            Ok(_) => nodes.keep(&known),
            Err(failed) => found.send_modify(|found| {
                if let KnownMap::Looking { why, .. } = found {
                    *why = failed;
                }
            }),
        }
        sleep(PAUSE).await;
        if !last.is_empty() {
            let _ = timeout(every, nodes.hint.notified()).await;
        }
    }
}

/// Asks those who are connected, another first each time: one that is cut off from the others must
/// not be the one that is always believed. Then those whom the address names.
async fn asked(
    known: &[Arc<Node>],
    seeds: &[Endpoint],
    nodes: &Nodes,
    turn: usize,
) -> Result<Vec<Range>, LinkError> {
    let mut cmd = redis::cmd("CLUSTER");
    cmd.arg("SLOTS");
    let mut why = None;
    for step in 0..known.len() {
        let node = &known[(turn + step) % known.len()];
        if node.down().is_some() {
            continue;
        }
        let answer =
            node.send(&cmd, Sending { within: TELL_WITHIN, asking: false, nonce: None }).await;
        match answer.and_then(|answer| ranges(answer, &node.endpoint)) {
            Ok(ranges) => return Ok(ranges),
            Err(failed) => why = Some(failed),
        }
    }
    for seed in seeds {
        let answer = async {
            let mut connection = nodes.dialer.connect(seed).await?;
            let answer = connection.requests.command(&cmd, false);
            match timeout(TELL_WITHIN, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(LinkError::Unavailable(format!("{seed}: it did not answer in time"))),
            }
        };
        match answer.await.and_then(|answer| ranges(answer, seed)) {
            Ok(ranges) => return Ok(ranges),
            Err(failed) => why = Some(failed),
        }
    }
    Err(why.unwrap_or_else(|| LinkError::Unavailable("no node of the cluster answers".to_owned())))
}

/// What `CLUSTER SLOTS` answers: `[[from, to, [host, port, …], replicas…], …]`.
fn ranges(answer: Value, from: &Endpoint) -> Result<Vec<Range>, LinkError> {
    let Value::Array(entries) = answer else {
        return Err(LinkError::Unavailable(format!("{from}: it told no slots")));
    };
    let mut ranges: Vec<Range> = entries.iter().filter_map(|entry| range(entry, from)).collect();
    ranges.sort();
    if ranges.is_empty() {
        let why = "the node has no slots; check that the cluster is complete";
        return Err(LinkError::refused("CLUSTERDOWN", why));
    }
    Ok(ranges)
}

fn range(entry: &Value, from: &Endpoint) -> Option<Range> {
    let Value::Array(parts) = entry else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        // It does not know its own address, or says that we do.
        Value::Nil => from.host.clone(),
        Value::BulkString(host) if host.is_empty() => from.host.clone(),
        Value::BulkString(host) if host == b"?" => return None,
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        _ => return None,
    };
    let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
    let port = u16::try_from(*port).ok()?;
    (first <= last && last < SLOTS).then_some((first, last, Endpoint { host, port }))
}

fn map(ranges: &[Range], nodes: &Nodes) -> Map {
    let endpoints: BTreeSet<&Endpoint> = ranges.iter().map(|(_, _, endpoint)| endpoint).collect();
    let endpoints: Vec<&Endpoint> = endpoints.into_iter().collect();
    let mut slots = vec![NOBODY; SLOTS].into_boxed_slice();
    for (first, last, endpoint) in ranges {
        let place = endpoints.binary_search(&endpoint).ok().and_then(|at| u16::try_from(at).ok());
        slots[*first..=*last].fill(place.unwrap_or(NOBODY));
    }
    Map { nodes: endpoints.iter().map(|endpoint| nodes.at(endpoint)).collect(), slots: Some(slots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_are_read_in_every_form() {
        let from = Endpoint { host: "a".to_owned(), port: 1 };
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let entry = |first, last, host, port| {
            let replica = Value::Array(vec![text("r"), Value::Int(9), text("id")]);
            let primary = Value::Array(vec![host, Value::Int(port), text("id")]);
            Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
        };
        let host = |host: &str, port| Endpoint { host: host.to_owned(), port };
        let answer = Value::Array(vec![
            entry(6, 16_383, text("b"), 2),
            entry(0, 3, Value::Nil, 1),
            entry(4, 4, text(""), 3),
            entry(5, 5, text("?"), 4),
            entry(5, 16_384, text("c"), 4),
            Value::Nil,
        ]);
        assert_eq!(
            ranges(answer, &from),
            Ok(vec![(0, 3, host("a", 1)), (4, 4, host("a", 3)), (6, 16_383, host("b", 2))])
        );
        for answer in [Value::Nil, Value::Array(vec![])] {
            assert!(ranges(answer, &from).is_err());
        }
    }
}
