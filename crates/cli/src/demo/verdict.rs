//! The end of the demo: what the site counted, beside what Tenure says, and what must hold.
//!
//! Pure: it judges what it is given.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tenure_core::count::counted;

use super::crawl::{PER_HOST, Page};
use super::look::Most;
use super::witness::Witness;
use crate::output::table::Table;

/// Leases that one account bears.
const PER_ACCOUNT: u32 = 1;
/// Pages that are named; there may be more.
const SHOWN: usize = 12;

/// What Tenure and the workers say.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// By page: the fetch in the result of the job that succeeded.
    pub results: BTreeMap<String, u64>,
    /// By page: the fetches whose settle a worker was told to be accepted.
    pub accepted: BTreeMap<String, BTreeSet<u64>>,
    /// The most that was seen in use by looking.
    pub most: Most,
    /// The jobs that the killed worker held.
    pub held: Vec<String>,
    /// The killed worker, as it called itself at the site.
    pub killed: String,
    /// Faults that Tenure's own audit found.
    pub faults: Vec<String>,
}

/// A count that must hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    /// What is counted.
    pub what: &'static str,
    /// What the site counted.
    pub site: String,
    /// What Tenure says.
    pub tenure: String,
    /// What must hold.
    pub must: String,
    /// Whether it does.
    pub ok: bool,
}

/// The verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verdict {
    /// Whether all counts hold.
    pub ok: bool,
    /// What must hold.
    pub counts: Vec<Count>,
    /// Pages fetched again because their worker was killed between the answer and its settle.
    pub taken_back: Vec<String>,
    /// The jobs that the killed worker held.
    pub held_by_the_killed: Vec<String>,
    /// Pages fetched again for another reason, after one that nobody accepted.
    pub fetched_again: Vec<String>,
    /// Requests that came with an account after it was banned.
    pub asked_with_the_banned: u32,
    /// What Tenure's own audit found.
    pub faults: Vec<String>,
}

fn of_pages(n: usize) -> String {
    counted(n as u64, "page", "pages")
}

/// Judges.
pub fn judge(pages: &[Page], seen: &Witness, told: &Told) -> Verdict {
    let answered = |page: &&Page| seen.pages.get(&page.page).is_some_and(|p| !p.answers.is_empty());
    let unanswered = pages.len() - pages.iter().filter(answered).count();
    let lost: Vec<_> = pages.iter().filter(|p| !told.results.contains_key(&p.page)).collect();
    let twice = accepted_twice(told);
    let at_once = seen.fetched_at_once();
    let (host, account) = (seen.most_on_a_host(), seen.most_with_an_account());
    let counts = vec![
        Count {
            what: "most at once on one host",
            site: host.to_string(),
            tenure: format!("{} seen in use", told.most.host),
            must: format!("<= {PER_HOST}"),
            ok: host <= PER_HOST && told.most.host <= u64::from(PER_HOST),
        },
        Count {
            what: "most at once with one account",
            site: account.to_string(),
            tenure: format!("{} seen in use", told.most.account),
            must: format!("<= {PER_ACCOUNT}"),
            ok: account <= PER_ACCOUNT && told.most.account <= PER_ACCOUNT,
        },
        Count {
            what: "lost",
            site: format!("{} never served", of_pages(unanswered)),
            tenure: format!("{} without a succeeded job", of_pages(lost.len())),
            must: "0".to_owned(),
            ok: lost.is_empty() && unanswered == 0,
        },
        Count {
            what: "doubled",
            site: format!("{} fetched by two at one time", of_pages(at_once.len())),
            tenure: format!("{} with two accepted results", of_pages(twice.len())),
            must: "0".to_owned(),
            ok: twice.is_empty() && at_once.is_empty(),
        },
    ];
    let again = seen.served_again();
    let by_the_killed = |page: &String| {
        let answers = &seen.pages[page].answers;
        answers.iter().any(|a| a.worker == told.killed && told.results.get(page) != Some(&a.fetch))
    };
    let (taken_back, fetched_again) = again.into_iter().partition(by_the_killed);
    Verdict {
        ok: counts.iter().all(|count| count.ok) && told.faults.is_empty(),
        counts,
        taken_back,
        fetched_again,
        held_by_the_killed: told.held.clone(),
        asked_with_the_banned: seen.banned.values().sum(),
        faults: told.faults.clone(),
    }
}

/// Pages of which two different fetches were accepted: by what the workers were told, and by what
/// the job has as its result now.
fn accepted_twice(told: &Told) -> Vec<String> {
    let mut accepted = told.accepted.clone();
    for (page, fetch) in &told.results {
        accepted.entry(page.clone()).or_default().insert(*fetch);
    }
    accepted.into_iter().filter(|(_, all)| all.len() > 1).map(|(page, _)| page).collect()
}

impl Verdict {
    /// For people.
    pub fn text(&self) -> String {
        let mut table = Table::new(&["", "the site counted", "Tenure says", "must be", ""]);
        for count in &self.counts {
            let holds = if count.ok { "holds" } else { "BROKEN" };
            table.row([
                count.what.to_owned(),
                count.site.clone(),
                count.tenure.clone(),
                count.must.clone(),
                holds.to_owned(),
            ]);
        }
        let mut text = table.render("nothing was counted");
        let list = |pages: &[String]| match pages {
            [] => "none".to_owned(),
            pages if pages.len() <= SHOWN => format!("{} ({})", pages.len(), pages.join(", ")),
            pages => format!("{} ({}, …)", pages.len(), pages[..SHOWN].join(", ")),
        };
        text +=
            &format!("\njobs that the killed worker held: {}\n", list(&self.held_by_the_killed));
        text += &format!(
            "taken back, so fetched again after an answer that was not settled: {}\n\
             at least once is the promise, and this is how it looks\n",
            list(&self.taken_back)
        );
        if !self.fetched_again.is_empty() {
            text += &format!("fetched again otherwise: {}\n", list(&self.fetched_again));
        }
        text += &format!("requests with the banned account: {}\n", self.asked_with_the_banned);
        let audit = match self.faults.as_slice() {
            [] => "clean".to_owned(),
            faults => faults.join("; "),
        };
        text += &format!("Tenure's own audit: {audit}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{End, Fetch};
    use super::*;

    fn begin(seen: &mut Witness, page: &str, account: &str, worker: &str) -> u64 {
        let own = str::to_owned;
        let host = own(page.split('/').next().unwrap());
        seen.begin(Fetch { host, page: own(page), account: own(account), worker: own(worker) })
    }

    /// Two pages of two hosts, each fetched once and accepted.
    fn well() -> (Vec<Page>, Witness, Told) {
        let (mut seen, mut told) = (Witness::default(), Told::default());
        told.killed = "w2".to_owned();
        let mut pages = Vec::new();
        for page in ["a/1", "b/1"] {
            let fetch = begin(&mut seen, page, "ann", "w1");
            seen.end(fetch, End::Answered);
            told.results.insert(page.to_owned(), fetch);
            told.accepted.entry(page.to_owned()).or_default().insert(fetch);
            let host = page.split('/').next().unwrap().to_owned();
            pages.push(Page { host, page: page.to_owned() });
        }
        (pages, seen, told)
    }

    fn broken(pages: &[Page], seen: &Witness, told: &Told) -> Vec<&'static str> {
        let verdict = judge(pages, seen, told);
        let broken: Vec<_> = verdict.counts.iter().filter(|c| !c.ok).map(|c| c.what).collect();
        assert_eq!(verdict.ok, broken.is_empty());
        assert_eq!(verdict.text().contains("BROKEN"), !verdict.ok);
        broken
    }

    #[test]
    fn a_crawl_without_a_fault_holds() {
        let (pages, seen, told) = well();
        assert!(broken(&pages, &seen, &told).is_empty());
    }

    #[test]
    fn every_fault_is_found() {
        let (pages, mut seen, told) = well();
        let all: Vec<_> = (0..3).map(|n| begin(&mut seen, &format!("a/{n}"), "x", "w1")).collect();
        assert_eq!(
            broken(&pages, &seen, &told),
            ["most at once on one host", "most at once with one account"]
        );
        drop(all);

        let (pages, mut seen, told) = well();
        begin(&mut seen, "a/1", "ann", "w1");
        begin(&mut seen, "a/1", "bob", "w3");
        assert_eq!(broken(&pages, &seen, &told), ["doubled"]);

        let (pages, seen, mut told) = well();
        told.accepted.entry("a/1".to_owned()).or_default().insert(99);
        assert_eq!(broken(&pages, &seen, &told), ["doubled"]);

        let (pages, seen, mut told) = well();
        told.results.remove("b/1");
        assert_eq!(broken(&pages, &seen, &told), ["lost"]);

        let (mut pages, seen, mut told) = well();
        pages.push(Page { host: "c".to_owned(), page: "c/1".to_owned() });
        told.results.insert("c/1".to_owned(), 7);
        assert_eq!(broken(&pages, &seen, &told), ["lost"]);

        let (pages, seen, mut told) = well();
        told.most.host = 3;
        assert_eq!(broken(&pages, &seen, &told), ["most at once on one host"]);

        let (pages, seen, mut told) = well();
        told.most.account = 2;
        assert_eq!(broken(&pages, &seen, &told), ["most at once with one account"]);

        let (pages, mut seen, told) = well();
        begin(&mut seen, "a/1", "ann", "w1");
        begin(&mut seen, "b/1", "ann", "w3");
        assert_eq!(broken(&pages, &seen, &told), ["most at once with one account"]);

        // The job says that it succeeded with a fetch other than the one that a worker was told of.
        let (pages, seen, mut told) = well();
        told.results.insert("a/1".to_owned(), 99);
        assert_eq!(broken(&pages, &seen, &told), ["doubled"]);
    }

    #[test]
    fn what_the_audit_finds_breaks_the_verdict() {
        let (pages, seen, mut told) = well();
        told.faults.push("a sum is wrong".to_owned());
        assert!(!judge(&pages, &seen, &told).ok);
    }

    #[test]
    fn a_page_that_was_taken_back_is_told_and_is_no_fault() {
        let (pages, mut seen, mut told) = well();
        for (page, worker) in [("a/1", "w2"), ("b/1", "w3")] {
            let fetch = begin(&mut seen, page, "ann", worker);
            seen.end(fetch, End::Answered);
        }
        told.held.push("a/1".to_owned());
        let verdict = judge(&pages, &seen, &told);
        assert!(verdict.ok);
        assert_eq!(verdict.taken_back, ["a/1"]);
        assert_eq!(verdict.fetched_again, ["b/1"]);
    }
}
