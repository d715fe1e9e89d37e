//! `tenure-lab fuzz`: sends requests of every route of `/openapi.json`, right and broken, many at once, and checks
//! every answer.
//!
//! It knows no route by itself: it sends what the server's own document offers. A finding is an answer that the
//! contract does not allow or that comes too late, a server that takes too much memory, or an audit that is not clean.

mod document;
mod judge;
mod request;
mod value;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tenure_console::child_processes::{ServerStore, temporary_folder, unless_interrupted};
use tenure_console::exit::{Failure, NO};
use tenure_console::output::Output;
use tokio::task::JoinSet;

use self::document::Document;
use self::request::{Framing, NAMESPACES, Sent};
use self::wire::{FuzzHeard, Silence, send};
use crate::chance::Chance;
use crate::{say, under_test};

/// The longest permitted answer time; no request waits for more than 0.3 s by itself.
const LATE: Duration = Duration::from_secs(5);
/// An audit reads everything.
const AUDIT_MAX: Duration = Duration::from_secs(120);
/// Callers that send requests at once.
const CALLERS: u64 = 8;
/// The most memory that a server of our own may have used at its peak.
const PEAK_BYTES_MAX: u64 = 1 << 30;
/// Findings that are shown.
const SHOWN: usize = 20;
/// Ids of leases that a caller remembers, to extend and settle them.
const LEASES: usize = 50;

/// Send random requests, right and broken, and check every answer.
#[derive(Args, Debug, Clone)]
pub struct FuzzArgs {
    /// How many requests.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    requests: u64,
    /// Makes the requests those of an earlier run; printed at the start.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The server to call, as HOST:PORT, without a token; one of our own if absent. Its data in the namespaces default,
    /// fuzz-a and fuzz-b may be lost.
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct FuzzAnswer {
    ok: bool,
    seed: u64,
    requests: u64,
    statuses: BTreeMap<String, u64>,
    slowest_ms: f64,
    peak_bytes: Option<u64>,
    findings: usize,
    shown: Vec<String>,
}

/// The findings of all callers.
#[derive(Default)]
struct FuzzFindings {
    statuses: BTreeMap<String, u64>,
    slowest: Duration,
    findings: usize,
    shown: Vec<String>,
}

impl FuzzFindings {
    fn fault(&mut self, text: String) {
        self.findings += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(text);
        }
    }

    fn count(&mut self, heard: &Result<FuzzHeard, Silence>, took: Duration) {
        let word = match heard {
            Ok(heard) => heard.status.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        *self.statuses.entry(word).or_default() += 1;
        if heard.is_ok() {
            self.slowest = self.slowest.max(took);
        }
    }
}

/// Runs the check; exit 1 if it finds something.
pub async fn run(out: Output, args: FuzzArgs) -> Result<(), Failure> {
    unless_interrupted(fuzz(out, args)).await
}

async fn fuzz(out: Output, args: FuzzArgs) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(Chance::any_seed);
    say(&format!("seed {seed}"));
    let folder = temporary_folder(None)?;
    let (host, own) = match args.server {
        Some(host) => (host, None),
        None => {
            let own = under_test::server(folder.path(), ServerStore::folder("everysec")).await?;
            let url = own.url();
            (format!("{}:{}", url.host, url.port), Some(own))
        }
    };
    let document = Arc::new(Document::read(&get(&host, "/openapi.json", LATE).await?)?);
    let found = Arc::new(Mutex::new(FuzzFindings::default()));
    let mut callers = JoinSet::new();
    for n in 0..CALLERS {
        let caller = FuzzCaller {
            chance: Chance::of(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9))),
            document: document.clone(),
            host: host.clone(),
            found: found.clone(),
            leases: Vec::new(),
        };
        let share = args.requests / CALLERS + u64::from(n < args.requests % CALLERS);
        callers.spawn(caller.run(share));
    }
    while let Some(ended) = callers.join_next().await {
        ended.map_err(Failure::bug)?;
    }
    let mut found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    for namespace in NAMESPACES {
        match audit(&host, namespace).await {
            Ok(audit) if audit["ok"] == true => {}
            Ok(audit) => found.fault(format!("audit of {namespace}: {}", audit["faults"])),
            Err(failure) => found.fault(format!("audit of {namespace}: {failure:?}")),
        }
    }
    let peak = own.as_ref().and_then(|own| peak_bytes(own.pid()));
    if let Some(peak) = peak.filter(|peak| *peak > PEAK_BYTES_MAX) {
        found.fault(format!("the server had {} MiB at its peak", peak >> 20));
    }
    let answer = FuzzAnswer {
        ok: found.findings == 0,
        seed,
        requests: args.requests,
        statuses: found.statuses,
        slowest_ms: found.slowest.as_secs_f64() * 1_000.0,
        peak_bytes: peak,
        findings: found.findings,
        shown: found.shown,
    };
    out.answer(&answer, text)?;
    match answer.findings {
        0 => Ok(()),
        n => Err(Failure::new(NO, format!("{n} findings"))
            .hint(format!("this is a bug: please report it, with --seed {seed}"))),
    }
}

fn text(answer: &FuzzAnswer) -> String {
    let mut text = format!("{} requests\n", answer.requests);
    for (status, count) in &answer.statuses {
        text += &format!("{status:>10} {count}\n");
    }
    text += &format!("the slowest answer took {:.0} ms\n", answer.slowest_ms);
    if let Some(peak) = answer.peak_bytes {
        text += &format!("the server had {} MiB at its peak\n", peak >> 20);
    }
    for finding in &answer.shown {
        text += &format!("FINDING {finding}\n");
    }
    text
}

/// One of the callers that send requests at once.
struct FuzzCaller {
    chance: Chance,
    document: Arc<Document>,
    host: String,
    found: Arc<Mutex<FuzzFindings>>,
    leases: Vec<String>,
}

impl FuzzCaller {
    async fn run(mut self, requests: u64) {
        for _ in 0..requests {
            let chance = &mut self.chance;
            let sent = request::request(chance, &self.document, &self.host, &self.leases);
            let again = chance.percent(6);
            let (first, second) = if again {
                // The same request twice at once, like a client that retries too soon.
                tokio::join!(self.ask(&sent), self.ask(&sent))
            } else {
                (self.ask(&sent).await, None)
            };
            for heard in [first, second].into_iter().flatten() {
                self.learn(&heard);
            }
        }
    }

    async fn ask(&self, sent: &Sent) -> Option<FuzzHeard> {
        let begun = Instant::now();
        // The server waits for a body that does not come; to wait as long would take all day.
        let most = if sent.framing == Framing::Cut { Duration::from_secs(1) } else { LATE };
        let heard = send(&self.host, sent, most).await;
        let took = begun.elapsed();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.count(&heard, took);
        if let Some(what) = judge::fault(sent, &heard) {
            let body = sent.bytes.windows(4).position(|four| four == b"\r\n\r\n");
            let body = String::from_utf8_lossy(&sent.bytes[body.map_or(0, |at| at + 4)..]);
            let body: String = body.chars().take(400).collect();
            found.fault(format!("{}: {what} ({:?}, body {body})", sent.name, sent.framing));
        }
        heard.ok()
    }

    /// Remembers leases, which later calls may name.
    fn learn(&mut self, heard: &FuzzHeard) {
        if heard.status != 200 || !heard.body.starts_with(b"{\"leases\"") {
            return;
        }
        let Ok(said) = serde_json::from_slice::<Value>(&heard.body) else { return };
        let leases = said["leases"].as_array().into_iter().flatten();
        self.leases.extend(leases.filter_map(|lease| Some(lease["lease"].as_str()?.to_owned())));
        let old = self.leases.len().saturating_sub(LEASES);
        self.leases.drain(..old);
    }
}

async fn get(host: &str, target: &str, most: Duration) -> Result<Value, Failure> {
    ask(host, target, "", most).await
}

async fn audit(host: &str, namespace: &str) -> Result<Value, Failure> {
    ask(host, "/v1/audit", &format!("Tenure-Namespace: {namespace}\r\n"), AUDIT_MAX).await
}

async fn ask(host: &str, target: &str, headers: &str, most: Duration) -> Result<Value, Failure> {
    let bytes = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").into_bytes();
    let (name, method) = (format!("GET {target}"), "GET".to_owned());
    let sent = Sent { name, method, bytes, framing: Framing::Length };
    let no = |why: String| Failure::new(NO, format!("{target} of {host}: {why}"));
    let heard = send(host, &sent, most).await.map_err(|why| no(format!("{why:?}")))?;
    serde_json::from_slice(&heard.body).map_err(|why| no(why.to_string()))
}

/// The peak memory of a process, if the system reports it.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
