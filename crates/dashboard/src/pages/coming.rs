//! Which moments of a schedule come next, as the strips of its pages show them: as many as a strip can show.

use maud::{Markup, html};
use tenure_calendar::Timing;
use tenure_core::schedule::ScheduleView;
use tenure_core::time::{Moment, Span};

use crate::language::sentences;
use crate::show::strip;
use crate::visit::Visit;

sentences! { ComingWords;
    runs(n): "moments: {n}", "次数：{n}";
    runs_at_least(n): "moments: {n} and more", "次数：{n} 以上";
    day: "Next 24 hours", "接下来 24 小时";
    week: "Next 7 days", "接下来 7 天";
    now: "now", "现在";
    in_hours(n): "in {n} h", "{n} 小时后";
    in_days(n): "in {n} d", "{n} 天后";
}

/// Marks of one strip: more than that are a line of marks beside each other.
const MARKS_MAX: usize = 200;
const DAY: Span = Span::from_s(24 * 60 * 60);
const WEEK: Span = Span::from_s(7 * 24 * 60 * 60);

/// The moments of a schedule within this span from now on, at most [`MARKS_MAX`]; none while it is paused.
fn within(visit: &Visit, schedule: &ScheduleView, length: Span) -> Vec<Moment> {
    let end = visit.now.plus(length);
    let Some(first) = schedule.next_at.filter(|_| !schedule.paused && !schedule.ended) else {
        return Vec::new();
    };
    // What the store has is what fires next; what follows is what its timing says.
    let Ok(timing) = Timing::of(&schedule.settings.timing, schedule.id.as_str()) else {
        return vec![first];
    };
    let later = timing.moments_after(first.max(visit.now));
    std::iter::once(first).chain(later).take_while(|at| *at <= end).take(MARKS_MAX).collect()
}

fn told(words: ComingWords, moments: &[Moment]) -> String {
    match moments.len() {
        MARKS_MAX => words.runs_at_least(MARKS_MAX),
        n => words.runs(n),
    }
}

/// What the heading of the strips in a list says.
pub(super) fn day_name(visit: &Visit) -> String {
    ComingWords(visit.tongue).day()
}

/// The next day, for the row of a list.
pub(super) fn day(visit: &Visit, schedule: &ScheduleView) -> Markup {
    let words = ComingWords(visit.tongue);
    let moments = within(visit, schedule, DAY);
    strip(&format!("{}: {}", words.day(), told(words, &moments)), visit.now, DAY, 4, &moments)
}

/// The next day and the next week, for the page of a schedule.
pub(super) fn calendar(visit: &Visit, schedule: &ScheduleView) -> Markup {
    let words = ComingWords(visit.tongue);
    let day_marks: Vec<String> = (1..4).map(|n| words.in_hours(n * 6)).collect();
    let week_marks: Vec<String> = (1..7).map(|n| words.in_days(n)).collect();
    html! {
        @for (name, length, parts, marks) in
            [(words.day(), DAY, 4, &day_marks), (words.week(), WEEK, 7, &week_marks)] {
            @let moments = within(visit, schedule, length);
            div class="calendar" {
                h3 { (name) " · " span class="faint" { (told(words, &moments)) } }
                (strip(&name, visit.now, length, parts, &moments))
                div class="x" aria-hidden="true" {
                    span { (words.now()) }
                    @for mark in marks { span { (mark) } }
                }
            }
        }
    }
}
