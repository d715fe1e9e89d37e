//! Pushes that are repeated as they were: of one that replaced the content of a job no job has the id.

use proptest::test_runner::TestCaseError;
use tenure_core::requests::{Push, PushAnswer};

use crate::pair::Program;

/// Pushes that may be repeated.
const KEPT: usize = 8;

impl Program<'_> {
    /// A push that may be repeated later.
    pub(crate) async fn push(&mut self, push: Push) -> Result<(), TestCaseError> {
        if self.pushed.len() == KEPT {
            self.pushed.remove(0);
        }
        self.pushed.push(push.clone());
        self.ask(push).await.map(drop)
    }

    /// One of the last pushes, counted from the latest; none if there were not so many.
    pub(crate) fn pushed_before(&self, back: u8) -> Option<Push> {
        self.pushed.iter().rev().nth(usize::from(back)).cloned()
    }

    /// Repeats one of the last pushes; `twice`: with each of its jobs twice in the one call.
    pub(crate) async fn repeat(&self, back: u8, twice: bool) -> Result<(), TestCaseError> {
        let Some(mut push) = self.pushed_before(back) else { return Ok(()) };
        if twice {
            push.jobs.extend(push.jobs.clone());
            push.answer = PushAnswer::Whole;
        }
        self.ask(push).await.map(drop)
    }
}
