//! One queue: its jobs by state, the last hour or day as pictures, its settings, pause and resume.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::decode::{self, Decode};
use tenure_core::job::JobState;
use tenure_core::requests::{
    DeleteQueue, GetQueue, JobFilter, ListJobs, Page, PatchQueue, PauseQueue, ResumeQueue,
};
use tenure_core::settings::QueueView;

use super::first_found::first_found;
use super::last_changes::last_changes;
use super::pictures::{Picture, Pictures};
use super::{PageRow, Section, action, draw, jobs};
use crate::acting::{Field, back_to, said};
use crate::language::sentences;
use crate::payloads::PayloadLines;
use crate::show::{
    ago, ask_link, ask_to_delete, at, button, commands, done, empty, fact, form, word,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    queues: "Queues", "队列";
    paused: "paused", "已暂停";
    paused_until: "paused until", "暂停至";
    pause: "Pause", "暂停";
    pause_for: "For how long, such as 30m; if empty, until it is resumed",
        "暂停多久，例如 30m；留空则直到恢复";
    resume: "Resume", "恢复";
    delete: "Delete", "删除";
    delete_title(queue): "Delete queue \"{queue}\"?", "删除队列“{queue}”？";
    delete_what: "Its settings are deleted. A queue with unfinished jobs cannot be deleted.",
        "其设置将被删除。仍有未完成任务的队列不会被删除。";
    did_pause: "The queue is paused: it grants no jobs.", "队列已暂停：不再发放其任务。";
    did_resume: "The queue is resumed.", "队列已恢复。";
    did_set: "The settings are changed. They apply to jobs that are pushed from now on.",
        "设置已更改，对此后推送的任务生效。";
    did_show: "Lists show one line of each payload.", "列表显示每个负载的一行。";
    did_hide: "Lists do not show its payloads.", "列表不显示其负载。";
    oldest: "Oldest ready", "最早就绪";
    workers: "Workers", "请求中的工作进程";
    settings: "Settings", "设置";
    needs: "Needs", "需求";
    timeout: "Timeout of a run", "单次运行超时";
    retain: "Retention", "已完成任务保留";
    max_waiting: "Maximum waiting jobs", "最多等待任务数";
    retry: "Attempts", "尝试次数";
    shares: "Shares", "份额";
    skipped: "Skipped occurrences of schedules", "跳过的定时触发";
    payload: "Payloads in lists", "列表中的负载";
    payload_shown: "one line of each", "每个显示一行";
    payload_hidden: "not shown", "不显示";
    show: "Show them", "显示";
    hide: "Hide them", "隐藏";
    change: "Change", "更改";
    no_bound: "no bound", "无上限";
    newest: "Its newest jobs", "最新任务";
    no_jobs: "No job of it is kept.", "没有保留的任务。";
    jobs_of: "All jobs of this queue", "此队列的全部任务";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Queues, "/queues/{}").shows(draw!(show)),
    PageRow::new(Section::Queues, "/queues/{}/pause").acts(action!(PauseQueue, pause)),
    PageRow::new(Section::Queues, "/queues/{}/resume").acts(action!(ResumeQueue, resume)),
    PageRow::new(Section::Queues, "/queues/{}/set").acts(action!(PatchQueue, set)),
    PageRow::new(Section::Queues, "/queues/{}/show-payload")
        .acts(action!(PatchQueue, show_payload)),
    PageRow::new(Section::Queues, "/queues/{}/hide-payload")
        .acts(action!(PatchQueue, hide_payload)),
    PageRow::new(Section::Queues, "/queues/{}/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeleteQueue, delete)),
];

/// The newest of its jobs; a link leads to all.
const NEWEST_SHOWN: usize = 10;
const PICTURES: [Picture; 3] = [Picture::Runs, Picture::Waits, Picture::RunTimes];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let queue = visit.ask(GetQueue { queue: decode::queue_path(visit.name())? }).await?;
    let name = queue.name.to_string();
    let path = |action: &str| crate::pairs::path(&["queues", &name, action]);
    let of_queue = crate::filter::term("queue", &name);
    let filter = JobFilter { queue: Some(queue.name.clone()), ..JobFilter::default() };
    let page = Page { max: NEWEST_SHOWN, cursor: None };
    let newest = first_found(visit, ListJobs { filter, page, full: true }).await?;
    let lines = PayloadLines::of(visit, &newest.items).await?;
    let pictures = Pictures::of(visit, Some(&queue.name));
    let counts = &queue.counts;
    let states = [
        (JobState::Ready, counts.ready),
        (JobState::Blocked, counts.blocked),
        (JobState::Scheduled, counts.scheduled),
        (JobState::Dependent, counts.dependent),
        (JobState::Running, counts.running),
    ];
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/queues")) { (says.queues()) } }
                h1 { (name) }
                p class="sub" {
                    @if queue.paused {
                        span class="state pill paused" {
                            @match queue.paused_until {
                                Some(until) => { (says.paused_until()) " " (at(until)) },
                                None => (says.paused()),
                            }
                        }
                    }
                }
            }
            div class="acts" {
                @if queue.paused {
                    (button(visit, &path("resume"), "main", &says.resume()))
                } @else {
                    (form(visit, &path("pause"), html! {
                        input name="for" placeholder="30m" aria-label=(says.pause_for()) title=(says.pause_for());
                    }, &says.pause()))
                }
                (ask_link(visit, &path("delete"), "btn danger", &says.delete()))
            }
        }
        (done(visit, &[
            ("paused", says.did_pause()), ("resumed", says.did_resume()), ("set", says.did_set()),
            ("shows", says.did_show()), ("hides", says.did_hide()),
        ]))
        div class="tiles" {
            @for (state, n) in states {
                @let filter = format!("{of_queue} state:{state}");
                a class="tile" href=(visit.to_jobs(&filter)) {
                    span class={ "label state " (state.as_str()) } { (word(state, visit.tongue)) }
                    span class="big" { (grouped(n)) }
                }
            }
        }
        @if let Some(pictures) = &pictures {
            (pictures.tabs(visit, &crate::pairs::path(&["queues", &name])))
            (pictures.draw(&PICTURES))
        }
        section class="panel" {
            header { h2 { (says.newest()) } a href=(visit.to_jobs(&of_queue)) { (says.jobs_of()) } }
            @if newest.items.is_empty() { (empty(&says.no_jobs())) } @else { (jobs::table(visit, &newest.items, &lines, false)) }
        }
        (settings(visit, says, &queue))
        (last_changes(visit, &format!("queue:{name}")))
        (commands(visit, &[
            visit.command(&["queue", &name]),
            visit.command(&["queue", "pause", &name, "--for", "30m"]),
            visit.command(&["queue", "resume", &name]),
            visit.command(&["queue", "set", &name, "--max-waiting", "1000"]),
            visit.command(&["queue", "set", &name, "--show-payload", "false"]),
        ]))
    };
    Sheet::live(name.clone(), body)
}

fn settings(visit: &Visit, says: Says, queue: &QueueView) -> Markup {
    let set = &queue.settings;
    let path = |action: &str| crate::pairs::path(&["queues", queue.name.as_str(), action]);
    let text = |text: String| Some(html! { (text) });
    let needs = (!set.needs.is_empty()).then(|| super::job::needs_text(&set.needs));
    let shares: Vec<String> = set.shares.iter().map(|(group, n)| format!("{group} {n}")).collect();
    html! {
        section class="panel" {
            header { h2 { (says.settings()) } }
            div class="body" {
                dl class="facts" {
                    (fact(&says.oldest(), queue.oldest_ready_at.map(|at| ago(visit, at))))
                    (fact(&says.workers(), text(grouped(queue.workers))))
                    (fact(&says.needs(), needs.map(|needs| html! { code { (needs) } })))
                    (fact(&says.timeout(), set.timeout.and_then(|span| text(span.to_string()))))
                    (fact(&says.retain(), set.retain.and_then(|span| text(span.to_string()))))
                    (fact(&says.retry(), set.retry.as_ref().and_then(|retry| {
                        text(retry.max_attempts.to_string())
                    })))
                    (fact(&says.shares(), (!shares.is_empty()).then(|| html! { (shares.join(", ")) })))
                    (fact(&says.skipped(), (queue.skipped > 0).then(|| html! { (grouped(queue.skipped)) })))
                    dt { (says.max_waiting()) }
                    dd {
                        @if visit.may_act(&path("set")) {
                            (form(visit, &path("set"), html! {
                                input name="max_waiting" inputmode="numeric" aria-label=(says.max_waiting())
                                    value=[set.max_waiting] placeholder=(says.no_bound());
                            }, &says.change()))
                        } @else if let Some(max) = set.max_waiting { (max) } @else { (says.no_bound()) }
                    }
                    dt { (says.payload()) }
                    dd {
                        (if set.show_payload { says.payload_shown() } else { says.payload_hidden() }) " "
                        @if set.show_payload { (button(visit, &path("hide-payload"), "", &says.hide())) } @else {
                            (button(visit, &path("show-payload"), "", &says.show()))
                        }
                    }
                }
            }
        }
    }
}

/// Back to the page of the queue, which says what was done.
fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    back_to(visit, &["queues", visit.name()], &[("did", did)])
}

async fn pause(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("for", Field::Text)]);
    visit.ask(PauseQueue::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "paused")
}

async fn resume(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(ResumeQueue { queue: decode::queue_path(visit.name())? }).await?;
    back(visit, "resumed")
}

async fn set(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("max_waiting", Field::NumberOrNull)]);
    visit.set(PatchQueue::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "set")
}

async fn show_payload(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.set(PatchQueue::of(&visit.names, br#"{"show_payload":true}"#)?).await?;
    back(visit, "shows")
}

async fn hide_payload(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.set(PatchQueue::of(&visit.names, br#"{"show_payload":false}"#)?).await?;
    back(visit, "hides")
}

async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let title = says.delete_title(visit.name());
    ask_to_delete(visit, ("queue", "queues"), title, says.delete_what(), says.delete())
}

async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeleteQueue { queue: decode::queue_path(visit.name())? }).await?;
    Ok(Drawn::Elsewhere(visit.link("/queues")))
}
