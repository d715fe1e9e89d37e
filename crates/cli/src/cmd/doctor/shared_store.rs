//! Is a store well that several servers share: its leader, how far the others are, whether they can be reached from
//! here, and how the Redis is set up that keeps it.
//!
//! It asks Redis and the servers, and changes nothing. A server that cannot be reached from here may still be reached
//! by others.

use tenure::url::StoreUrl;
use tenure_core::redis_address::Address;
use tenure_core::time::Span;
use tenure_node::{ShownServer, ShownStore, StoreAdministration, StoreError, StoreSettings};
use tokio::task::spawn_blocking;

use super::facts::SETTINGS;
use super::finding::{Finding, RuleVerdict, look, ok, wrong};
use super::{rules, server};
use crate::cmd::store::start_one;
use crate::exit::Failure;
use crate::output::size;
use crate::scratch::unreachable;

/// A leader writes at least once a second; a silence of this length is no pause any more.
const BEAT_OLD: Span = Span::from_s(3);
/// A follower that lacks more entries than this takes a while to take over.
const FAR_BEHIND: u64 = 20_000;

/// Asks Redis and all servers.
pub async fn findings(address: Address) -> Result<Vec<Finding>, Failure> {
    let topology = address.topology().clone();
    let start = start_one(&address.to_string());
    let reply = spawn_blocking(move || {
        let store = StoreAdministration::open(address)?;
        let shown = store.show()?;
        Ok::<_, StoreError>((shown, store.told(&SETTINGS)))
    });
    let reply =
        reply.await.map_err(|why| Failure::bug(format!("a call of the store panicked: {why}")))?;
    let (shown, [info, settings]) = reply.map_err(unreachable)?;
    let awaited = shown.as_ref().and_then(|shown| shown.settings.replicas).unwrap_or_default();
    let mut findings: Vec<Finding> = rules::of_redis(&topology, &info, &settings, awaited.into())
        .into_iter()
        .map(|(check, verdict)| Finding::of(check, verdict))
        .collect();
    match &shown {
        None => findings.push(Finding::of("store", look("there is no store here", start))),
        Some(shown) => {
            findings.push(Finding::of("store", of_store(shown)));
            findings.push(Finding::of("owner", owner(shown, &start)));
            for one in &shown.servers {
                findings.push(Finding::of("server", of_server(one, reached(one).await)));
            }
            if shown.servers.len() == 1 {
                let fix = "start another one with the same store, on another machine";
                let found = "there is one server: no other takes over when it ends";
                findings.push(Finding::of("standby", look(found, fix)));
            }
        }
    }
    Ok(findings)
}

fn of_store(shown: &ShownStore) -> RuleVerdict {
    let StoreSettings { forgets_never, replicas, .. } = &shown.settings;
    let waits = match replicas.unwrap_or_default() {
        0 => "an answer waits only for the primary".to_owned(),
        1 => "an answer waits for one replica".to_owned(),
        replicas => format!("an answer waits for {replicas} replicas"),
    };
    let forgets = if *forgets_never == Some(true) { "; it is set to forget nothing" } else { "" };
    ok(format!(
        "{} entries; its snapshot takes {}, the log behind it {}; {waits}{forgets}",
        shown.entry,
        size(shown.sizes.snapshot),
        size(shown.sizes.log)
    ))
}

fn owner(shown: &ShownStore, start: &str) -> RuleVerdict {
    let fix =
        format!("check in the logs of the servers why none leads it; without a server, {start}");
    let owner = shown.servers.iter().find(|server| server.leads);
    match (owner, shown.epoch, shown.beat_ago) {
        (Some(owner), Some(epoch), Some(ago)) if ago < BEAT_OLD => {
            ok(format!("{} leads the store, at epoch {epoch}", owner.url))
        }
        (Some(owner), Some(_), Some(ago)) => wrong(
            format!(
                "{} leads the store, and has written nothing for {} s",
                owner.url,
                ago.us() / 1_000_000
            ),
            fix,
        ),
        (None, Some(epoch), _) => wrong(
            format!("the leader of epoch {epoch} is silent, and no other server has taken over"),
            fix,
        ),
        _ => wrong("no server has ever led this store", fix),
    }
}

/// Whether this server answers here; otherwise the reason.
async fn reached(server: &ShownServer) -> Result<(), String> {
    let Ok(StoreUrl::Server(url)) = server.url.parse() else {
        return Err("it is not the address of a server".to_owned());
    };
    server::reached(&url).await
}

fn of_server(server: &ShownServer, reached: Result<(), String>) -> RuleVerdict {
    let ShownServer { url, release, leads, behind, .. } = server;
    let place = match (leads, behind) {
        (true, _) => "the leader".to_owned(),
        (false, 0) => "a standby that is up to date".to_owned(),
        (false, 1) => "a standby, one entry behind".to_owned(),
        (false, behind) => format!("a standby, {behind} entries behind"),
    };
    match reached {
        Err(why) => look(
            format!("{url} ({release}), {place}, cannot be reached from here: {why}"),
            "let the servers and clients reach each other at the advertised addresses (--advertise HOST:PORT)",
        ),
        Ok(()) if *behind > FAR_BEHIND => look(
            format!("{url} ({release}), {place}: a takeover by it has to read them first"),
            "check that its machine and its connection to Redis are as fast as the leader's",
        ),
        Ok(()) => ok(format!("{url} ({release}), {place}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::finding::Severity;

    fn shown(beat_ago: u64, servers: Vec<ShownServer>) -> ShownStore {
        ShownStore {
            name: "tenure".to_owned(),
            id: 1,
            settings: StoreSettings::default(),
            epoch: Some(7),
            beat_ago: Some(Span::from_s(beat_ago)),
            entry: 30_000,
            sizes: Default::default(),
            servers,
        }
    }

    fn one(leads: bool, behind: u64) -> ShownServer {
        let (url, release) = ("http://a:7171".to_owned(), "0.1.0".to_owned());
        ShownServer { url, release, leads, behind, said_ago: Span::ZERO }
    }

    #[test]
    fn an_owner_that_writes_is_well_and_a_store_without_one_is_not() {
        for (seen, level, part) in [
            (
                shown(0, vec![one(true, 0)]),
                Severity::Ok,
                "http://a:7171 leads the store, at epoch 7",
            ),
            (shown(9, vec![one(true, 0)]), Severity::Wrong, "written nothing for 9 s"),
            (shown(0, vec![one(false, 0)]), Severity::Wrong, "is silent"),
            (ShownStore { epoch: None, ..shown(0, Vec::new()) }, Severity::Wrong, "ever led"),
        ] {
            let (is, found, _) = owner(&seen, "start one");
            assert!(is == level && found.contains(part), "{found}");
        }
    }

    #[test]
    fn a_server_far_behind_or_unreachable_is_worth_a_look() {
        let refused = || Err("connection refused".to_owned());
        for (server, reached, level, part) in [
            (one(true, 0), Ok(()), Severity::Ok, "the leader"),
            (one(false, 1), Ok(()), Severity::Ok, "one entry behind"),
            (one(false, 25_000), Ok(()), Severity::Look, "25000 entries behind"),
            (
                one(false, 0),
                refused(),
                Severity::Look,
                "cannot be reached from here: connection refused",
            ),
        ] {
            let (is, found, _) = of_server(&server, reached);
            assert!(is == level && found.contains(part), "{found}");
        }
    }
}
