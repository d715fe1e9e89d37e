//! Is this server well: its version, clock, token and store, and do workers ask for the jobs that wait.
//!
//! It makes calls that anybody may make. Functions that call nobody judge the answers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{AUTHORIZATION, DATE};
use serde::{Deserialize, Serialize};
use tenure::Client;
use tenure::remote::Callee;
use tenure::token_bounds::waited_for;
use tenure::url::ServerUrl;
use tenure_console::standing::NamespaceReplies;
use tenure_core::attention::{self, AttentionCause, never_watched};
use tenure_core::count::{counted, rough};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Audit, Stats};
use tenure_core::secret::Secret;
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::{CallError, Fault};

use super::finding::{Examined, Finding, RuleVerdict, Severity, look, ok, wrong};
use super::token_files::{self, FileHash};
use super::{folder, listener};
use crate::exchange::{Destination, Keep, Received};
use crate::exit::{DENIED, Failure, NO, UNAVAILABLE};
use crate::output::size;
use crate::service::retry_after::{self, RetryAfter};
use crate::settings::trust::trust;
use crate::store::{OpenedStore, token};

/// The contract that this command speaks.
const CONTRACT: u32 = crate::cmd::version::CONTRACT;
/// How long to wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer to a question about the server itself is short.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// A clock that is further from ours than this is off. `Date` has whole seconds.
const CLOCK_OFF: Duration = Duration::from_secs(1);
/// Most sentences of one check.
const NAMED: usize = 5;

#[derive(Deserialize)]
struct VersionAnswer {
    version: String,
    contract: u32,
}

#[derive(Deserialize)]
struct ReadyAnswer {
    status: String,
    #[serde(default)]
    detail: Option<String>,
}

/// Asks everything. `looks_at_redis`: the Redis of a store is examined too, so that no hint on how to do that is
/// needed.
pub(super) async fn examined(
    server: &ServerUrl,
    namespace: &Namespace,
    looks_at_redis: bool,
) -> Result<Examined, Failure> {
    let mut findings = Vec::new();
    let mut say = |check, verdict| findings.push(Finding::of(check, verdict));
    let token = token()?;
    let before = SystemTime::now();
    let answer = ask(server, "/version", token.as_ref()).await?;
    let after = SystemTime::now();
    let open = ask(server, "/v1/stats", None).await?.status != 401;
    say("token", of_token(token.is_some(), open, answer.status, is_here(server)));
    if matches!(answer.status, 401 | 403) {
        return Ok(told(server, findings));
    }
    say("version", version(server, &answer)?);
    let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    say("clock", clock(date, before, after));
    let ready = ask(server, "/readyz", token.as_ref()).await?;
    let is_ready = ready.status == 200;
    say("ready", of_readiness(&ready));
    if is_ready {
        let opened = OpenedStore::open(&server.to_string(), namespace.clone(), false)?;
        match of_store(&opened.client, server, looks_at_redis).await {
            Ok(more) => findings.extend(more),
            Err(CallError::Fault(Fault::StoreAway(why))) => {
                let fix = "check the store; the server's log says more";
                findings.push(Finding::of("store", wrong(why, fix)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(told(server, findings))
}

/// Asks each of several servers of one store. A server that does not answer is a finding.
pub(super) async fn each_examined(
    callee: &Callee,
    store: String,
    namespace: &Namespace,
    looks_at_redis: bool,
) -> Result<Examined, Failure> {
    let (mut servers, mut findings, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for server in servers_of(callee).await? {
        let name = server.to_string();
        let found = match examined(&server, namespace, looks_at_redis).await {
            Ok(examined) => {
                files.push((server.clone(), file_hash(&server).await?));
                examined.findings
            }
            Err(Failure { code: UNAVAILABLE, sentence: Some(why), .. }) => {
                let fix = "start it, or leave its address out";
                vec![Finding::of("reached", wrong(why, fix))]
            }
            Err(failure) => return Err(failure),
        };
        let named = |one| Finding { server: Some(name.clone()), ..one };
        findings.extend(found.into_iter().map(named));
        servers.push(name);
    }
    findings.extend(token_files::compared(&files).map(|verdict| Finding::of("tokens", verdict)));
    Ok(Examined { what: "store", store, servers, findings })
}

/// The hash that a server shows of its file of tokens.
async fn file_hash(server: &ServerUrl) -> Result<FileHash, Failure> {
    #[derive(Deserialize)]
    struct MeAnswer {
        tokens: Option<String>,
    }
    let answer = ask(server, "/v1/me", token()?.as_ref()).await?;
    let me = serde_json::from_slice::<MeAnswer>(&answer.body).ok();
    Ok(me.and_then(|me| me.tokens).map_or(FileHash::Unsaid, FileHash::Is))
}

async fn servers_of(callee: &Callee) -> Result<Vec<ServerUrl>, Failure> {
    Ok(callee.servers(&trust()).await?)
}

/// How a server presents itself to any caller.
#[derive(Clone, Debug, Serialize)]
pub struct Presented {
    pub version: String,
    /// Whether it takes work.
    pub ready: bool,
    /// Its own words about that: `ok`, or what is wrong.
    pub detail: String,
}

/// Asks a server, the first of several that answers, for its version and whether it is ready; `None` if it refuses the
/// token, which the calls on its store report.
///
/// # Errors
/// No server answers, or another program does.
pub async fn presented(callee: &Callee) -> Result<Option<Presented>, Failure> {
    first_of(callee, presented_by).await
}

/// The first of several servers that answers.
async fn first_of<T>(
    callee: &Callee,
    ask: impl AsyncFn(&ServerUrl) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut silent = Failure::bug("there is no server to ask");
    for server in servers_of(callee).await? {
        match ask(&server).await {
            Err(failure) if failure.code == UNAVAILABLE => silent = failure,
            answered => return answered,
        }
    }
    Err(silent)
}

/// The answer of a server to this question, the first of several that answers.
///
/// # Errors
/// No server answers.
pub async fn first_answer(
    callee: &Callee,
    path: &str,
    query: &str,
    most_bytes: usize,
) -> Result<Received, Failure> {
    let token = token()?;
    let ask =
        async |server: &ServerUrl| ask_for(server, path, query, token.as_ref(), most_bytes).await;
    first_of(callee, ask).await
}

async fn presented_by(server: &ServerUrl) -> Result<Option<Presented>, Failure> {
    let token = token()?;
    let answer = ask(server, "/version", token.as_ref()).await?;
    if matches!(answer.status, 401 | 403) {
        return Ok(None);
    }
    let VersionAnswer { version, .. } = read_version(server, &answer)?;
    let (level, detail, _) = of_readiness(&ask(server, "/readyz", token.as_ref()).await?);
    Ok(Some(Presented { version, ready: level == Severity::Ok, detail }))
}

/// Whether a server answers here at all, in any way.
///
/// # Errors
/// Why not.
pub async fn reached(server: &ServerUrl) -> Result<(), String> {
    ask(server, "/healthz", None).await.map(drop).map_err(|why| why.sentence.unwrap_or_default())
}

fn told(server: &ServerUrl, findings: Vec<Finding>) -> Examined {
    Examined { what: "server", store: server.to_string(), servers: Vec::new(), findings }
}

/// The part of a refusal that people read.
#[derive(Deserialize)]
struct ToldRefusal {
    detail: String,
    #[serde(default)]
    hint: String,
    /// The token that has used up its bounds.
    #[serde(default)]
    caller: Option<String>,
}

/// The body of the first answer, which must be a good one. `shown`: the address, for messages. A token that has used up
/// its bounds is waited for.
///
/// # Errors
/// No server answers, or it refuses the call.
pub async fn first_good(
    callee: &Callee,
    shown: &impl std::fmt::Display,
    path: &str,
    query: &str,
    most_bytes: usize,
) -> Result<Bytes, Failure> {
    let call = async || {
        let answer = first_answer(callee, path, query, most_bytes).await;
        good(answer?, shown)
    };
    waited_for(call, |no| no.wait).await.map_err(|no| no.failure)
}

/// Why there is no good answer.
struct NotGood {
    failure: Failure,
    /// How long the token must wait; `None`: it is not about that.
    wait: Option<Duration>,
}

impl From<Failure> for NotGood {
    fn from(failure: Failure) -> Self {
        NotGood { failure, wait: None }
    }
}

fn good(answer: Received, shown: &impl std::fmt::Display) -> Result<Bytes, NotGood> {
    if answer.status == 200 {
        return Ok(answer.body);
    }
    let code = if matches!(answer.status, 401 | 403) { DENIED } else { NO };
    let Ok(no) = serde_json::from_slice::<ToldRefusal>(&answer.body) else {
        return Err(Failure::new(code, format!("{shown} answered {}", answer.status)).into());
    };
    let wait = match (no.caller, retry_after::read(&answer.headers, SystemTime::now())) {
        (Some(_), RetryAfter::Wait(wait)) => Some(wait.std()),
        _ => None,
    };
    Err(NotGood { failure: Failure::new(code, no.detail).hint(no.hint), wait })
}

/// One answer, of any status.
async fn ask(server: &ServerUrl, path: &str, token: Option<&Secret>) -> Result<Received, Failure> {
    ask_for(server, path, "", token, ANSWER_BYTES_MAX).await
}

async fn ask_for(
    server: &ServerUrl,
    path: &str,
    query: &str,
    token: Option<&Secret>,
    most_bytes: usize,
) -> Result<Received, Failure> {
    let away = |why: String| Failure::from(Fault::Unavailable(format!("{server}: {why}")));
    let there = Destination::parse(&server.to_string()).map_err(|why| away(why.to_string()))?;
    let there = there.trusting(trust());
    let target = there.below(path, query).ok_or_else(|| Failure::bug("a path that is no path"))?;
    let mut request = Request::get(target);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.reveal()));
    }
    let request = request.body(Full::<Bytes>::default()).map_err(Failure::bug)?;
    let keep = |_| Keep::Whole(most_bytes);
    there.exchange(request, keep, PATIENCE).await.map_err(|why| {
        let why = why.to_string();
        away(why.split(" (os error").next().unwrap_or(&why).to_owned())
    })
}

/// Whether only processes of this machine reach it.
fn is_here(server: &ServerUrl) -> bool {
    let ip = server.host.parse::<std::net::IpAddr>();
    server.host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn of_token(ours: bool, open: bool, status: u16, here: bool) -> RuleVerdict {
    match (ours, open, here) {
        _ if status == 403 => wrong(
            "the server does not answer callers from here",
            "see `tenure error forbidden_origin`",
        ),
        (false, false, _) => {
            wrong("the server requires a token, and none is set", "set TENURE_TOKEN")
        }
        (true, false, _) if status == 401 => {
            wrong("the server refuses the token in TENURE_TOKEN", "set the token of the server")
        }
        (true, false, _) => ok("the server accepts the token in TENURE_TOKEN"),
        (true, true, _) => look(
            "TENURE_TOKEN is set, but the server requires no token",
            "start the server with TENURE_TOKEN too, or unset it here",
        ),
        (false, true, true) => {
            ok("none, and only this machine can reach the server at this address")
        }
        (false, true, false) => look(
            "none: every client that reaches the server may do everything",
            "start the server with a TENURE_TOKEN of 32 characters or more",
        ),
    }
}

/// An answer that is a problem.
#[derive(Deserialize)]
struct Refused {
    detail: String,
}

fn read_version(server: &ServerUrl, answer: &Received) -> Result<VersionAnswer, Failure> {
    serde_json::from_slice(&answer.body).map_err(|_| {
        let status = answer.status;
        let in_clear = Refusal::from(ServerRefusal::InClear);
        if serde_json::from_slice::<Refused>(&answer.body)
            .is_ok_and(|no| no.detail == in_clear.detail)
        {
            return in_clear.into();
        }
        Failure::new(UNAVAILABLE, format!("the server at {server} is not Tenure (status {status})"))
            .hint("check the address; the server's own is http://127.0.0.1:7171")
    })
}

fn version(server: &ServerUrl, answer: &Received) -> Result<RuleVerdict, Failure> {
    let VersionAnswer { version, contract } = read_version(server, answer)?;
    let found = format!("{version}, contract {contract}");
    let ours = env!("CARGO_PKG_VERSION");
    Ok(match (contract == CONTRACT, version == ours) {
        (true, true) => ok(found),
        (true, false) => look(
            format!("{found}; this command is {ours}"),
            "use one version for the server and its clients",
        ),
        (false, _) => wrong(
            format!("{found}; this command speaks contract {CONTRACT}"),
            "use a command of the server's version",
        ),
    })
}

/// `date` was the time of the server at some moment between the two; it has whole seconds, and may be a second old.
fn clock(date: Option<SystemTime>, before: SystemTime, after: SystemTime) -> RuleVerdict {
    let Some(date) = date else {
        return look("the server does not send its time", "compare the clocks by hand");
    };
    let older = date + Duration::from_secs(2);
    let (by, way) = match (date.duration_since(after), before.duration_since(older)) {
        (Ok(ahead), _) => (ahead, "ahead of"),
        (_, Ok(behind)) => (behind, "behind"),
        _ => (Duration::ZERO, ""),
    };
    if by <= CLOCK_OFF {
        return ok("agrees with this machine's to within 2 s");
    }
    look(
        format!("{} s {way} this machine's: jobs start by the server's clock", by.as_secs()),
        "let both keep time by NTP",
    )
}

fn of_readiness(answer: &Received) -> RuleVerdict {
    let read: Result<ReadyAnswer, _> = serde_json::from_slice(&answer.body);
    let (status, detail) = match read {
        Ok(ReadyAnswer { status, detail }) => (status, detail),
        Err(_) => (format!("status {}", answer.status), None),
    };
    let found = detail.unwrap_or_else(|| status.clone());
    match (answer.status, status.as_str()) {
        (200, "ok") => ok(found),
        (200, _) => look(format!("{status}: {found}"), "the server's log says more"),
        _ => wrong(format!("{status}: {found}"), "check the server's store; its log says more"),
    }
}

async fn of_store(
    client: &Client,
    server: &ServerUrl,
    looks_at_redis: bool,
) -> Result<Vec<Finding>, CallError> {
    let standing = NamespaceReplies::ask(client).await?;
    let mut findings = vec![Finding::of("store", ok(store(&standing.stats, looks_at_redis)))];
    // The folder of a server of a store in Redis is a copy: no answer waits for its disk.
    let has_folder = is_here(server) && standing.stats.store.kind != "redis";
    if let Some(folder) = has_folder.then(|| listener::folder(server.port)).flatten() {
        findings.extend(folder::disk(&folder));
    }
    findings.extend(of_attention(&standing.findings(&never_watched), &standing));
    let audited = client.run(Audit { deep: false }).await?;
    let verdict = if audited.ok {
        ok(format!("{} checked: all is well", counted(audited.checked, "thing", "things")))
    } else {
        wrong(
            format!("{} found", counted(audited.faults.len() as u64, "fault", "faults")),
            "run `tenure audit` to list them",
        )
    };
    findings.push(Finding::of("audit", verdict));
    Ok(findings)
}

fn store(stats: &Stats, looks_at_redis: bool) -> String {
    let waiting: u64 =
        stats.jobs.iter().filter(|(state, _)| !state.is_finished()).map(|(_, n)| n).sum();
    let more = match stats.store.kind.as_str() {
        "redis" if !looks_at_redis => "; `tenure doctor redis://HOST:6379` looks at it",
        _ => "",
    };
    let (kind, bytes) = (&stats.store.kind, size(stats.store.bytes));
    let (jobs, leases) = (
        counted(waiting, "unfinished job", "unfinished jobs"),
        counted(stats.leases, "lease", "leases"),
    );
    format!("{kind}, {bytes}, {jobs}, {leases}{more}")
}

/// The findings about attention, as one check of each kind.
fn of_attention(found: &[attention::Finding], standing: &NamespaceReplies) -> Vec<Finding> {
    use AttentionCause as Cause;
    const CHECKS: [&str; 7] =
        ["workers", "oldest", "queues", "limits", "pools", "schedules", "failures"];
    let check = |one: &attention::Finding| match one.cause {
        Cause::NoWorker { .. } => "workers",
        Cause::Slow { .. } => "oldest",
        Cause::Paused { .. } | Cause::QueueFull { .. } => "queues",
        Cause::Closed { .. } | Cause::LimitFull { .. } | Cause::Unread { .. } => "limits",
        Cause::NoResource { .. } | Cause::AllBanned { .. } | Cause::NothingFree { .. } => "pools",
        Cause::Overdue { .. } | Cause::LastFailed { .. } => "schedules",
        Cause::Failed { .. } => "failures",
    };
    let verdict = |name: &'static str| {
        let all: Vec<_> = found.iter().filter(|one| check(one) == name).collect();
        let sentences = || several(all.iter().map(|one| one.sentence.clone()));
        // The most urgent is first.
        match all.first() {
            Some(first) if first.severity.needs_somebody() => look(sentences(), &first.fix),
            Some(_) => ok(sentences()),
            None => ok(well(name, standing)),
        }
    };
    CHECKS.map(|name| Finding::of(name, verdict(name))).into()
}

/// The sentence of a check that found nothing.
fn well(check: &str, standing: &NamespaceReplies) -> String {
    let sentence = match check {
        "workers" => "every queue with waiting jobs has a worker, or is paused",
        "queues" => "no queue is full, or paused while jobs wait",
        "limits" => "no limit is closed or stands still while something waits for it",
        "pools" => "no pool that something waits for is empty",
        "schedules" => "no schedule is late, and the last job of none failed",
        "failures" => "no job failed in the last hour",
        _ => {
            return standing.stats.oldest_ready_at.map_or(
                "no ready job waits".to_owned(),
                |ready| {
                    let waits = rough(standing.now.since(ready));
                    format!("the oldest ready job has waited for {waits}")
                },
            );
        }
    };
    sentence.to_owned()
}

/// The first of them, and how many more there are.
fn several(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    all.take(NAMED).collect::<Vec<_>>().join("; ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::finding::Severity::{Look, Ok as Well, Wrong};

    #[test]
    fn a_clock_is_off_beyond_what_its_seconds_explain() {
        let now = SystemTime::now();
        let s = Duration::from_secs;
        for (date, level, part) in [
            (Some(now), Well, "agrees"),
            (Some(now - s(2)), Well, "agrees"),
            (Some(now + s(90)), Look, "90 s ahead of"),
            (Some(now - s(92)), Look, "90 s behind"),
            (None, Look, "does not send"),
        ] {
            let (is, found, _) = clock(date, now, now);
            assert_eq!(is, level, "{found}");
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn a_token_is_judged_by_what_the_server_asks_for() {
        let level = |ours, open, status, here| -> Severity { of_token(ours, open, status, here).0 };
        assert_eq!(level(false, false, 401, true), Wrong);
        assert_eq!(level(true, false, 401, true), Wrong);
        assert_eq!(level(true, false, 200, false), Well);
        assert_eq!(level(true, true, 200, true), Look);
        assert_eq!(level(false, true, 200, true), Well);
        assert_eq!(level(false, true, 200, false), Look);
        assert_eq!(level(false, true, 403, false), Wrong);
    }

    #[test]
    fn sentences_that_are_many_are_counted() {
        assert_eq!(several(["a", "b"].map(str::to_owned).into_iter()), "a; b");
        let many = (0..7).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(several(many.into_iter()), "0; 1; 2; 3; 4; and 2 more");
    }
}
