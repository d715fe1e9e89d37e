//! The next moments of a schedule, as strips of its pages show them: as many as a strip can show.

use maud::{Markup, html};
use tenure_calendar::Timing;
use tenure_core::schedule::ScheduleView;
use tenure_core::time::{Moment, Span};

use crate::language::sentences;
use crate::show::strip;
use crate::visit::Visit;

sentences! { ComingWords;
    runs(n): "occurrences: {n}", "次数：{n}";
    runs_more(n): "occurrences: more than {n}", "次数：超过 {n}";
    day: "Next 24 hours", "接下来 24 小时";
    week: "Next 7 days", "接下来 7 天";
    now: "now", "现在";
    in_hours(n): "in {n} h", "{n} 小时后";
    in_days(n): "in {n} d", "{n} 天后";
}

/// Marks of one strip. With more moments, the strip is divided into this many parts with one mark each.
const MARKS_MAX: usize = 200;
const DAY: Span = Span::from_s(24 * 60 * 60);
const WEEK: Span = Span::from_s(7 * 24 * 60 * 60);

/// The moments of a schedule that a strip shows.
#[derive(PartialEq, Eq, Debug)]
struct Coming {
    marks: Vec<Moment>,
    /// There are more moments than marks, and the marks stand for all of them.
    is_thinned: bool,
}

/// The moments of a schedule within this span from now on; none while it is paused.
fn within(visit: &Visit, schedule: &ScheduleView, length: Span) -> Coming {
    let Some(first) = schedule.next_at.filter(|_| !schedule.paused && !schedule.ended) else {
        return Coming { marks: Vec::new(), is_thinned: false };
    };
    // The store has the next moment; the timing gives those after it.
    let Ok(timing) = Timing::of(&schedule.settings.timing, schedule.id.as_str()) else {
        return Coming { marks: vec![first], is_thinned: false };
    };
    marks_of(&timing, first, visit.now, length)
}

fn marks_of(timing: &Timing, first: Moment, now: Moment, length: Span) -> Coming {
    let end = now.plus(length);
    let later = timing.moments_after(first.max(now)).take_while(|at| *at <= end);
    let marks: Vec<_> = std::iter::once(first).chain(later).take(MARKS_MAX + 1).collect();
    if marks.len() <= MARKS_MAX {
        return Coming { marks, is_thinned: false };
    }
    // A week of seconds has more moments than one drawing may compute, so only the first of each part is computed.
    let part = length.us() / MARKS_MAX as u64;
    let first_of = |n: usize| {
        let begin = now.plus(Span::from_us(part * n as u64));
        let found = timing.moments_after(begin.max(first)).next()?;
        (found.since(begin).us() <= part).then_some(found)
    };
    Coming { marks: (0..MARKS_MAX).filter_map(first_of).collect(), is_thinned: true }
}

fn told(words: ComingWords, coming: &Coming) -> String {
    if coming.is_thinned { words.runs_more(MARKS_MAX) } else { words.runs(coming.marks.len()) }
}

/// The heading of the strips in a list.
pub(super) fn day_name(visit: &Visit) -> String {
    ComingWords(visit.tongue).day()
}

/// The next day, for the row of a list.
pub(super) fn day(visit: &Visit, schedule: &ScheduleView) -> Markup {
    let words = ComingWords(visit.tongue);
    let coming = within(visit, schedule, DAY);
    strip(&format!("{}: {}", words.day(), told(words, &coming)), visit.now, DAY, 4, &coming.marks)
}

/// The next day and the next week, for the page of a schedule.
pub(super) fn calendar(visit: &Visit, schedule: &ScheduleView) -> Markup {
    let words = ComingWords(visit.tongue);
    let day_marks: Vec<String> = (1..4).map(|n| words.in_hours(n * 6)).collect();
    let week_marks: Vec<String> = (1..7).map(|n| words.in_days(n)).collect();
    html! {
        @for (name, length, parts, marks) in
            [(words.day(), DAY, 4, &day_marks), (words.week(), WEEK, 7, &week_marks)] {
            @let coming = within(visit, schedule, length);
            div class="calendar" {
                h3 { (name) " · " span class="faint" { (told(words, &coming)) } }
                (strip(&name, visit.now, length, parts, &coming.marks))
                div class="x" aria-hidden="true" {
                    span { (words.now()) }
                    @for mark in marks { span { (mark) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_thinned_and_not_cut() {
        let now = Moment::from_us(1_800_000_000_000_000);
        for every_s in [20, 300, 3_600, 7_000] {
            let settings = tenure_core::decode::put_schedule(
                "x",
                format!(r#"{{"every":"{every_s}s","job":{{"queue":"q"}}}}"#).as_bytes(),
            );
            let timing = Timing::of(&settings.unwrap().settings.timing, "x").unwrap();
            let first = timing.moments_after(now).next().unwrap();
            for length in [DAY, WEEK] {
                let coming = marks_of(&timing, first, now, length);
                let moments = length.us() / (every_s * 1_000_000);
                assert!(coming.marks.len() <= MARKS_MAX, "{every_s}");
                assert_eq!(coming.is_thinned, moments > MARKS_MAX as u64, "{every_s}");
                let last = coming.marks.last().unwrap().since(now).us();
                let gap = (length.us() / MARKS_MAX as u64).max(every_s * 1_000_000);
                assert!(last + 2 * gap > length.us(), "{every_s}: it ends at {last}");
                let steps = coming.marks.windows(2).map(|two| two[1].since(two[0]).us());
                assert!(steps.max().unwrap() <= 2 * gap, "{every_s}: it has no hole");
            }
        }
    }
}
