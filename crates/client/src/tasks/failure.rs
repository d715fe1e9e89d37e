//! How a handler ends its run, successfully or not.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tenure_core::lease::Ending;
use tenure_core::time::Moment;

use crate::outcome::SettleOutcome;

/// An error of any type, in a box.
type AnyError = Box<dyn Error + Send + Sync>;

/// The end of a run that did not succeed.
///
/// `?` makes one of any error, and of a text: a failed attempt, which is retried by the job's `retry` settings. The
/// text of the attempt has the error and its causes, as far as the [`source`](Error::source)s show them. For other ends
/// there are constructors here; `?` also converts a [`SettleOutcome`], which can do more, such as pause a limit.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use serde::{Deserialize, Serialize};
/// use tenure::{Task, TaskError};
///
/// #[derive(Serialize, Deserialize)]
/// struct Page {
///     url: String,
/// }
/// impl Task for Page {
///     const KIND: &'static str = "page";
/// }
///
/// async fn fetch(page: Page) -> Result<usize, TaskError> {
///     let minute = Duration::from_secs(60);
///     match status(&page.url)? {
///         200 => Ok(page.url.len()),
///         404 => Err(TaskError::for_good("there is no such page")),
///         429 => Err(TaskError::snooze(minute)),
///         503 => Err(TaskError::snooze_until(SystemTime::now() + 10 * minute)),
///         500 => Err(TaskError::retry_in("the site is down", minute)),
///         _ => Err(TaskError::release()),
///     }
/// }
/// # fn status(url: &str) -> Result<u16, std::num::ParseIntError> { url.parse() }
/// let no = TaskError::snooze(Duration::from_secs(60));
/// println!("{:?}", no.into_outcome().ending);
/// ```
///
/// It is not an [`Error`] itself, since otherwise `?` could not convert them all.
pub struct TaskError {
    outcome: SettleOutcome,
}

impl TaskError {
    /// A failed attempt that is never retried: the job has failed.
    pub fn for_good(error: impl Into<AnyError>) -> Self {
        SettleOutcome::failed_for_good(chain(&*error.into())).into()
    }
    /// A failed attempt that is retried after `wait`, whatever the job's `retry` settings are.
    pub fn retry_in(error: impl Into<AnyError>, wait: Duration) -> Self {
        SettleOutcome::failed_retry_in(chain(&*error.into()), wait).into()
    }
    /// Not yet: the job runs again after `wait`, at least 100 ms. This run counts as no attempt.
    pub fn snooze(wait: Duration) -> Self {
        SettleOutcome::snoozed(wait).into()
    }
    /// Not yet: the job runs again at this moment, at least 100 ms ahead. This run counts as no attempt.
    pub fn snooze_until(moment: impl Into<Moment>) -> Self {
        SettleOutcome::snoozed_until(moment).into()
    }
    /// Gives the job back untouched: it may be granted at once, to this worker too. To delay it use
    /// [`TaskError::snooze`].
    pub fn release() -> Self {
        SettleOutcome::released().into()
    }

    /// How the lease ends.
    pub fn into_outcome(self) -> SettleOutcome {
        self.outcome
    }
}

impl<E: Into<AnyError>> From<E> for TaskError {
    fn from(error: E) -> Self {
        SettleOutcome::failed(chain(&*error.into())).into()
    }
}

impl From<SettleOutcome> for TaskError {
    fn from(outcome: SettleOutcome) -> Self {
        TaskError { outcome }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskError").field(&self.outcome.ending).finish()
    }
}

/// An error and its causes, the last cause last. Many errors include their cause's text; it is not repeated.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// A handler's return value when its run succeeded: anything that serde writes as JSON, which becomes the result of the
/// job, or a [`SettleOutcome`], which itself says how the run ended. `()` is a success without a result.
pub trait Success {
    /// How the lease ends.
    fn into_outcome(self) -> SettleOutcome;
}

impl<T: Serialize> Success for T {
    fn into_outcome(self) -> SettleOutcome {
        let mut outcome = SettleOutcome::succeeded_with(&self);
        if let Ending::Succeeded { result } = &mut outcome.ending {
            result.take_if(|result| result.is_null());
        }
        outcome
    }
}

impl Success for SettleOutcome {
    fn into_outcome(self) -> SettleOutcome {
        self
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::time::Span;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the mail was not sent")]
    struct NotSent(#[source] Greeted);

    #[derive(Debug, thiserror::Error)]
    #[error("the server hung up: {0}")]
    struct Greeted(#[source] std::io::Error);

    fn not_sent() -> NotSent {
        NotSent(Greeted(std::io::Error::other("broken pipe")))
    }

    #[test]
    fn an_error_is_kept_with_its_causes() {
        let text = "the mail was not sent: the server hung up: broken pipe";
        let failed = |error: TaskError| error.into_outcome();
        assert_eq!(failed(not_sent().into()), SettleOutcome::failed(text));
        assert_eq!(failed(TaskError::for_good(not_sent())), SettleOutcome::failed_for_good(text));
        let later = SettleOutcome::failed_retry_in(text, Span::from_s(60));
        assert_eq!(failed(TaskError::retry_in(not_sent(), Duration::from_secs(60))), later);
    }

    #[test]
    fn anything_may_be_an_error_by_a_question_mark() {
        fn number(text: &str) -> Result<u32, TaskError> {
            match text {
                "text" => Err("a text")?,
                "outcome" => Err(SettleOutcome::released())?,
                text => Ok(text.parse()?),
            }
        }
        let said = |text: &str| match number(text) {
            Ok(number) => number.into_outcome(),
            Err(error) => error.into_outcome(),
        };
        assert_eq!(said("7"), SettleOutcome::succeeded_with(&7));
        assert_eq!(said("text"), SettleOutcome::failed("a text"));
        assert_eq!(said("x"), SettleOutcome::failed("invalid digit found in string"));
        assert_eq!(said("outcome"), SettleOutcome::released());
        assert_eq!(().into_outcome(), SettleOutcome::succeeded());
    }
}
