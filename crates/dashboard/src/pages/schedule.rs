//! One schedule: its next moments, its history, and run now, pause, resume.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::decode::{self, Decode};
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, JobFilter, ListJobs, Listed, Page, PauseSchedule, ResumeSchedule,
    RunScheduleNow,
};
use tenure_core::schedule::ScheduleView;

use super::first_found::first_found;
use super::last_changes::last_changes;
use super::{PageRow, Section, action, coming, draw, jobs, schedules};
use crate::acting::{Field, back_to, said};
use crate::filter::term;
use crate::language::sentences;
use crate::payloads::PayloadLines;
use crate::show::{
    ago, ask_link, ask_to_delete, at, button, commands, done, empty, fact, form, state,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    schedules: "Schedules", "定时";
    jobs_of: "All its jobs", "全部任务";
    next: "Next occurrences", "接下来的时刻";
    next_one: "next", "下次";
    none_next: "No occurrence is left.", "没有剩余的时刻。";
    history: "Jobs that it made", "已创建的任务";
    none_made: "No job of it is kept.", "没有保留的任务。";
    run_now: "Run now", "立即运行";
    pause: "Pause", "暂停";
    pause_for: "For how long, such as 1h; if empty, until it is resumed", "暂停多久，例如 1h；留空则直到恢复";
    resume: "Resume", "恢复";
    delete: "Delete", "删除";
    delete_title(id): "Delete schedule \"{id}\"?", "删除定时“{id}”？";
    delete_what: "It no longer fires. Jobs that it made go on.", "它将不再触发，已创建的任务继续。";
    did_pause: "The schedule is paused; its occurrences during the pause are left out.",
        "定时已暂停；期间错过的时刻不会补上。";
    did_resume: "The schedule is resumed.", "定时已恢复。";
    did_run: "An extra job was pushed.", "已额外创建一个任务。";
    facts: "Facts", "详情";
    cron: "Cron", "Cron";
    zone: "Zone", "时区";
    every: "Every", "间隔";
    queue: "Queue", "队列";
    owner: "Owner", "所有者";
    paused_until: "Paused until", "暂停至";
    unfinished: "Unfinished jobs", "未完成的任务";
    last: "Last fired", "上次触发";
    last_ended: "Last job that ended", "上一个结束的任务";
    succeeded: "Last success", "上次成功";
    fired: "Fired", "已触发";
    skipped: "Skipped", "跳过";
    missed: "Missed", "错过";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Schedules, "/schedules/{}").shows(draw!(show)),
    PageRow::new(Section::Schedules, "/schedules/{}/run-now")
        .acts(action!(RunScheduleNow, run_now)),
    PageRow::new(Section::Schedules, "/schedules/{}/pause").acts(action!(PauseSchedule, pause)),
    PageRow::new(Section::Schedules, "/schedules/{}/resume").acts(action!(ResumeSchedule, resume)),
    PageRow::new(Section::Schedules, "/schedules/{}/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeleteSchedule, delete)),
];

/// The newest of its jobs; a link leads to all.
const MADE_SHOWN: usize = 10;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let schedule = decode::schedule_path(visit.name())?;
    let one = visit.ask(GetSchedule { schedule: schedule.clone() }).await?;
    let filter = JobFilter { schedule: Some(schedule), ..JobFilter::default() };
    let page = Page { max: MADE_SHOWN, cursor: None };
    let request = ListJobs { filter, page, full: true };
    // To find no job of this schedule, the store would look at many jobs of others.
    let made = if one.fired > 0 || one.unfinished > 0 || one.last_ended.is_some() {
        first_found(visit, request).await?
    } else {
        Listed { items: Vec::new(), next: None, partial: false }
    };
    let lines = PayloadLines::of(visit, &made.items).await?;
    let id = one.id.to_string();
    let path = |action: &str| crate::pairs::path(&["schedules", &id, action]);
    let next = one.next.as_deref().unwrap_or_default();
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/schedules")) { (says.schedules()) } }
                h1 { (id) }
                p class="sub" {
                    @if let Some(standing) = schedules::standing(visit, &one) { (standing) }
                    span { (schedules::timing(visit, &one)) }
                    @if let Some(next) = one.next_at { span { (says.next_one()) " " (ago(visit, next)) } }
                }
            }
            div class="acts" {
                (button(visit, &path("run-now"), "main", &says.run_now()))
                @if one.paused { (button(visit, &path("resume"), "", &says.resume())) } @else {
                    (form(visit, &path("pause"), html! {
                        input name="for" placeholder="1h" aria-label=(says.pause_for()) title=(says.pause_for());
                    }, &says.pause()))
                }
                (ask_link(visit, &path("delete"), "btn danger", &says.delete()))
            }
        }
        (done(visit, &[
            ("paused", says.did_pause()), ("resumed", says.did_resume()), ("ran", says.did_run()),
        ]))
        section class="panel" {
            header { h2 { (says.next()) } }
            @if next.is_empty() { (empty(&says.none_next())) } @else {
                div class="body fields" {
                    (coming::calendar(visit, &one))
                    ol class="moments" {
                        @for moment in next { li { (at(*moment)) span class="faint" { (ago(visit, *moment)) } } }
                    }
                }
            }
        }
        section class="panel" {
            header { h2 { (says.history()) } a href=(visit.to_jobs(&term("schedule", &id))) { (says.jobs_of()) } }
            @if made.items.is_empty() { (empty(&says.none_made())) } @else { (jobs::table(visit, &made.items, &lines, false)) }
        }
        (facts(visit, says, &one))
        (last_changes(visit, &format!("schedule:{id}")))
        (commands(visit, &[
            visit.command(&["schedule", &id]),
            visit.command(&["schedule", "run-now", &id]),
            visit.command(&["schedule", "pause", &id, "--for", "1h"]),
            visit.command(&["schedule", "resume", &id]),
        ]))
    };
    Sheet::live(id.clone(), body)
}

fn facts(visit: &Visit, says: Says, one: &ScheduleView) -> Markup {
    let timing = &one.settings.timing;
    let code = |text: &String| html! { code { (text) } };
    let number = |n: u64| Some(html! { (grouped(n)) });
    html! {
        section class="panel" {
            header { h2 { (says.facts()) } }
            div class="body" {
                dl class="facts" {
                    (fact(&says.cron(), timing.cron.as_ref().map(code)))
                    (fact(&says.zone(), timing.zone.as_ref().map(|zone| html! { (zone) })))
                    (fact(&says.every(), timing.every.map(|every| html! { (every) })))
                    dt { (says.queue()) }
                    dd { a href=(visit.to("queues", &one.settings.job.queue)) { (one.settings.job.queue) } }
                    (fact(&says.owner(), one.settings.owner.as_ref().map(|owner| html! { (owner) })))
                    (fact(&says.paused_until(), one.paused_until.map(at)))
                    (fact(&says.unfinished(), number(one.unfinished)))
                    (fact(&says.last(), one.last.as_ref().map(|last| html! {
                        (at(last.at)) " " a class="mono" href=(visit.to("jobs", &last.job)) { (last.job) }
                    })))
                    (fact(&says.last_ended(), one.last_ended.as_ref().map(|last| html! {
                        (state(last.state, visit.tongue)) " " (ago(visit, last.finished_at)) " "
                        a class="mono" href=(visit.to("jobs", &last.job)) { (last.job) }
                    })))
                    (fact(&says.succeeded(), one.last_succeeded_at.map(|moment| ago(visit, moment))))
                    (fact(&says.fired(), number(one.fired)))
                    (fact(&says.skipped(), number(one.skipped)))
                    (fact(&says.missed(), number(one.missed)))
                }
            }
        }
    }
}

fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    back_to(visit, &["schedules", visit.name()], &[("did", did)])
}

async fn run_now(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(RunScheduleNow::of(&visit.names, b"")?).await?;
    back(visit, "ran")
}

async fn pause(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("for", Field::Text)]);
    visit.ask(PauseSchedule::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "paused")
}

async fn resume(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(ResumeSchedule { schedule: decode::schedule_path(visit.name())? }).await?;
    back(visit, "resumed")
}

async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let title = says.delete_title(visit.name());
    ask_to_delete(visit, ("schedule", "schedules"), title, says.delete_what(), says.delete())
}

async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeleteSchedule { schedule: decode::schedule_path(visit.name())? }).await?;
    back_to(visit, &["schedules"], &[("did", "deleted")])
}
