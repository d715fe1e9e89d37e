//! Routes of the server itself.

use serde::Serialize;
use tenure_core::requests::HttpMethod;
use tenure_core::view;
use tenure_engine_api::Health;

use super::{Does, Route};
use crate::answer::Answers;
use crate::leadership::{Leadership, ServingLeader, forwarding, notice};

/// The version of the contract.
const CONTRACT: u32 = 1;

const fn get(
    path: &'static str,
    name: &'static str,
    summary: &'static str,
    does: Does,
    answers: Answers,
) -> Route {
    Route::own(HttpMethod::Get, path, name, summary, does, answers)
}

pub(super) static ROUTES: &[Route] = &[
    get(
        "/v1/backup",
        "backup",
        "Send a backup of the whole store, with all namespaces and secrets, while calls go on",
        Does::Backup,
        &[(200, "application/octet-stream")],
    ),
    get("/healthz", "healthz", "Say that the process lives", Does::Health, &[(200, "Health")]),
    get(
        "/readyz",
        "readyz",
        "Say whether it may be asked",
        Does::Ready,
        &[(200, "Ready"), (503, "Ready")],
    ),
    get("/version", "version", "Say what it is", Does::Version, &[(200, "Version")]),
    get(
        "/metrics",
        "metrics",
        "Say what was counted, in the text format of Prometheus",
        Does::Metrics,
        &[(200, "text/plain")],
    ),
    get("/openapi.json", "openapi", "Say what can be asked", Does::Document, &[(200, "Document")]),
];

view! {
    /// The answer to `GET /healthz`.
    #[derive(Debug, Serialize)]
    pub(crate) struct Alive as "Health" {
        /// The process lives: always ok.
        status: &'static str as view::words(&["ok"]),
    }

    /// The answer to `GET /readyz`.
    #[derive(Debug, Serialize)]
    pub(crate) struct Ready {
        /// Whether calls are answered: ok, draining, or degraded while the store is not well.
        status: &'static str as view::words(&["ok", "draining", "degraded"]),
        /// What kind of store the server has.
        store: &'static str,
        /// Whether the server is about to end.
        draining: bool,
        /// In one sentence, how the server and its store are.
        detail: String,
    }

    /// The answer to `GET /version`.
    #[derive(Debug, Serialize)]
    pub(crate) struct Version {
        /// The release of the server.
        version: &'static str,
        /// The commit from which it was built; unknown if the build did not say.
        commit: &'static str,
        /// The number of the contract that it speaks.
        contract: u32,
    }
}

/// Says that the process is alive.
pub(crate) const ALIVE: Alive = Alive { status: "ok" };

impl Ready {
    /// The state of a server whose store is served here or elsewhere. `is_refused`: the leader does not accept
    /// forwarded calls of this server. `is_stranger`: the caller has shown no token, so the answer has no address of
    /// another server or of the store.
    pub(crate) fn at(
        leadership: &Leadership,
        draining: bool,
        is_refused: bool,
        is_stranger: bool,
    ) -> Self {
        if is_stranger && leadership.is_shared() {
            return Ready::told_to_strangers(leadership, draining, is_refused);
        }
        let (now, described) = (leadership.now(), leadership.described());
        let described = described.filter(|_| !draining);
        let notice = match &now {
            ServingLeader::Remote(_) => described.or_else(|| notice(&now)),
            _ => notice(&now).or(described),
        };
        let mut health = leadership.health();
        if let (ServingLeader::Remote(owner), true) = (&now, is_refused) {
            health.degraded = Some(format!(
                "{}, which does not take the secret of this server; if that lasts, look whether both use the same Redis, \
                 and start this server again",
                forwarding(&owner.url)
            ));
        }
        Ready::of(health, notice, draining)
    }

    fn told_to_strangers(leadership: &Leadership, draining: bool, is_refused: bool) -> Self {
        let health = leadership.health();
        let is_well = health.degraded.is_none();
        let (wrong, notice) = match leadership.now() {
            ServingLeader::Local { .. } => ((!is_well).then_some("the store is not well"), None),
            ServingLeader::Remote(_) => (
                is_refused.then_some("the server that owns the store refuses this one"),
                Some("the server passes calls on to the one that owns the store"),
            ),
            ServingLeader::None(_) => (Some("no server owns the store"), None),
            ServingLeader::Paused(_) => (Some("the store is paused"), None),
        };
        let degraded = wrong.map(|what| format!("{what}; show a token to read more"));
        let notice = notice.filter(|_| !draining).map(str::to_owned);
        Ready::of(Health { degraded, ..health }, notice, draining)
    }

    /// The state of an engine and its server. A notice is shown and changes no status: a load balancer must not keep
    /// heartbeats away.
    pub(crate) fn of(health: Health, notice: Option<String>, draining: bool) -> Self {
        let status = match (&health.degraded, draining) {
            (Some(_), _) => "degraded",
            (None, true) => "draining",
            (None, false) => "ok",
        };
        let detail = health.degraded.or(notice).unwrap_or_else(|| {
            let text = if draining {
                "the server is draining: it ends when what runs is answered; call another one"
            } else {
                "the server answers calls"
            };
            text.to_owned()
        });
        Ready { status, store: health.store, draining, detail }
    }
    /// The HTTP status of the answer.
    pub(crate) fn status(&self) -> u16 {
        if self.status == "ok" { 200 } else { 503 }
    }
}

/// Version, contract and commit of this server. The build sets `TENURE_COMMIT`.
pub(crate) const VERSION: Version = Version {
    version: env!("CARGO_PKG_VERSION"),
    commit: match option_env!("TENURE_COMMIT") {
        Some(commit) => commit,
        None => "unknown",
    },
    contract: CONTRACT,
};
