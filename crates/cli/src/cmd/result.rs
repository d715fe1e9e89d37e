//! `tenure result`, and the wait of `tenure push --wait`: how a job ended.
//!
//! The exit code says it too: 0 if it succeeded, 1 if it failed, was cancelled or is not finished.

use std::time::Duration;

use tenure::Client;
use tenure_core::job::{JobState, ResultView};
use tenure_core::names::JobRef;
use tenure_core::time::Span;

use crate::args::jobs::ResultArgs;
use crate::cmd::contact;
use crate::exit::{Failure, NO};
use crate::output::Output;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowLong {
    /// Until it is finished.
    Ever,
    /// No longer than this.
    AtMost(Span),
}

/// Prints the result of a job, waited for as long as the arguments say.
pub async fn run(client: &Client, out: Output, args: ResultArgs, url: &str) -> Result<(), Failure> {
    let wait = HowLong::AtMost(args.wait.unwrap_or(Span::ZERO));
    show(client, out, args.job, wait, url).await
}

/// Waits for the end of a job, and prints its result.
pub async fn show(
    client: &Client,
    out: Output,
    job: JobRef,
    wait: HowLong,
    url: &str,
) -> Result<(), Failure> {
    let longest = match wait {
        HowLong::Ever => None,
        HowLong::AtMost(longest) => Some(longest.std()),
    };
    let view = if longest == Some(Duration::ZERO) {
        client.wait_for_result(job, longest).await?
    } else {
        contact::telling(client, url).wait_for_result(job, longest).await?
    };
    if out.json || view.state == JobState::Succeeded {
        out.answer(&view, people)?;
    }
    no(&view, wait).map_or(Ok(()), Err)
}

/// The result as its worker gave it, on a line of its own.
fn people(view: &ResultView) -> String {
    let result = view.result.as_ref().map_or("null", |result| result.text());
    format!("{result}\n")
}

/// Why there is no result; `None` if the job succeeded.
fn no(view: &ResultView, wait: HowLong) -> Option<Failure> {
    let ResultView { id, state, error, .. } = view;
    let error = error.as_deref().map_or_else(String::new, |error| format!(": {error}"));
    let sentence = match state {
        JobState::Succeeded => return None,
        JobState::Failed => format!("job '{id}' failed{error}"),
        JobState::Cancelled => format!("job '{id}' was cancelled{error}"),
        state => {
            let within = match wait {
                HowLong::AtMost(longest) if longest > Span::ZERO => format!(" after {longest}"),
                _ => String::new(),
            };
            let sentence = format!("job '{id}' is not finished{within}: it is {state}");
            let next = format!("`tenure result {id} --wait D` waits for it");
            return Some(Failure::new(NO, sentence).hint(next));
        }
    };
    Some(Failure::new(NO, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::names::JobId;
    use tenure_core::secret::Json;

    fn view(state: JobState, error: Option<&str>) -> ResultView {
        ResultView {
            id: JobId::parse("j").unwrap(),
            state,
            result: None,
            error: error.map(str::to_owned),
            finished_at: None,
            attempt: 1,
            progress: None,
            progress_id: None,
        }
    }

    #[test]
    fn every_end_but_success_is_no_and_says_why() {
        for (state, error, wait, want) in [
            (JobState::Failed, Some("503"), HowLong::Ever, "job 'j' failed: 503"),
            (JobState::Failed, None, HowLong::Ever, "job 'j' failed"),
            (JobState::Cancelled, None, HowLong::Ever, "job 'j' was cancelled"),
            (
                JobState::Running,
                None,
                HowLong::AtMost(Span::from_s(5)),
                "job 'j' is not finished after 5s: it is running",
            ),
            (
                JobState::Ready,
                None,
                HowLong::AtMost(Span::ZERO),
                "job 'j' is not finished: it is ready",
            ),
        ] {
            let failure = no(&view(state, error), wait).unwrap();
            assert_eq!((failure.code, failure.sentence.as_deref()), (NO, Some(want)));
        }
        assert_eq!(no(&view(JobState::Succeeded, None), HowLong::Ever), None);
    }

    #[test]
    fn the_result_is_printed_as_it_was_given() {
        let mut view = view(JobState::Succeeded, None);
        assert_eq!(people(&view), "null\n");
        view.result = Some(Json::parse(r#"{"n": 1.50}"#).unwrap());
        assert_eq!(people(&view), "{\"n\": 1.50}\n");
    }
}
