//! One look at the crawl through Tenure's public API, as any user can take it.

use std::collections::BTreeMap;

use tenure::Client;
use tenure_core::bounds::LIST_MAX;
use tenure_core::job::{JobState, JobView};
use tenure_core::requests::{
    GetStats, JobFilter, ListJobs, ListLimits, ListResources, ListWorkers, Page,
};
use tenure_core::settings::{ResourceState, ResourceView};
use tenure_engine_api::{CallError, EngineExt};

use super::crawl::DemoNames;

/// State of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    pub done: u64,
    /// Permits of its limit that are in use.
    pub in_use: u64,
    /// Jobs in its line.
    pub waiting: u64,
}

/// State of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: String,
    /// Its holder, or why nobody has it, in a word or two.
    pub state: String,
    /// Leases that hold it.
    pub in_use: u32,
}

/// The result of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemoLook {
    /// Hosts by their names.
    pub hosts: BTreeMap<String, Host>,
    pub accounts: Vec<Account>,
    /// Jobs that succeeded, on all hosts.
    pub done: u64,
    pub running: u64,
    /// Jobs that are not finished.
    pub open: u64,
}

/// The most that was in use in any look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// Most permits of one host.
    pub host: u64,
    /// Most leases of one account.
    pub account: u32,
}

impl Most {
    /// Takes a look into account.
    pub fn note(&mut self, look: &DemoLook) {
        let host = look.hosts.values().map(|host| host.in_use).max().unwrap_or(0);
        let account = look.accounts.iter().map(|account| account.in_use).max().unwrap_or(0);
        self.host = self.host.max(host);
        self.account = self.account.max(account);
    }
}

/// Looks once, without retries, since a server that is away is a part of the show.
pub async fn look(client: &Client, words: &DemoNames) -> Result<DemoLook, CallError> {
    let (engine, namespace) = (client.engine(), client.namespace());
    let page = || Page { max: LIST_MAX, cursor: None };
    let pool = words.accounts.clone();
    let (stats, limits, resources, workers, done) = tokio::try_join!(
        engine.run(namespace, GetStats),
        engine.run(namespace, ListLimits { page: page() }),
        engine.run(namespace, ListResources { pool, page: page() }),
        engine.run(namespace, ListWorkers { page: page() }),
        engine.run(namespace, succeeded(words, page(), false)),
    )?;
    let mut look = DemoLook::default();
    for (state, count) in stats.jobs {
        match state {
            JobState::Succeeded => look.done += count,
            state if state.is_finished() => {}
            state => {
                look.open += count;
                look.running += if state == JobState::Running { count } else { 0 };
            }
        }
    }
    for limit in limits.items.iter().filter(|limit| !limit.name.is_template()) {
        let host = look.hosts.entry(limit.name.key().unwrap_or_default().to_owned()).or_default();
        (host.in_use, host.waiting) = (limit.in_use, limit.waiting);
    }
    for job in done.items {
        let host = job.group.map(|group| group.to_string()).unwrap_or_default();
        look.hosts.entry(host).or_default().done += 1;
    }
    let names: BTreeMap<String, String> = workers
        .items
        .into_iter()
        .map(|worker| (worker.id.to_string(), format!("pid {}", worker.pid.unwrap_or(0))))
        .collect();
    look.accounts = resources.items.iter().map(|one| account(one, &names)).collect();
    Ok(look)
}

fn account(one: &ResourceView, names: &BTreeMap<String, String>) -> Account {
    let state = match (one.state, one.holders.first()) {
        (ResourceState::Banned, _) => "banned".to_owned(),
        (_, Some(holder)) => names.get(&holder.holder).cloned().unwrap_or("somebody".to_owned()),
        (ResourceState::Cooling, None) => "resting".to_owned(),
        (ResourceState::Available, None) => "free".to_owned(),
    };
    Account { id: one.id.to_string(), state, in_use: one.in_use }
}

fn succeeded(words: &DemoNames, page: Page, full: bool) -> ListJobs {
    let states = vec![JobState::Succeeded];
    let filter = JobFilter { queue: Some(words.queue.clone()), states, ..JobFilter::default() };
    ListJobs { filter, page, full }
}

/// All jobs that succeeded, with their results.
pub async fn all_succeeded(client: &Client, words: &DemoNames) -> Result<Vec<JobView>, CallError> {
    let mut jobs = Vec::new();
    let mut cursor = None;
    loop {
        let page = Page { max: LIST_MAX, cursor };
        let listed = client.run(succeeded(words, page, true)).await?;
        jobs.extend(listed.items);
        cursor = listed.next;
        if cursor.is_none() {
            return Ok(jobs);
        }
    }
}
