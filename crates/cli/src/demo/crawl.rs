//! The crawl of the demo and its caps: the pages, the limits, the pool, the jobs.

use serde::{Deserialize, Serialize};
use tenure_core::job::{Need, NewJob};
use tenure_core::names::{Group, JobId, LimitName, PoolName, QueueName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Meant, PutLimit, PutPool, SyncResources};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource, Pick, PoolSettings, Rate};
use tenure_core::time::Span;

use tenure::Client;

use crate::exit::Failure;

/// Number of all pages.
pub const PAGES: usize = 300;
/// The hosts, and how many pages each has. Some have more than others: with pages of a few hosts
/// left there are more accounts than these hosts bear, so that the cap is judged, and not how few
/// requests come at once.
pub const HOSTS: [(&str, usize); 6] = [
    ("news.example", 80),
    ("shop.example", 80),
    ("maps.example", 50),
    ("wiki.example", 40),
    ("jobs.example", 30),
    ("film.example", 20),
];
/// Requests that a host bears at once.
pub const PER_HOST: u32 = 2;
/// Requests that a host bears in a second, and at once after a rest.
const RATE: Rate = Rate { count: 6, per: Span::from_s(1), burst: 2 };
/// Accounts, each good for one request at once.
pub const ACCOUNTS: usize = 8;
/// The ttl of a lease: a worker without a heartbeat for this long is dead.
pub const TTL: Span = Span::from_s(2);
/// How long an account rests after its holder died.
const QUARANTINE: Span = Span::from_s(1);

/// The words that the demo uses.
#[derive(Clone, Debug)]
pub struct DemoNames {
    /// The queue of the pages.
    pub queue: QueueName,
    /// The pool of the accounts.
    pub accounts: PoolName,
}

impl DemoNames {
    /// They are always the same.
    pub fn new() -> Result<Self, Refusal> {
        Ok(DemoNames { queue: QueueName::parse("crawl")?, accounts: PoolName::parse("accounts")? })
    }
}

/// The payload of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CrawlPage {
    pub host: String,
    /// The page, host and path.
    pub page: String,
}

/// The result of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Got {
    /// The number that the site gave to the fetch.
    pub fetch: u64,
}

/// All pages, the first of each host, the second of each, and so on.
pub fn pages() -> Vec<CrawlPage> {
    let numbered =
        |n: usize| HOSTS.iter().filter(move |(_, pages)| n <= *pages).map(move |h| (h.0, n));
    let page =
        |(host, n): (&str, usize)| CrawlPage { host: host.to_owned(), page: format!("{host}/{n}") };
    (1..=PAGES).flat_map(numbered).map(page).collect()
}

/// Sets the limit and fills the pool.
pub async fn prepare(client: &Client, words: &DemoNames) -> Result<(), Failure> {
    let settings =
        LimitSettings { concurrency: Some(PER_HOST), rate: Some(RATE), ..Default::default() };
    client.run(PutLimit { limit: LimitName::parse("site:*")?, settings, gauge: None }).await?;
    let pool = words.accounts.clone();
    let settings = PoolSettings { quarantine: QUARANTINE, pick: Pick::Lru, ..Default::default() };
    client.run(PutPool { pool: pool.clone(), settings }).await?;
    let account = |n: usize| -> Result<NewResource, Refusal> {
        let id = ResourceId::parse(&format!("account-{n}"))?;
        Ok(NewResource { id, data: Json::null(), tags: Vec::new(), slots: 1 })
    };
    let resources = (1..=ACCOUNTS).map(account).collect::<Result<_, _>>()?;
    client.run(SyncResources { pool, resources, meant: Meant::Ask, version: None }).await?;
    Ok(())
}

/// The job of a page: its id is the page.
fn job(words: &DemoNames, page: &CrawlPage) -> Result<NewJob, Failure> {
    let mut job = NewJob::new(words.queue.clone());
    job.id = Some(JobId::parse(&page.page)?);
    job.payload = Json::of(page).map_err(Failure::bug)?;
    job.group = Some(Group::parse(&page.host)?);
    job.needs = Some(vec![
        Need::Limit {
            limit: LimitName::parse(&format!("site:{}", page.host))?,
            weight: 1,
            cost: 1,
        },
        Need::Pool { pool: words.accounts.clone(), tag: None, prefer: None, id: None, count: 1 },
    ]);
    Ok(job)
}

/// Pushes all pages in one call.
pub async fn push(client: &Client, words: &DemoNames) -> Result<(), Failure> {
    let jobs = pages().iter().map(|page| job(words, page)).collect::<Result<Vec<_>, _>>()?;
    client.push_all(jobs).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_pages_as_is_said_and_no_page_twice() {
        let pages: std::collections::BTreeSet<_> = pages().into_iter().map(|p| p.page).collect();
        assert_eq!(pages.len(), PAGES);
        assert_eq!(super::pages().len(), PAGES);
    }
}
