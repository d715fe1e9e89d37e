//! All schedules: the next moment and the last run of each.

use maud::{Markup, html};
use tenure_core::requests::ListSchedules;
use tenure_core::schedule::ScheduleView;

use super::{PageRow, Section, coming, draw};
use crate::language::sentences;
use crate::show::{ago, command, done, empty, number_cell, pager, scroll_table, state};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Schedules", "定时";
    none: "There is no schedule yet. Make one: tenure schedule set news --cron '0 6 * * *' --queue news",
        "还没有定时。创建一个：tenure schedule set news --cron '0 6 * * *' --queue news";
    schedule: "Schedule", "定时";
    next: "Next", "下次";
    last: "Last job", "上一个任务";
    fired: "Fired", "已触发";
    skipped: "Skipped", "跳过";
    missed: "Missed", "错过";
    every(span): "every {span}", "每 {span}";
    paused: "paused", "已暂停";
    ended: "ended", "已结束";
    did_delete: "The schedule is deleted. Its jobs go on.", "定时已删除，其任务继续。";
}

pub(super) const ROWS: &[PageRow] =
    &[PageRow::new(Section::Schedules, "/schedules").shows(draw!(show))];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let request = ListSchedules { owner: None, full: false, page: visit.page() };
    let list = visit.ask(request).await?;
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        (done(visit, &[("deleted", says.did_delete())]))
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else { (table(visit, says, &list.items)) }
            (pager(visit, "/schedules", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["schedule"])))
    };
    Sheet::live(says.title(), body)
}

/// The times of a schedule, as they were set.
pub(super) fn timing(visit: &Visit, schedule: &ScheduleView) -> Markup {
    let (says, timing) = (Says(visit.tongue), &schedule.settings.timing);
    html! {
        @if let Some(cron) = &timing.cron { code { (cron) } " " }
        @if let Some(every) = timing.every { (says.every(every)) " " }
        @if let Some(zone) = &timing.zone { (zone) }
    }
}

/// The state of a schedule that does not fire, in a word.
pub(super) fn standing(visit: &Visit, schedule: &ScheduleView) -> Option<Markup> {
    let says = Says(visit.tongue);
    match (schedule.paused, schedule.ended) {
        (true, _) => Some(html! { span class="state paused" { (says.paused()) } }),
        (_, true) => Some(html! { span class="state cancelled" { (says.ended()) } }),
        _ => None,
    }
}

fn table(visit: &Visit, says: Says, schedules: &[ScheduleView]) -> Markup {
    let heads = html! {
        th scope="col" { (says.schedule()) }
        th scope="col" { (coming::day_name(visit)) }
        th scope="col" { (says.next()) }
        th scope="col" { (says.last()) }
        th scope="col" class="num" { (says.fired()) }
        th scope="col" class="num" { (says.skipped()) }
        th scope="col" class="num" { (says.missed()) }
    };
    let rows = html! {
        @for one in schedules {
            tr {
                th scope="row" {
                    a href=(visit.to("schedules", &one.id)) { (one.id) }
                    @if let Some(standing) = standing(visit, one) { " " (standing) }
                    div class="faint" { (timing(visit, one)) }
                }
                td class="wide" { (coming::day(visit, one)) }
                td class="soft" { @if let Some(next) = one.next_at { (ago(visit, next)) } }
                td {
                    @if let Some(last) = &one.last_ended {
                        (state(last.state, visit.tongue)) " "
                        span class="soft" { (ago(visit, last.finished_at)) }
                    }
                }
                (number_cell(one.fired)) (number_cell(one.skipped)) (number_cell(one.missed))
            }
        }
    };
    scroll_table(None, heads, rows)
}
