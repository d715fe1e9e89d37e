//! Records of the processes, and the facts that must hold about them.
//!
//! It knows nothing of Tenure: a permit is held from the line that says so to the line that ends it, or to the death of
//! its holder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::chaos::flows::Planned;

/// One run of a job.
pub struct Hold {
    pub from: u64,
    pub to: u64,
    pub fence: u64,
    pub job: String,
    limits: Vec<String>,
    /// The outcome of its handler before anything of it was settled: `succeeded`, `failed`, or `stopped` by its worker.
    /// `None` if its process was killed before.
    pub outcome: Option<String>,
}

/// All that was written.
#[derive(Default)]
pub struct Told {
    /// Jobs whose push was answered.
    pub pushed: Vec<String>,
    /// Jobs that ended with a settle that was answered as taken, and the state in the answer.
    pub settled: Vec<(String, String)>,
    /// Settles that came too late.
    pub lost: usize,
    pub holds: Vec<Hold>,
    /// The jobs of flows, written down before they were pushed.
    pub planned: Vec<Planned>,
    /// The pushes of these that were answered.
    pub answered: BTreeSet<String>,
}

/// Reads the files of a folder; `killed` says when, in µs, the process of each name was dead.
pub fn read(folder: &Path, killed: &BTreeMap<String, u64>) -> Told {
    let mut told = Told::default();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let dead = killed.get(&name).copied().unwrap_or(u64::MAX);
        // The last line may be torn by a kill.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        file(&mut told, whole, dead);
    }
    told
}

/// The name under which a process holds its leases, if it wrote it down before it was killed.
pub fn holder(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let (first, _) = text.split_once('\n')?;
    first.strip_prefix("W ").map(str::to_owned)
}

/// Reads the lines of one process.
pub fn file(told: &mut Told, text: &str, dead: u64) {
    let number = |text: Option<&&str>| text.and_then(|text| text.parse().ok()).unwrap_or_default();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words.as_slice() {
            ["P", id] => told.pushed.push((*id).to_owned()),
            ["A", id, state] => told.settled.push(((*id).to_owned(), (*state).to_owned())),
            ["L", _] => told.lost += 1,
            ["S", from, fence, job, limits] => told.holds.push(Hold {
                from: number(Some(from)),
                to: dead,
                fence: number(Some(fence)),
                job: (*job).to_owned(),
                limits: limits
                    .split(',')
                    .filter(|one| !one.is_empty())
                    .map(str::to_owned)
                    .collect(),
                outcome: None,
            }),
            ["E", to, fence, outcome] => {
                let ends = |hold: &&mut Hold| hold.fence == number(Some(fence));
                match told.holds.iter_mut().rev().find(ends) {
                    Some(hold) => {
                        hold.to = number(Some(to));
                        hold.outcome = Some((*outcome).to_owned());
                    }
                    None => panic!("an end without its start: {line}"),
                }
            }
            ["J", job @ ..] => match Planned::read(job) {
                Some(planned) => told.planned.push(planned),
                None => panic!("no job of a flow: {line}"),
            },
            ["C", call] => drop(told.answered.insert((*call).to_owned())),
            // The name under which it holds.
            ["W", _] => {}
            _ => panic!("a process broke: {line}"),
        }
    }
}

/// How many runs held each limit at one instant, at most.
pub fn most_at_once(holds: &[Hold]) -> BTreeMap<String, u32> {
    let mut events: BTreeMap<&str, Vec<(u64, bool)>> = BTreeMap::new();
    for hold in holds {
        for limit in &hold.limits {
            // At one µs an end comes before a start.
            events.entry(limit).or_default().extend([(hold.from, true), (hold.to, false)]);
        }
    }
    let most = |mut events: Vec<(u64, bool)>| {
        events.sort_unstable();
        let (mut now, mut most) = (0_u32, 0);
        for (_, begins) in events {
            now = if begins { now + 1 } else { now.saturating_sub(1) };
            most = most.max(now);
        }
        most
    };
    events.into_iter().map(|(limit, events)| (limit.to_owned(), most(events))).collect()
}

/// No job runs twice at once, and each run of it has a higher fence than the one before.
pub fn runs_of_a_job_follow_each_other(holds: &[Hold]) {
    let mut runs: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
    for hold in holds {
        runs.entry(&hold.job).or_default().push(hold);
    }
    for (job, mut runs) in runs {
        runs.sort_unstable_by_key(|run| run.from);
        for pair in runs.windows(2) {
            assert!(pair[0].to <= pair[1].from, "two runs of {job} at once");
            assert!(pair[0].fence < pair[1].fence, "a fence of {job} went back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Told {
        let mut told = Told::default();
        file(&mut told, text, 90);
        told
    }

    #[test]
    fn what_is_over_a_cap_is_seen() {
        let apart = told("S 10 1 a l\nE 20 1 succeeded\nS 20 2 b l\nE 30 2 succeeded");
        assert_eq!(most_at_once(&apart.holds)["l"], 1);
        // A dead holder held until its death.
        let mut dead = told("S 10 1 a l");
        dead.holds.extend(told("S 89 2 b l\nE 95 2 succeeded").holds);
        assert_eq!(most_at_once(&dead.holds)["l"], 2);
    }

    #[test]
    #[should_panic = "two runs of a at once"]
    fn two_runs_at_once_are_seen() {
        let mut both = told("S 10 1 a \nE 20 1 succeeded").holds;
        both.extend(told("S 19 2 a \nE 30 2 succeeded").holds);
        runs_of_a_job_follow_each_other(&both);
    }

    #[test]
    #[should_panic = "a fence of a went back"]
    fn a_fence_that_goes_back_is_seen() {
        runs_of_a_job_follow_each_other(
            &told("S 10 2 a \nE 20 2 succeeded\nS 20 1 a \nE 30 1 succeeded").holds,
        );
    }
}
