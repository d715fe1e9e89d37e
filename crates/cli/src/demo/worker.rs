//! One of the demo's workers: a process that crawls, four pages at once, with the account that each
//! page was granted. It says on stdout which fetches Tenure accepted, and ends when stdin is closed.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use tenure::{Client, Event, Job, Remote, SettleOutcome, StoreUrl};
use tenure_core::job::JobState;
use tenure_core::lease::Verdict;
use tenure_core::names::{JobId, Namespace};
use tenure_core::time::Span;

use super::crawl::{CrawlPage, DemoNames, Got, TTL};
use super::fetch::{Fetched, fetch};
use super::witness::Fetch;
use crate::child_processes;
use crate::exit::Failure;

/// Pages that one worker crawls at once.
pub const SLOTS: usize = 4;
/// A page that could not be fetched is tried again after this long.
const AGAIN: Span = Span::from_ms(100);

/// How a worker of the demo is started.
#[derive(Args, Debug)]
pub struct WorkerArgs {
    /// The server.
    #[arg(long)]
    server: String,
    /// The site.
    #[arg(long)]
    site: SocketAddr,
    /// How it calls itself at the site.
    #[arg(long)]
    name: String,
}

/// A fetch whose settle was accepted, as a worker says it on stdout.
pub struct Accepted {
    pub page: String,
    /// The number that the site gave to the fetch.
    pub fetch: u64,
}

impl Accepted {
    fn say(&self) {
        // The reader may be gone: then nobody wants to know.
        let _ = writeln!(std::io::stdout(), "accepted {} {}", self.fetch, self.page);
    }
    /// Reads such a line.
    pub fn read(line: &str) -> Option<Self> {
        let (fetch, page) = line.strip_prefix("accepted ")?.split_once(' ')?;
        Some(Accepted { page: page.to_owned(), fetch: fetch.parse().ok()? })
    }
}

type Fetches = Arc<Mutex<BTreeMap<JobId, u64>>>;

/// Crawls until stdin is closed.
pub async fn run(args: WorkerArgs) -> Result<(), Failure> {
    let url = args.server.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let StoreUrl::Server(url) = url else {
        return Err(Failure::usage("the demo's workers need a server"));
    };
    let remote = Remote::open(&url, None).map_err(|error| Failure::usage(error.to_string()))?;
    let client = Client::new(Arc::new(remote), Namespace::main());
    let words = DemoNames::new()?;
    let fetches = Fetches::default();
    let worker = client.worker(vec![words.queue.clone()]).concurrency(SLOTS).ttl(TTL);
    let worker = worker.observe({
        let fetches = fetches.clone();
        move |event| observe(&fetches, event)
    });
    let stopper = worker.stopper();
    tokio::spawn(async move {
        child_processes::told_to_finish().await;
        stopper.drain();
    });
    let name: Arc<str> = args.name.into();
    worker
        .run(move |job| crawl(job, args.site, name.clone(), words.clone(), fetches.clone()))
        .await?;
    Ok(())
}

fn observe(fetches: &Fetches, event: &Event) {
    let Event::Settled { job, state: Some(JobState::Succeeded) } = event else { return };
    let fetch = fetches.lock().unwrap_or_else(PoisonError::into_inner).remove(job);
    if let Some(fetch) = fetch {
        Accepted { page: job.to_string(), fetch }.say();
    }
}

async fn crawl(
    job: Job,
    site: SocketAddr,
    name: Arc<str>,
    words: DemoNames,
    fetches: Fetches,
) -> SettleOutcome {
    let Ok(CrawlPage { host, page }) = job.payload() else {
        return SettleOutcome::failed_for_good("the payload is not a page");
    };
    let Some(account) = job.resource(&words.accounts) else {
        return SettleOutcome::failed_for_good("the job came without an account");
    };
    let ask = Fetch { host, page, account: account.id.to_string(), worker: name.to_string() };
    match fetch(site, &ask).await {
        Ok(Fetched::Page(fetch)) => {
            fetches.lock().unwrap_or_else(PoisonError::into_inner).insert(job.id().clone(), fetch);
            SettleOutcome::succeeded_with(&Got { fetch })
        }
        Ok(Fetched::Banned) => {
            let verdict = Verdict::Ban { reason: Some("the site answered 403".to_owned()) };
            let pool = words.accounts.clone();
            SettleOutcome::failed_retry_in("the account is banned", AGAIN).resource(
                pool,
                account.id.clone(),
                verdict,
            )
        }
        Err(error) => SettleOutcome::failed_retry_in(error, AGAIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_can_be_read() {
        let said = Accepted::read("accepted 17 news.example/1").unwrap();
        assert_eq!((said.fetch, said.page.as_str()), (17, "news.example/1"));
        assert!(Accepted::read("hello").is_none());
    }
}
