//! `tenure doctor`: is this Redis set up so that Tenure keeps its promises on it, and what to change?
//!
//! It asks; it changes nothing, but that it loads a function library of its own and removes it, to see
//! whether that is allowed. What it makes of the answers is in [`rules`].

mod facts;
mod rules;

use std::time::{Duration, Instant};

use serde::Serialize;
use tenure_engine_redis::library::Library;
use tenure_engine_redis::link::{Address, AddressError, Link, LinkError, LinkOptions, cmd};

use crate::args::Global;
use crate::args::redis::DoctorArgs;
use crate::exit::{Failure, NO, NOT_STARTED};
use crate::output::page::Page;
use crate::output::{Output, printable};
use crate::store::on_redis;

use self::facts::Facts;
use self::rules::{Finding, Severity};

/// How often the latency is measured; half of them are below what is said.
const PINGS: usize = 20;
/// Whoever asks a doctor is not in a hurry, and a first TLS connection may be far away.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest name of a check, so that all blocks of lines stand in the same columns.
const CHECK_WIDTH: usize = "persistence".len();

#[derive(Serialize)]
struct DoctorReport<'a> {
    ok: bool,
    store: String,
    findings: &'a [Finding],
}

/// Asks every primary, and says what it found; something wrong is exit 1.
pub async fn run(out: Output, global: &Global, args: DoctorArgs) -> Result<(), Failure> {
    let address = address(args.address.as_deref().unwrap_or(&global.url))?;
    let options = LinkOptions {
        connections: 1,
        connect_within: PATIENCE,
        patience: PATIENCE,
        ..LinkOptions::with(Library::release())
    };
    let link =
        Link::open(address, options).map_err(|why| Failure::new(NOT_STARTED, why.to_string()))?;
    let namespace = global.namespace.as_str();
    let facts = facts::gather(&link, namespace).await.map_err(on_redis::unreachable)?;
    let unheard = facts::unheard(&link, namespace, PATIENCE).await;
    let latency = latency(&link, namespace).await.map_err(on_redis::unreachable)?;
    let mut findings: Vec<Finding> =
        facts.iter().flat_map(|facts| rules::examine(link.address(), facts)).collect();
    findings.push(rules::listening(unheard, link.channels()));
    findings.push(rules::latency(PINGS, latency));
    tell(out, &link, &facts, &findings)
}

fn tell(out: Output, link: &Link, facts: &[Facts], findings: &[Finding]) -> Result<(), Failure> {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (wrong, notes) = (count(Severity::Wrong), count(Severity::Note));
    let report = DoctorReport { ok: wrong == 0, store: link.address().to_string(), findings };
    out.answer(&report, |report| {
        let mut text = format!("{}\n", printable(&report.store));
        let servers = facts.iter().map(|facts| Some(facts.server.as_str()));
        for server in servers.chain([None]) {
            if facts.len() > 1 {
                text.push_str(&format!("\n{}\n", printable(server.unwrap_or("all in all"))));
            }
            text.push_str(&page(findings.iter().filter(|one| one.server.as_deref() == server)));
        }
        text.push_str(match (wrong, notes) {
            (0, 0) => "all is well\n",
            (0, _) => "all is well; the notes say what each choice costs\n",
            _ => "",
        });
        text
    })?;
    if wrong == 0 {
        return Ok(());
    }
    let things = if wrong == 1 { "one thing is" } else { &format!("{wrong} things are") };
    Err(Failure::new(NO, format!("{things} wrong with this Redis"))
        .hint("change what the report says, and ask again"))
}

fn page<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let mut page = Page::default();
    for Finding { check, level, found, fix, .. } in findings {
        let arrow = fix.as_ref().map(|fix| format!("\n-> {fix}")).unwrap_or_default();
        page.field(
            &format!("{:<5}  {check:<CHECK_WIDTH$}", level.as_str()),
            format!("{found}{arrow}"),
        );
    }
    page.render()
}

fn address(text: &str) -> Result<Address, Failure> {
    Address::parse(text).map_err(|why| {
        let usage = Failure::usage(format!("doctor: {why}"));
        match why {
            AddressError::Invalid { .. } => usage,
            _ => usage.hint("name the Redis: tenure doctor redis://HOST:6379"),
        }
    })
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
