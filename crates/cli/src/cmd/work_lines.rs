//! Messages of `tenure work` about each job on stderr: that it was started, how it ended and how long that took.
//!
//! Never a payload, a result or an error, which may hold a part of either.

use std::io::IsTerminal;
use std::time::Duration;

use serde::Serialize;
use tenure::{Job, SettleOutcome};
use tenure_console::stderr;
use tenure_core::lease::{Ending, Later};
use tenure_core::time::{Moment, Span};

use crate::output::clock;
use crate::output::tell;

/// The form of the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobLines {
    /// No messages at all.
    Quiet,
    /// A sentence each, for people.
    Sentences,
    /// A JSON object a line, for programs.
    Json,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum JobLine<'a> {
    JobStarted { at: Moment, job: &'a str, queue: &'a str, kind: &'a str, attempt: u32 },
    JobEnded { at: Moment, job: &'a str, outcome: Option<&'static str>, took: Span },
}

impl JobLines {
    /// By the command line: `--json` means programs, unless a person reads stderr.
    pub fn of(quiet: bool, json: bool) -> Self {
        match (quiet, json && !std::io::stderr().is_terminal()) {
            (true, _) => JobLines::Quiet,
            (false, true) => JobLines::Json,
            (false, false) => JobLines::Sentences,
        }
    }

    /// Reports that a job begins.
    pub fn started(self, job: &Job) {
        let (id, view) = (job.id().as_str(), job.view());
        match self {
            JobLines::Quiet => {}
            JobLines::Sentences => {
                let again = match job.attempt() {
                    0 | 1 => String::new(),
                    attempt => format!(", attempt {attempt}"),
                };
                tell(&format!("job '{id}' of queue '{}' started{again}", view.queue));
            }
            JobLines::Json => write(&JobLine::JobStarted {
                at: clock::now(),
                job: id,
                queue: view.queue.as_str(),
                kind: &view.kind,
                attempt: job.attempt(),
            }),
        }
    }

    /// Reports how it ended. `None`: its lease was lost or its time is over, which the store reports.
    pub fn ended(self, job: &Job, outcome: Option<&SettleOutcome>, took: Duration) {
        let id = job.id().as_str();
        match self {
            JobLines::Quiet => {}
            JobLines::Sentences => {
                tell(&format!("job '{id}' {} after {}", said(outcome), time(took)))
            }
            JobLines::Json => write(&JobLine::JobEnded {
                at: clock::now(),
                job: id,
                outcome: outcome.map(|outcome| name(&outcome.ending)),
                took: Span::from_ms(u64::try_from(took.as_millis()).unwrap_or(u64::MAX / 1_000)),
            }),
        }
    }
}

/// One line. An unread line must stop nothing.
fn write(line: &JobLine<'_>) {
    if let Ok(text) = serde_json::to_string(line) {
        stderr::say(format!("{text}\n").as_bytes());
    }
}

fn name(ending: &Ending) -> &'static str {
    match ending {
        Ending::Succeeded { .. } => "succeeded",
        Ending::Failed { .. } => "failed",
        Ending::Snoozed { .. } => "snoozed",
        Ending::Released => "released",
    }
}

fn said(outcome: Option<&SettleOutcome>) -> String {
    match outcome.map(|outcome| &outcome.ending) {
        Some(Ending::Failed { last: true, .. }) => "failed for good".to_owned(),
        Some(Ending::Snoozed { later: Later::For(wait), .. }) => format!("was put off for {wait}"),
        Some(Ending::Snoozed { later: Later::Until(at), .. }) => format!("was put off until {at}"),
        Some(Ending::Released) => "was given back".to_owned(),
        Some(ending) => name(ending).to_owned(),
        None => "was stopped without an outcome".to_owned(),
    }
}

/// Short times to the millisecond, long ones in at most two units.
fn time(took: Duration) -> String {
    match took.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{:.1}s", took.as_secs_f64()),
        _ => tenure_core::count::rough(Span::from(took)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_said_without_what_it_holds() {
        let minute = Span::from_s(60);
        for (outcome, text) in [
            (Some(SettleOutcome::succeeded_with(&"geheim")), "succeeded"),
            (Some(SettleOutcome::failed("geheim")), "failed"),
            (Some(SettleOutcome::failed_for_good("geheim")), "failed for good"),
            (Some(SettleOutcome::snoozed(minute)), "was put off for 1m"),
            (Some(SettleOutcome::released()), "was given back"),
            (None, "was stopped without an outcome"),
        ] {
            assert_eq!(said(outcome.as_ref()), text);
        }
    }

    #[test]
    fn a_time_is_said_as_exactly_as_it_matters() {
        for (ms, text) in
            [(0, "0ms"), (312, "312ms"), (1_000, "1.0s"), (59_940, "59.9s"), (72_000, "1m12s")]
        {
            assert_eq!(time(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn a_line_for_programs_is_an_object() {
        let at: Moment = "2026-12-01T08:00:00Z".parse().unwrap();
        let line = JobLine::JobEnded { at, job: "j", outcome: None, took: Span::from_ms(1_500) };
        let text = serde_json::to_string(&line).unwrap();
        let want = r#"{"event":"job_ended","at":"2026-12-01T08:00:00.000000Z","job":"j","outcome":null,"took":"1s500ms"}"#;
        assert_eq!(text, want);
    }
}
