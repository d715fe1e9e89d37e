//! The site's own counts: which worker fetched which page, and how many at once.
//!
//! It knows nothing of Tenure and believes nobody: a request runs from the moment it was read until
//! the site answers it or its client is gone. Pure: no clock, no I/O.

use std::collections::BTreeMap;

/// A request that the site has read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetch {
    pub host: String,
    pub page: String,
    pub account: String,
    /// The name that the worker gave itself.
    pub worker: String,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchEnd {
    /// The page was served.
    Answered,
    /// The account is banned.
    Banned,
    /// The client was gone before.
    Gone,
}

/// How many at once, now and at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtOnce {
    now: u32,
    /// Most at once until now.
    pub most: u32,
}

impl AtOnce {
    fn begin(&mut self) {
        self.now += 1;
        self.most = self.most.max(self.now);
    }
    fn end(&mut self) {
        self.now = self.now.saturating_sub(1);
    }
}

/// One answer of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageAnswer {
    /// The number of the fetch.
    pub fetch: u64,
    /// The worker that got it.
    pub worker: String,
}

/// The fetches and answers of a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageWitness {
    /// Fetches of it at once.
    pub at_once: AtOnce,
    /// Its answers, in order.
    pub answers: Vec<PageAnswer>,
    /// Requests whose client was gone before the answer.
    pub dropped: u32,
}

/// The counts of the site.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    running: BTreeMap<u64, Fetch>,
    begun: u64,
    hosts: BTreeMap<String, AtOnce>,
    accounts: BTreeMap<String, AtOnce>,
    /// By page, host and path.
    pub pages: BTreeMap<String, PageWitness>,
    /// Pages that were served.
    pub answered: u64,
    /// Requests that were answered with a ban, by account.
    pub banned: BTreeMap<String, u32>,
}

impl Witness {
    /// Counts a new request, and returns its number.
    pub fn begin(&mut self, fetch: Fetch) -> u64 {
        self.begun += 1;
        self.hosts.entry(fetch.host.clone()).or_default().begin();
        self.accounts.entry(fetch.account.clone()).or_default().begin();
        self.pages.entry(fetch.page.clone()).or_default().at_once.begin();
        self.running.insert(self.begun, fetch);
        self.begun
    }

    /// Counts the end of a request. A request that did not begin, or has ended, is not counted
    /// again.
    pub fn end(&mut self, number: u64, end: FetchEnd) {
        let Some(fetch) = self.running.remove(&number) else { return };
        let counts = [self.hosts.get_mut(&fetch.host), self.accounts.get_mut(&fetch.account)];
        for count in counts.into_iter().flatten() {
            count.end();
        }
        let page = self.pages.entry(fetch.page).or_default();
        page.at_once.end();
        match end {
            FetchEnd::Answered => {
                self.answered += 1;
                page.answers.push(PageAnswer { fetch: number, worker: fetch.worker });
            }
            FetchEnd::Banned => *self.banned.entry(fetch.account).or_default() += 1,
            FetchEnd::Gone => page.dropped += 1,
        }
    }

    /// The most requests at once on one host.
    pub fn most_on_a_host(&self) -> u32 {
        most(&self.hosts)
    }
    /// The most requests at once with one account.
    pub fn most_with_an_account(&self) -> u32 {
        most(&self.accounts)
    }
    /// Pages that were fetched by two at one time.
    pub fn fetched_at_once(&self) -> Vec<String> {
        self.pages_where(|page| page.at_once.most > 1)
    }
    /// Pages that were served more than once.
    pub fn served_again(&self) -> Vec<String> {
        self.pages_where(|page| page.answers.len() > 1)
    }
    fn pages_where(&self, which: impl Fn(&PageWitness) -> bool) -> Vec<String> {
        let pages = self.pages.iter().filter(|(_, page)| which(page));
        pages.map(|(name, _)| name.clone()).collect()
    }
}

fn most(counts: &BTreeMap<String, AtOnce>) -> u32 {
    counts.values().map(|count| count.most).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(host: &str, page: &str, account: &str) -> Fetch {
        let own = str::to_owned;
        Fetch { host: own(host), page: own(page), account: own(account), worker: own("w1") }
    }

    #[test]
    fn an_overlap_is_seen_on_the_host_the_account_and_the_page() {
        let mut seen = Witness::default();
        let first = seen.begin(fetch("a", "a/1", "ann"));
        let second = seen.begin(fetch("a", "a/1", "ann"));
        let third = seen.begin(fetch("a", "a/2", "bob"));
        for number in [first, second, third] {
            seen.end(number, FetchEnd::Answered);
        }
        assert_eq!(seen.most_on_a_host(), 3);
        assert_eq!(seen.most_with_an_account(), 2);
        assert_eq!(seen.fetched_at_once(), ["a/1"]);
        assert_eq!(seen.served_again(), ["a/1"]);
    }

    #[test]
    fn one_after_the_other_is_no_overlap() {
        let mut seen = Witness::default();
        for _ in 0..5 {
            let number = seen.begin(fetch("a", "a/1", "ann"));
            seen.end(number, FetchEnd::Gone);
            // A second end does not make room for an overlap.
            seen.end(number, FetchEnd::Answered);
        }
        assert_eq!((seen.most_on_a_host(), seen.most_with_an_account()), (1, 1));
        assert!(seen.fetched_at_once().is_empty() && seen.served_again().is_empty());
        assert_eq!((seen.pages["a/1"].dropped, seen.answered), (5, 0));
    }

    #[test]
    fn a_request_that_is_dropped_counts_until_then() {
        let mut seen = Witness::default();
        let gone = seen.begin(fetch("a", "a/1", "ann"));
        seen.end(gone, FetchEnd::Gone);
        let next = seen.begin(fetch("a", "a/1", "ann"));
        seen.end(next, FetchEnd::Banned);
        assert_eq!(seen.most_with_an_account(), 1);
        assert_eq!(seen.banned["ann"], 1);
    }
}
