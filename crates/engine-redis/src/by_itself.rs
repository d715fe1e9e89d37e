//! Namespaces in which something happens by itself: schedules, and gauges that are read. Their names stand in one set beside all namespaces, so that
//! a process finds them without being called there. The set is a hint: the store may forget it, so a process that ticks
//! such a namespace writes its name again every 30 s. Nothing but the end of the set takes a name out; a tick of a
//! namespace that is not there makes nothing.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::names::Namespace;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::call::Caller;
use crate::link::{Value, cmd};
use crate::shared::Shared;

/// Between two looks at the set, and two writings of a name.
pub(crate) const EVERY: Duration = Duration::from_secs(30);
/// After the opening of an engine the first look waits so long: most commands are over by then.
const FIRST_AFTER: Duration = Duration::from_millis(200);
/// No namespace has this name: the set lies in a slot of its own.
const BESIDE: &str = "-";

fn key(shared: &Shared) -> String {
    shared.link.address().key(BESIDE, "by_itself")
}

/// Writes the name of a namespace into the set, unless that was done lately. It is written before the first schedule of
/// the namespace is, and before a limit's first gauge; where that is not permitted, schedules fire and gauges are read as
/// long as somebody uses the namespace.
pub(crate) async fn note(caller: &Caller) {
    if !caller.space.is_to_be_noted(EVERY) {
        return;
    }
    let mut add = cmd("SADD");
    add.arg(key(&caller.shared)).arg(caller.space.name.as_str());
    match caller.shared.link.command(BESIDE, &add).await {
        Ok(Value::ServerError(why)) => tell(&format!("{why:?}")),
        Ok(_) => caller.space.noted(),
        Err(why) => tell(&why.to_string()),
    }
}

fn tell(why: &str) {
    tracing::warn!(
        %why,
        "the name of a namespace with schedules or gauges could not be written: they fire and are read only while a \
         process uses it"
    );
}

/// Finds such namespaces, and keeps their time, for as long as the engine lives.
pub(crate) async fn find(shared: Weak<Shared>, mut closing: watch::Receiver<bool>) {
    let mut wait = FIRST_AFTER;
    loop {
        tokio::select! {
            () = sleep(wait) => {}
            _ = closing.changed() => return,
        }
        wait = EVERY;
        let Some(shared) = shared.upgrade() else { return };
        for namespace in names(&shared).await {
            // Whoever is called there keeps its time.
            let _ = shared.caller(&namespace);
        }
    }
}

async fn names(shared: &Arc<Shared>) -> HashSet<Namespace> {
    let mut members = cmd("SMEMBERS");
    members.arg(key(shared));
    let Ok(found) = shared.link.command(BESIDE, &members).await else { return HashSet::new() };
    let texts = match found {
        Value::Array(all) | Value::Set(all) => all,
        _ => Vec::new(),
    };
    let name = |text: Value| match text {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    };
    texts.into_iter().filter_map(name).filter_map(|name| Namespace::parse(&name).ok()).collect()
}
