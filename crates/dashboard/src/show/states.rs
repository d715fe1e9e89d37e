//! States of jobs: a word, and a colour that helps to find it.

use maud::{Markup, html};
use tenure_core::job::JobState;

use crate::language::{Tongue, sentences};

sentences! { StateWords;
    dependent: "dependent", "等待依赖";
    scheduled: "scheduled", "已定时";
    ready: "ready", "就绪";
    blocked: "blocked", "受阻";
    running: "running", "运行中";
    succeeded: "succeeded", "成功";
    failed: "failed", "失败";
    cancelled: "cancelled", "已取消";
}

/// The word for a state.
pub(crate) fn word(state: JobState, tongue: Tongue) -> String {
    let words = StateWords(tongue);
    match state {
        JobState::Dependent => words.dependent(),
        JobState::Scheduled => words.scheduled(),
        JobState::Ready => words.ready(),
        JobState::Blocked => words.blocked(),
        JobState::Running => words.running(),
        JobState::Succeeded => words.succeeded(),
        JobState::Failed => words.failed(),
        JobState::Cancelled => words.cancelled(),
    }
}

/// A state in a table or a sentence.
pub(crate) fn state(state: JobState, tongue: Tongue) -> Markup {
    html! { span class={ "state " (state.as_str()) } { (word(state, tongue)) } }
}

/// The state of the thing that a page is about.
pub(crate) fn pill(state: JobState, tongue: Tongue) -> Markup {
    html! { span class={ "state pill " (state.as_str()) } { (word(state, tongue)) } }
}
