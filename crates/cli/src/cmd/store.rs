//! `tenure store`: the settings of a store that several servers share, and its servers. It calls Redis alone.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tenure::url::StoreUrl;
use tenure_core::time::Span;
use tenure_node::{Compacted, ShownServer, ShownStore, StoreAdministration, StoreSettings};
use tokio::task::spawn_blocking;

use crate::args::store::{ForgetsArg, StoreAction, StoreSetArgs};
use crate::cmd::serve::redis_of;
use crate::exit::{Failure, NO, UNAVAILABLE};
use crate::output::Output;
use crate::output::page::Page;
use crate::output::size;
use crate::scratch::unreachable;

/// How often to check that a server lives that could make the awaited snapshot.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A leader writes at least once a second, and one that reads the store first wrote when it took it over: if nothing
/// was written for this long, nobody makes a snapshot. Such a wait ends after as long too, so that a server that is
/// starting may come.
const NOBODY_AFTER: Span = Span::from_s(5);
/// A server writes something each second: one that was silent for this long is gone, or as good as gone.
const SILENT_AFTER: Span = Span::from_s(3);

#[derive(Serialize)]
struct ShownStoreJson<'a> {
    name: &'a str,
    id: String,
    owner: Option<&'a str>,
    epoch: Option<u64>,
    owner_wrote_ms_ago: Option<u64>,
    entry: u64,
    log_bytes: u64,
    snapshot_bytes: u64,
    patience: Option<String>,
    retain_bytes: Option<u64>,
    events_bytes: Option<u64>,
    forgets: Option<&'static str>,
    replicas: Option<u32>,
    servers: Vec<ShownServerJson<'a>>,
}

#[derive(Serialize)]
struct ShownServerJson<'a> {
    url: &'a str,
    release: &'a str,
    owns: bool,
    behind: u64,
    said_ms_ago: u64,
}

/// Runs the action on the store.
pub async fn run(out: Output, action: StoreAction, url: &str) -> Result<(), Failure> {
    let address = match &action {
        StoreAction::Show(address) | StoreAction::Compact { address, .. } => address,
        StoreAction::Set(set) => &set.address,
    };
    // A user who reaches the servers by their Redis has named it already.
    let by_redis = matches!(url.parse(), Ok(StoreUrl::Redis(_)));
    let text = address.store.as_deref().or(by_redis.then_some(url)).ok_or_else(|| {
        Failure::usage("store: no store is named").hint(
            "name the Redis of the servers: tenure store show --store redis://HOST:6379, or set TENURE_STORE or \
             TENURE_URL",
        )
    })?;
    let address = redis_of(text)?;
    let shown = address.to_string();
    let store = Arc::new(StoreAdministration::open(address).map_err(unreachable)?);
    // Each call waits for Redis, and a snapshot takes as long as it takes.
    let done = spawn_blocking(move || act(out, &store, &shown, action)).await;
    done.map_err(|why| Failure::bug(format!("a call of the store panicked: {why}")))?
}

fn act(
    out: Output,
    store: &Arc<StoreAdministration>,
    address: &str,
    action: StoreAction,
) -> Result<(), Failure> {
    match action {
        StoreAction::Show(_) => {
            let shown = store.show().map_err(unreachable)?;
            let shown = shown.ok_or_else(|| nobody(address))?;
            out.answer(&json(&shown), |_| page(&shown))
        }
        StoreAction::Set(set) => {
            let settings = settings(&set);
            if settings == StoreSettings::default() {
                return Err(Failure::usage("store set: no setting is named").hint(
                    "name a setting, such as --patience 30s; see `tenure store set --help`",
                ));
            }
            if !store.set(&settings).map_err(unreachable)? {
                return Err(nobody(address));
            }
            let changes =
                settings.fields().into_iter().map(|(field, text)| format!("{field} {text}"));
            let changes: Vec<_> = changes.collect();
            out.done(&format!("the store has {} now", changes.join(", ")))
        }
        StoreAction::Compact { timeout, .. } => {
            let Some(compacted) = compacted(store, timeout.std())? else {
                let shown = store.show().map_err(unreachable)?;
                return Err(shown.map_or_else(|| nobody(address), |shown| no_owner(shown, address)));
            };
            match compacted {
                Compacted::Done(sizes) => out.done(&format!(
                    "there is a new snapshot: it takes {}, and the log behind it {}",
                    size(sizes.snapshot),
                    size(sizes.log)
                )),
                Compacted::NoStore => Err(nobody(address)),
                Compacted::NotYet => Err(Failure::new(
                    UNAVAILABLE,
                    format!("the leader of the store made no snapshot within {timeout}"),
                )
                .hint("check with `tenure store show` that a server leads the store, and read the log of that server")),
            }
        }
    }
}

fn settings(set: &StoreSetArgs) -> StoreSettings {
    let StoreSetArgs { patience, retain_bytes, events_bytes, forgets, replicas, .. } = *set;
    let forgets_never = forgets.map(|forgets| forgets == ForgetsArg::Never);
    StoreSettings { patience, retain_bytes, events_bytes, forgets_never, replicas }
}

/// Requests a snapshot and waits for it; `None`: no server lives that could make it.
fn compacted(
    store: &Arc<StoreAdministration>,
    timeout: Duration,
) -> Result<Option<Compacted>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let asking = Arc::clone(store);
    // Where nobody makes a snapshot, this thread is still waiting when the process ends: it is not joined.
    thread::Builder::new()
        .spawn(move || sender.send(asking.compact(timeout)))
        .map_err(|why| Failure::bug(format!("could not start a thread: {why}")))?;
    let begun = Instant::now();
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(compacted) => return Ok(Some(compacted.map_err(unreachable)?)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::bug("a call of the store panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let shown = store.show().map_err(unreachable)?;
                let is_still =
                    shown.is_some_and(|shown| shown.beat_ago.is_none_or(|ago| ago >= NOBODY_AFTER));
                if is_still && begun.elapsed() >= NOBODY_AFTER.std() {
                    return Ok(None);
                }
            }
        }
    }
}

/// Why no snapshot is made: the leader is gone, or silent.
fn no_owner(mut shown: ShownStore, address: &str) -> Failure {
    shown.servers.retain(|server| server.said_ago < SILENT_AFTER);
    let wish = "the request stays in the store, and the next leader makes the snapshot";
    let start = start_one(address);
    let hint = if shown.servers.is_empty() {
        format!("{start}; {wish}")
    } else {
        format!("check in the logs of the servers why none leads the store; {wish}")
    };
    let why = match (shown.servers.iter().find(|server| server.leads), shown.epoch) {
        (Some(owner), _) => {
            let ago = shown.beat_ago.map_or(0, ms) / 1_000;
            format!("{} leads the store, and has written nothing for {ago} s", owner.url)
        }
        (None, Some(_)) => owner(&shown),
        (None, None) => "no server has ever led this store".to_owned(),
    };
    Failure::new(NO, format!("no server makes a snapshot: {why}")).hint(hint)
}

/// The hint where no server uses a store. The address is shown without its password.
pub fn start_one(address: &str) -> String {
    format!("start one: tenure serve --store {address}")
}

fn nobody(address: &str) -> Failure {
    let start = start_one(address);
    Failure::new(NO, format!("there is no store in {address}"))
        .hint(format!("{start}; or check that the address has the store name of the servers"))
}

/// The leader of the store, as a sentence.
fn owner(shown: &ShownStore) -> String {
    let owner = shown.servers.iter().find(|server| server.leads);
    let ago = shown.beat_ago.map_or(0, ms);
    match (owner, shown.epoch) {
        (Some(owner), Some(epoch)) => {
            format!("{}, at epoch {epoch}; wrote {ago} ms ago", owner.url)
        }
        (None, Some(epoch)) => {
            format!("the leader of epoch {epoch} is silent; it wrote {ago} ms ago")
        }
        (_, None) => "none".to_owned(),
    }
}

fn ms(span: Span) -> u64 {
    span.us() / 1_000
}

fn json(shown: &ShownStore) -> ShownStoreJson<'_> {
    let StoreSettings { patience, retain_bytes, events_bytes, forgets_never, replicas } =
        shown.settings;
    ShownStoreJson {
        name: &shown.name,
        id: format!("{:032x}", shown.id),
        owner: shown.servers.iter().find(|server| server.leads).map(|server| server.url.as_str()),
        epoch: shown.epoch,
        owner_wrote_ms_ago: shown.beat_ago.map(ms),
        entry: shown.entry,
        log_bytes: shown.sizes.log,
        snapshot_bytes: shown.sizes.snapshot,
        patience: patience.map(|patience| patience.to_string()),
        retain_bytes,
        events_bytes,
        forgets: forgets_never.map(|never| if never { "never" } else { "perhaps" }),
        replicas,
        servers: shown.servers.iter().map(server_json).collect(),
    }
}

fn server_json(server: &ShownServer) -> ShownServerJson<'_> {
    ShownServerJson {
        url: &server.url,
        release: &server.release,
        owns: server.leads,
        behind: server.behind,
        said_ms_ago: ms(server.said_ago),
    }
}

fn page(shown: &ShownStore) -> String {
    let settings = &shown.settings;
    let mut page = Page::default();
    page.field("store", format!("{} ({:032x})", shown.name, shown.id));
    page.field("leader", owner(shown));
    for server in shown.servers.iter().filter(|server| !server.leads) {
        page.field(
            "standby",
            format!("{}, {} of {} entries behind", server.url, server.behind, shown.entry),
        );
    }
    page.field("snapshot", size(shown.sizes.snapshot)).field("log", size(shown.sizes.log));
    page.maybe("patience", settings.patience);
    page.maybe("retain bytes", settings.retain_bytes.map(size));
    page.maybe("events bytes", settings.events_bytes.map(size));
    page.maybe(
        "forgets",
        settings.forgets_never.map(|never| if never { "never" } else { "perhaps" }),
    );
    page.maybe("replicas", settings.replicas);
    page.render()
}
