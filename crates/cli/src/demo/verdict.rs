//! The end of the demo: compares the site's counts with Tenure's, and judges what must hold.
//!
//! Pure: it judges what it is given.

use std::collections::{BTreeMap, BTreeSet};

use clap::builder::styling::AnsiColor;
use serde::Serialize;
use tenure_core::count::counted;

use super::crawl::{CrawlPage, PER_HOST};
use super::look::Most;
use super::witness::Witness;
use crate::output::colour;
use crate::output::prose::wrapped;
use crate::output::table::Table;

/// Leases that one account bears.
const PER_ACCOUNT: u32 = 1;
/// Most pages that are named.
const SHOWN: usize = 12;

/// The records of Tenure and the workers.
#[derive(Clone, Debug, Default)]
pub struct DemoRecords {
    /// By page: the fetch in the result of the job that succeeded.
    pub results: BTreeMap<String, u64>,
    /// By page: the fetches whose settle was accepted, as a worker saw it.
    pub accepted: BTreeMap<String, BTreeSet<u64>>,
    /// The most in use that any look found.
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
    /// The name for programs.
    pub name: &'static str,
    /// The count of the site.
    pub site: u64,
    /// The count in Tenure.
    pub tenure: u64,
    /// The worse of the two.
    pub value: u64,
    /// The most that is allowed.
    pub bound: u64,
    /// Whether `value` is at most `bound`.
    pub holds: bool,
    /// The name for people.
    #[serde(skip)]
    label: &'static str,
}

impl Count {
    fn new(name: &'static str, label: &'static str, site: u64, tenure: u64, bound: u64) -> Self {
        let value = site.max(tenure);
        Count { name, site, tenure, value, bound, holds: value <= bound, label }
    }
}

/// The verdict of the demo.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DemoVerdict {
    /// Whether all counts hold.
    pub ok: bool,
    /// All counts, each with its bound.
    pub counts: Vec<Count>,
    /// Pages fetched again because their worker was killed between the answer and its settle.
    pub taken_back: Vec<String>,
    /// The jobs that the killed worker held.
    pub held_by_the_killed: Vec<String>,
    /// Pages fetched again for another reason, after one that nobody accepted.
    pub fetched_again: Vec<String>,
    /// Requests that came with an account after it was banned.
    pub asked_with_the_banned: u32,
    /// Faults that Tenure's own audit found.
    pub faults: Vec<String>,
}

/// Compares the site's counts with the records.
pub fn judge(pages: &[CrawlPage], witness: &Witness, records: &DemoRecords) -> DemoVerdict {
    let answered =
        |page: &&CrawlPage| witness.pages.get(&page.page).is_some_and(|p| !p.answers.is_empty());
    let unanswered = pages.len() - pages.iter().filter(answered).count();
    let lost: Vec<_> = pages.iter().filter(|p| !records.results.contains_key(&p.page)).collect();
    let twice = accepted_twice(records);
    let at_once = witness.fetched_at_once();
    let (host, account) = (records.most.host, records.most.account.into());
    let count = |name, label, site: usize, tenure: usize| {
        Count::new(name, label, site as u64, tenure as u64, 0)
    };
    let counts = vec![
        Count::new(
            "most at once on one host",
            "requests at once to one host",
            witness.most_on_a_host().into(),
            host,
            PER_HOST.into(),
        ),
        Count::new(
            "most at once with one account",
            "requests at once with one account",
            witness.most_with_an_account().into(),
            account,
            PER_ACCOUNT.into(),
        ),
        count("lost", "pages lost", unanswered, lost.len()),
        count("doubled", "pages done by two at once", at_once.len(), twice.len()),
    ];
    let again = witness.served_again();
    let by_the_killed = |page: &String| {
        let answers = &witness.pages[page].answers;
        answers
            .iter()
            .any(|a| a.worker == records.killed && records.results.get(page) != Some(&a.fetch))
    };
    let (taken_back, fetched_again) = again.into_iter().partition(by_the_killed);
    DemoVerdict {
        ok: counts.iter().all(|count| count.holds) && records.faults.is_empty(),
        counts,
        taken_back,
        fetched_again,
        held_by_the_killed: records.held.clone(),
        asked_with_the_banned: witness.banned.values().sum(),
        faults: records.faults.clone(),
    }
}

/// Pages with two different accepted fetches: by the records of the workers, and by the job's current result.
fn accepted_twice(records: &DemoRecords) -> Vec<String> {
    let mut accepted = records.accepted.clone();
    for (page, fetch) in &records.results {
        accepted.entry(page.clone()).or_default().insert(*fetch);
    }
    accepted.into_iter().filter(|(_, all)| all.len() > 1).map(|(page, _)| page).collect()
}

/// The words of the last column.
const HOLDS: &str = "holds";
const BROKEN: &str = "BROKEN";

impl DemoVerdict {
    /// The verdict for people, no wider than this.
    pub fn text(&self, width: usize) -> String {
        self.text_with(width, colour::painted)
    }

    /// The same, with the words of the last column coloured by `paint`. They are coloured after the table is made: a
    /// cell would show the bytes of a colour.
    fn text_with(&self, width: usize, paint: fn(&str, AnsiColor) -> String) -> String {
        let mut table = Table::new(&["", "site", "Tenure", "at most", ""])
            .numbers(&["site", "Tenure", "at most"]);
        for count in &self.counts {
            let numbers = [count.site, count.tenure, count.bound].map(|n| n.to_string());
            let holds = if count.holds { HOLDS } else { BROKEN };
            let [site, tenure, most] = numbers;
            table.row([count.label.to_owned(), site, tenure, most, holds.to_owned()]);
        }
        let painted = |line: &str| {
            let end = [(HOLDS, AnsiColor::Green), (BROKEN, AnsiColor::Red)];
            let coloured = end.into_iter().find_map(|(word, colour)| {
                Some(format!("{}{}", line.strip_suffix(word)?, paint(word, colour)))
            });
            coloured.unwrap_or_else(|| line.to_owned()) + "\n"
        };
        let table: String = table.render("nothing was counted").lines().map(painted).collect();
        let mut paragraphs = vec![
            "The counts of the web site and of Tenure, and the maximum that is allowed:".to_owned(),
        ];
        paragraphs.extend(self.story());
        let mut paragraphs = paragraphs.into_iter().map(|text| wrapped(&text, width, ""));
        let head = paragraphs.next().unwrap_or_default();
        let story: Vec<String> = paragraphs.collect();
        format!("{head}\n\n{table}\n{}\n", story.join("\n\n"))
    }

    /// The events on the way, and why they are as they should be.
    fn story(&self) -> Vec<String> {
        let list = |pages: &[String]| match pages.len() {
            0..=SHOWN => pages.join(", "),
            _ => format!("{}, …", pages[..SHOWN].join(", ")),
        };
        let held = &self.held_by_the_killed;
        let mut story = vec![format!(
            "The killed worker held {} ({}). Their leases ran out, and other workers got them.",
            counted(held.len() as u64, "job", "jobs"),
            list(held)
        )];
        if !self.taken_back.is_empty() {
            story.push(format!(
                "Fetched a second time: {}. The worker died after the site's answer and before it \
                 could tell Tenure. Tenure promises that a job runs at least once, and this is \
                 what that looks like.",
                list(&self.taken_back)
            ));
        }
        if !self.fetched_again.is_empty() {
            story.push(format!("Fetched again for other reasons: {}.", list(&self.fetched_again)));
        }
        let requests = u64::from(self.asked_with_the_banned);
        story.push(format!(
            "The site banned an account in the middle. It refused {} with it; then its worker told \
             Tenure, and no worker got that account again.",
            counted(requests, "request", "requests")
        ));
        story.push(match self.faults.as_slice() {
            [] => "Tenure's own audit found nothing wrong.".to_owned(),
            faults => format!("Tenure's own audit found: {}", faults.join("; ")),
        });
        story
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{Fetch, FetchEnd};
    use super::*;

    fn begin(seen: &mut Witness, page: &str, account: &str, worker: &str) -> u64 {
        let own = str::to_owned;
        let host = own(page.split('/').next().unwrap());
        seen.begin(Fetch { host, page: own(page), account: own(account), worker: own(worker) })
    }

    #[test]
    fn the_verdicts_at_the_ends_of_the_rows_are_coloured_whole() {
        let (pages, seen, told) = well();
        let paint = |text: &str, _| format!("\u{1b}[32m{text}\u{1b}[0m");
        let text = judge(&pages, &seen, &told).text_with(80, paint);
        assert_eq!(text.matches("  \u{1b}[32mholds\u{1b}[0m\n").count(), 4, "{text:?}");
        assert!(!text.contains('\u{fffd}'), "{text:?}");
    }

    /// Two pages of two hosts, each fetched once and accepted.
    fn well() -> (Vec<CrawlPage>, Witness, DemoRecords) {
        let (mut seen, mut told) = (Witness::default(), DemoRecords::default());
        told.killed = "w2".to_owned();
        let mut pages = Vec::new();
        for page in ["a/1", "b/1"] {
            let fetch = begin(&mut seen, page, "ann", "w1");
            seen.end(fetch, FetchEnd::Answered);
            told.results.insert(page.to_owned(), fetch);
            told.accepted.entry(page.to_owned()).or_default().insert(fetch);
            let host = page.split('/').next().unwrap().to_owned();
            pages.push(CrawlPage { host, page: page.to_owned() });
        }
        (pages, seen, told)
    }

    fn broken(pages: &[CrawlPage], seen: &Witness, told: &DemoRecords) -> Vec<&'static str> {
        let verdict = judge(pages, seen, told);
        let broken: Vec<_> = verdict.counts.iter().filter(|c| !c.holds).map(|c| c.name).collect();
        assert_eq!(verdict.ok, broken.is_empty());
        assert_eq!(verdict.text(80).contains("BROKEN"), !verdict.ok);
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
        pages.push(CrawlPage { host: "c".to_owned(), page: "c/1".to_owned() });
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
    fn counts_are_numbers_for_programs_and_words_for_people() {
        let (pages, seen, mut told) = well();
        told.results.remove("b/1");
        let verdict = judge(&pages, &seen, &told);
        let json = serde_json::to_value(&verdict.counts).unwrap();
        let of = |name, site, tenure, value, bound, holds| {
            serde_json::json!({
                "name": name, "site": site, "tenure": tenure, "value": value, "bound": bound,
                "holds": holds,
            })
        };
        assert_eq!(
            json,
            serde_json::json!([
                of("most at once on one host", 1, 0, 1, PER_HOST, true),
                of("most at once with one account", 1, 0, 1, PER_ACCOUNT, true),
                of("lost", 0, 1, 1, 0, false),
                of("doubled", 0, 0, 0, 0, true),
            ])
        );
        let text = verdict.text(80);
        assert!(
            text.contains("pages lost                            0       1        0  BROKEN\n"),
            "{text}"
        );
    }

    /// A verdict in which everything happened.
    fn eventful() -> DemoVerdict {
        let (pages, seen, mut told) = well();
        told.held = (1..=9).map(|n| format!("news.example/{n}")).collect();
        let mut verdict = judge(&pages, &seen, &told);
        verdict.taken_back = vec!["news.example/1".to_owned()];
        verdict.fetched_again = (1..=20).map(|n| format!("shop.example/{n}")).collect();
        verdict.asked_with_the_banned = 1;
        verdict
    }

    #[test]
    fn what_is_said_at_the_end_fits_the_terminal() {
        for width in [80, 120] {
            let text = eventful().text(width);
            let wide: Vec<&str> =
                text.lines().filter(|line| line.chars().count() > width).collect();
            assert_eq!(wide, Vec::<&str>::new());
            assert!(!text.contains('\u{1b}'), "colours where there is no terminal");
        }
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
            seen.end(fetch, FetchEnd::Answered);
        }
        told.held.push("a/1".to_owned());
        let verdict = judge(&pages, &seen, &told);
        assert!(verdict.ok);
        assert_eq!(verdict.taken_back, ["a/1"]);
        assert_eq!(verdict.fetched_again, ["b/1"]);
    }
}
