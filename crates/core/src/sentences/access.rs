//! Refusals of calls that the caller's token does not permit.

use super::table::refusals;
use super::{Phrase, listed};

/// Advice for a right that a token lacks.
const ANOTHER_TOKEN: &str =
    "use another token, or ask an administrator of the server to change the grants of this one";

/// The scopes and the namespaces that a token lacks for the whole store.
fn lacks(scopes: &[String], enters_all: bool) -> String {
    let noun = if scopes.len() == 1 { "scope" } else { "scopes" };
    let named = (!scopes.is_empty()).then(|| format!("the {noun} {}", listed(scopes, "and")));
    let all = (!enters_all).then(|| "all namespaces (\"*\")".to_owned());
    named.into_iter().chain(all).collect::<Vec<_>>().join(" and ")
}

refusals! {
    /// A token that does not permit a call.
    AccessRefusal:

    ScopeLacking Forbidden { caller: String, scope: String, operation: String, scopes: String }
        detail("the token {caller:?} lacks the scope {scope:?} for {operation}; it has {scopes}")
        hint("{ANOTHER_TOKEN}");

    NamespaceClosed Forbidden { caller: String, namespace: String, permitted: String }
        detail("the token {caller:?} may not use the namespace {namespace:?}; it may use {permitted}")
        hint("{ANOTHER_TOKEN}");

    StoreClosed Forbidden {
            caller: String, operation: String, lacking: Vec<String>, enters_all: bool, scopes: String, permitted: String
        }
        detail(
            "the token {caller:?} lacks {} for {operation}; it has {scopes}, and may use {permitted}",
            lacks(&lacking, enters_all)
        )
        hint("{ANOTHER_TOKEN}");

    QueueClosed Forbidden { caller: String, queue: String, permitted: String }
        detail("the token {caller:?} may not use the queue {queue:?}; it may use {permitted}")
        hint("{ANOTHER_TOKEN}");

    NeedClosed Forbidden { caller: String, kind: Phrase, name: String, permitted: String }
        detail("the token {caller:?} may not hold the {kind} {name:?}; it may hold {permitted}")
        hint("{ANOTHER_TOKEN}");

    TooManyCalls LineFull { caller: String, calls: String, wait_s: u64 }
        detail("the token {caller:?} may make {calls} calls, and has made them")
        hint("nothing happened; send the same call again after Retry-After; \"calls\" of the token is the bound")
        retry_after_s(wait_s)
        caller(caller);

    TooManyInFlight LineFull { caller: String, most: u32 }
        detail("the token {caller:?} has {most} calls, streams and waits under way, and may have no more")
        hint("nothing happened; send the same call again when one of them has ended; \"in_flight\" of the token is the bound")
        retry_after_s(1)
        caller(caller);

    GrantsChanged Forbidden { caller: String }
        detail("the grants of the token {caller:?} changed while the request was read")
        hint("send what was not answered again: it is judged by the grants of now");

    CallerUnknown Forbidden { caller: String }
        detail("the server that leads the store knows no token {caller:?}")
        hint("give all servers of the store the same --tokens file; `tenure token check` reads it");
}
