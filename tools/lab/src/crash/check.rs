//! Checks that the notes of the clients agree with the store at the end. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_core::job::JobState;
use tenure_core::lease::Fence;

use super::log::Note;

/// Faults that are shown; there may be more.
const SHOWN: usize = 10;

/// A job as the store shows it at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedJob {
    pub state: JobState,
    /// The fence in its result.
    pub result: Option<Fence>,
    /// Runs that ended in `succeeded` or `failed`.
    pub attempt: u32,
    /// The limit of concurrency 1 that it needs.
    pub limit: Option<String>,
}

/// The counts of a check, and the faults that it found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Checked {
    /// Pushes that were answered.
    pub pushed: usize,
    pub runs: usize,
    /// Settles that were answered.
    pub settled: usize,
    /// Jobs that ran more than once.
    pub ran_again: usize,
    /// Faults of all kinds.
    pub faults: usize,
    /// The first of them, one sentence each.
    pub shown: Vec<String>,
}

impl Checked {
    /// Counts a fault, and keeps its sentence while there are few.
    pub fn fault(&mut self, sentence: String) {
        self.faults += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(sentence);
        }
    }
}

/// One run of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Run {
    started_us: u64,
    /// `None`: no note of its end.
    ended_us: Option<u64>,
    fence: Fence,
}

/// Compares the notes with the jobs of the store.
pub fn check(notes: &[Note], stored: &BTreeMap<String, CheckedJob>) -> Checked {
    let mut checked = Checked::default();
    let runs = runs(notes, &mut checked);
    for (job, runs) in &runs {
        no_overlap(&format!("job {job}"), runs, &mut checked);
        if let Some(pair) = runs.windows(2).find(|pair| pair[0].fence >= pair[1].fence) {
            let (first, second) = (pair[0].fence, pair[1].fence);
            checked.fault(format!("job {job}: fence {second} came after {first}"));
        }
        checked.ran_again += usize::from(runs.len() > 1);
        if !stored.contains_key(job) {
            checked.fault(format!("job {job} ran and is not there"));
        }
    }
    limits(&runs, stored, &mut checked);
    pushes(notes, stored, &mut checked);
    settles(notes, &runs, stored, &mut checked);
    checked
}

type Runs = BTreeMap<String, Vec<Run>>;

fn runs(notes: &[Note], checked: &mut Checked) -> Runs {
    let mut ends = BTreeMap::new();
    for note in notes {
        if let Note::Ended { job, fence, at_us } = note {
            ends.insert((job.as_str(), *fence), *at_us);
        }
    }
    let mut runs = Runs::new();
    for note in notes {
        if let Note::Started { job, fence, at_us } = note {
            let ended_us = ends.get(&(job.as_str(), *fence)).copied();
            if ended_us.is_none() {
                checked.fault(format!("job {job}: nobody wrote the end of the run {fence}"));
            }
            let run = Run { started_us: *at_us, ended_us, fence: *fence };
            runs.entry(job.clone()).or_default().push(run);
            checked.runs += 1;
        }
    }
    runs.values_mut().for_each(|runs| runs.sort());
    runs
}

/// Checks that runs, in order of their start, do not overlap.
fn no_overlap(what: &str, runs: &[Run], checked: &mut Checked) {
    for pair in runs.windows(2) {
        if pair[0].ended_us.is_none_or(|ended| ended > pair[1].started_us) {
            let (first, second) = (pair[0].fence, pair[1].fence);
            checked.fault(format!("{what}: the runs {first} and {second} overlap"));
        }
    }
}

fn limits(runs: &Runs, stored: &BTreeMap<String, CheckedJob>, checked: &mut Checked) {
    let mut by_limit: BTreeMap<&str, Vec<Run>> = BTreeMap::new();
    for (job, runs) in runs {
        if let Some(limit) = stored.get(job).and_then(|job| job.limit.as_deref()) {
            by_limit.entry(limit).or_default().extend(runs);
        }
    }
    for (limit, mut runs) in by_limit {
        runs.sort();
        no_overlap(&format!("limit {limit} of 1"), &runs, checked);
    }
}

fn pushes(notes: &[Note], stored: &BTreeMap<String, CheckedJob>, checked: &mut Checked) {
    for note in notes {
        if let Note::Pushed { job } = note {
            checked.pushed += 1;
            if !stored.contains_key(job) {
                checked.fault(format!("the push of job {job} was answered, and it is not there"));
            }
        }
    }
}

fn settles(
    notes: &[Note],
    runs: &Runs,
    stored: &BTreeMap<String, CheckedJob>,
    checked: &mut Checked,
) {
    let mut attempts: BTreeMap<&str, u32> = BTreeMap::new();
    for note in notes {
        let Note::Settled { job, fence, state } = note else { continue };
        checked.settled += 1;
        *attempts.entry(job).or_default() += 1;
        let Some(now) = stored.get(job) else {
            checked.fault(format!("a settle of job {job} was answered, and it is not there"));
            continue;
        };
        if *state != JobState::Succeeded {
            continue;
        }
        if now.state != JobState::Succeeded || now.result != Some(*fence) {
            let state = now.state;
            checked.fault(format!("job {job} was settled as succeeded by {fence}, and is {state}"));
        }
        if runs.get(job).is_some_and(|runs| runs.iter().any(|run| run.fence > *fence)) {
            checked.fault(format!("job {job} ran again after it had succeeded"));
        }
    }
    for (job, answered) in attempts {
        if stored.get(job).is_some_and(|job| job.attempt < answered) {
            checked.fault(format!("job {job} has forgotten one of {answered} answered settles"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(fence: u64, at_us: u64) -> Note {
        Note::Started { job: "j".to_owned(), fence: Fence::new(fence), at_us }
    }
    fn ended(fence: u64, at_us: u64) -> Note {
        Note::Ended { job: "j".to_owned(), fence: Fence::new(fence), at_us }
    }
    fn settled(fence: u64, state: JobState) -> Note {
        Note::Settled { job: "j".to_owned(), fence: Fence::new(fence), state }
    }
    fn stored(state: JobState, result: Option<u64>, attempt: u32) -> BTreeMap<String, CheckedJob> {
        let result = result.map(Fence::new);
        let job = CheckedJob { state, result, attempt, limit: Some("l:1".to_owned()) };
        [("j".to_owned(), job)].into()
    }

    /// A push, a failed run, and one that succeeds.
    fn well() -> (Vec<Note>, BTreeMap<String, CheckedJob>) {
        let notes = vec![
            Note::Pushed { job: "j".to_owned() },
            started(5, 10),
            ended(5, 20),
            settled(5, JobState::Scheduled),
            started(9, 30),
            ended(9, 40),
            settled(9, JobState::Succeeded),
        ];
        (notes, stored(JobState::Succeeded, Some(9), 2))
    }

    fn faults(notes: &[Note], stored: &BTreeMap<String, CheckedJob>) -> String {
        check(notes, stored).shown.join("; ")
    }

    #[test]
    fn a_history_without_a_fault_is_clean() {
        let (notes, stored) = well();
        let checked = check(&notes, &stored);
        assert_eq!(checked.shown, Vec::<String>::new());
        assert_eq!(
            (checked.pushed, checked.runs, checked.settled, checked.ran_again),
            (1, 2, 2, 1)
        );
    }

    #[test]
    fn every_fault_is_found() {
        let (notes, good) = well();
        let says = |notes: &[Note], stored: &BTreeMap<String, CheckedJob>, part: &str| {
            let faults = faults(notes, stored);
            assert!(faults.contains(part), "{part}: {faults}");
        };
        says(&notes, &BTreeMap::new(), "the push of job j was answered, and it is not there");
        says(&notes, &BTreeMap::new(), "a settle of job j was answered, and it is not there");
        says(&notes[1..3], &BTreeMap::new(), "job j ran and is not there");
        says(&notes, &stored(JobState::Ready, None, 2), "and is ready");
        says(&notes, &stored(JobState::Succeeded, Some(5), 2), "and is succeeded");
        says(&notes, &stored(JobState::Succeeded, Some(9), 1), "has forgotten one of 2");

        let mut overlap = notes.clone();
        overlap[4] = started(9, 19);
        says(&overlap, &good, "job j: the runs 5 and 9 overlap");
        says(&overlap, &good, "limit l:1 of 1: the runs 5 and 9 overlap");

        // One lease that two workers hold.
        let mut twice = notes.clone();
        twice.extend([started(9, 41), ended(9, 45)]);
        says(&twice, &good, "fence 9 came after 9");

        let mut fences = notes.clone();
        (fences[4], fences[5]) = (started(4, 30), ended(4, 40));
        says(&fences, &good, "fence 4 came after 5");

        let mut again = notes.clone();
        again.extend([started(11, 50), ended(11, 60)]);
        says(&again, &good, "ran again after it had succeeded");

        let mut open = notes;
        open.remove(2);
        says(&open, &good, "nobody wrote the end of the run 5");
    }
}
