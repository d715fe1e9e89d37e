//! Arguments of a handler besides its task.

use std::convert::Infallible;
use std::ops::Deref;

use super::failure::TaskError;
use crate::worker::Job;

/// A type that a handler may have as an argument after its task. `S` is the state that the handlers share.
///
/// [`Job`] and [`State`] are such types; write your own for values that several handlers make from the two, such as a
/// connection for the account that the job holds.
pub trait FromRun<S>: Sized {
    /// Why it cannot be made; this ends the run before the handler is called.
    type Failure: Into<TaskError>;

    /// Makes it for one run.
    ///
    /// # Errors
    /// It cannot be made.
    fn from_run(job: &Job, state: &S) -> Result<Self, Self::Failure>;
}

impl<S> FromRun<S> for Job {
    type Failure = Infallible;

    fn from_run(job: &Job, _: &S) -> Result<Self, Infallible> {
        Ok(job.clone())
    }
}

/// A clone of the value given to [`Handlers::with_state`](super::Handlers::with_state): mostly a pool of connections,
/// or an `Arc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State<S>(pub S);

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Clone> FromRun<S> for State<S> {
    type Failure = Infallible;

    fn from_run(_: &Job, state: &S) -> Result<Self, Infallible> {
        Ok(State(state.clone()))
    }
}
