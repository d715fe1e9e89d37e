//! Jobs that a search names, newest first.

use std::collections::BTreeMap;

use maud::{Markup, html};
use tenure_core::bounds::{LIST_DEFAULT, LIST_MAX};
use tenure_core::count::grouped;
use tenure_core::decode;
use tenure_core::job::{JobState, JobView};
use tenure_core::refusal::Code;
use tenure_core::requests::{BulkChange, GetJob, GetStats, ListJobs, Listed, Page, Stats};

use super::first_found::first_found;
use super::{PageRow, Section, bulk, chosen, draw};
use crate::filter::JobSearch;
use crate::language::sentences;
use crate::look_through::look_through;
use crate::payloads::PayloadLines;
use crate::show::{
    ago, command, done, empty, id_link, pager, payload_row, scroll_table, state, word,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Jobs", "任务";
    filter: "Filter", "筛选";
    hint: "queue:crawl state:failed error:\"http 5\"", "queue:crawl state:failed error:\"http 5\"";
    all: "All", "全部";
    none: "No job matches.", "没有匹配的任务。";
    none_so_far: "No job matches on this page; the next page continues the search.",
        "已查看的任务中没有匹配项；下一页会继续查找。";
    none_yet: "There are no jobs yet. Push one:", "还没有任务。推送一个：";
    how: "Words of the filter: queue, state, kind, label (label:key=value), error, group, flow, schedule, after, before (of the end), id.",
        "筛选词：queue、state、kind、label（label:key=value）、error、group、flow、schedule、after、before（结束时间）、id。";
    unknown(key): "\"{key}\" is not a word of the filter.", "“{key}”不是筛选词。";
    by_words: "No job has this id. The list shows jobs whose id begins with it, or that have it as their kind or in a label; each page searches 10,000 jobs.",
        "没有此 ID 的任务。显示 ID 以其开头、或以其为类型或标签的任务；每页查看 10,000 个。";
    group_only: "A group filters only this list; cancel, retry and delete cannot be limited to a group.",
        "group 仅用于筛选此处显示的任务；批量取消、重试和删除无法限定到某个组。";
    job: "Job", "任务";
    state: "State", "状态";
    queue: "Queue", "队列";
    kind: "Kind", "类型";
    attempt: "Attempt", "尝试";
    of_attempts(n, most): "{n} of {most}", "{n} / {most}";
    error: "Error", "错误";
    when: "When", "时间";
    did_cancel(n): "Jobs cancelled, or asked to stop: {n}.", "已取消 {n} 个任务或请求其停止。";
    did_retry(n): "Jobs ready again: {n}.", "{n} 个任务已重新就绪。";
    did_delete(n): "Jobs deleted: {n}.", "已删除 {n} 个任务。";
    did_more: "More jobs match: repeat this for the next ones.", "还有更多匹配的任务：请再次执行。";
    did_forget: "The job was deleted.", "任务已删除。";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Jobs, "/jobs").shows(draw!(show))];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let search = JobSearch::read(visit.query.get("q").unwrap_or_default());
    if let Some(id) = search.id() {
        // A job that exists is shown at once.
        let job = decode::job_path(id)?;
        match visit.ask(GetJob { job }).await {
            Ok(_) => return Ok(Drawn::Elsewhere(visit.to("jobs", id))),
            Err(Unanswered::Refused(no))
                if no.code == Code::JobNotFound && !id.starts_with("key:") => {}
            Err(stop) => return Err(stop),
        }
    }
    let stats = visit.ask(GetStats).await?;
    let found = match search.unknown_key() {
        Some(key) => Err(format!("{} {}", says.unknown(key), says.how())),
        None => match look(visit, &search, &stats).await {
            Ok(list) => Ok(list),
            Err(Unanswered::Refused(no)) => Err(format!("{}. {}", no.detail, no.hint)),
            Err(stop) => return Err(stop),
        },
    };
    let lines = match &found {
        Ok(list) => PayloadLines::of(visit, &list.items).await?,
        Err(_) => PayloadLines::default(),
    };
    let text = search.text();
    let options = search.options();
    let mut words = vec!["jobs"];
    words.extend(options.iter().map(String::as_str));
    let body = html! {
        div class="head" {
            h1 { (says.title()) }
            @if search.can_be_acted_on() && found.is_ok() { (bulk::buttons(visit, &text)) }
        }
        (told(visit, says))
        form class="find" action="/jobs" role="search" aria-label=(says.filter()) {
            @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
            input name="q" value=(text) placeholder=(says.hint()) aria-label=(says.filter())
                title=(says.how()) autocomplete="off" spellcheck="false";
            button class="main" { (says.filter()) }
        }
        (tabs(visit, says, &search, &stats))
        @match &found {
            Err(no) => p class="notice bad" role="alert" { (no) },
            Ok(list) => {
                @if search.group().is_some() { p class="faint" { (says.group_only()) } }
                @if search.id().is_some() { p class="faint" { (says.by_words()) } }
                section class="panel" {
                    @if list.items.is_empty() {
                        @if search == JobSearch::default() {
                            div class="empty" {
                                p { (says.none_yet()) }
                                code class="cmd" tabindex="0" { "tenure push hello '{\"n\": 1}'" }
                            }
                        } @else { (empty(&if list.next.is_some() { says.none_so_far() } else { says.none() })) }
                    } @else {
                        @if visit.may_act("/chosen") {
                            form method="post" action=(visit.link("/chosen")) {
                                (table(visit, &list.items, &lines, true))
                                (chosen::buttons(visit, &text))
                            }
                        } @else { (table(visit, &list.items, &lines, false)) }
                    }
                    (pager(visit, "/jobs", &[("q", &text)], list.next.as_deref(), list.partial))
                }
            },
        }
        (command(visit, &visit.command(&words)))
    };
    Sheet::live(says.title(), body)
}

/// One page of jobs. With a group or a word it is filtered here, in bounded work.
async fn look(
    visit: &Visit,
    search: &JobSearch,
    stats: &Stats,
) -> Result<Listed<JobView>, Unanswered> {
    // To find no job, the store would look at all jobs of the queue.
    if let Some(state) = search.state()
        && counts(search, stats).is_some_and(|of| of.get(&state).is_none_or(|n| *n == 0))
    {
        return Ok(Listed { items: Vec::new(), next: None, partial: false });
    }
    let cursor = visit.query.get("cursor").map(str::to_owned);
    if search.group().is_none() && search.id().is_none() {
        let request = search.request(LIST_DEFAULT, cursor.as_deref())?;
        return first_found(visit, ListJobs { full: true, ..request }).await;
    }
    let ask = async |page: Page| visit.ask(search.request(page.max, page.cursor.as_deref())?).await;
    let is_of_group = |job: &JobView| {
        search.group().is_none_or(|group| job.group.as_ref().is_some_and(|of| of.as_str() == group))
    };
    let is_of = |job: &JobView| is_of_group(job) && search.has_words(job);
    look_through(cursor, LIST_MAX, ask, is_of).await
}

/// A notice of the action that led here.
fn told(visit: &Visit, says: Says) -> Markup {
    let number: u64 = visit.query.get("n").and_then(|n| n.parse().ok()).unwrap_or_default();
    let n = || grouped(number);
    let has_more = visit.query.get("more").is_some();
    let and_more =
        |text: String| if has_more { format!("{text} {}", says.did_more()) } else { text };
    done(
        visit,
        &[
            (bulk::key(BulkChange::Cancel), and_more(says.did_cancel(n()))),
            (bulk::key(BulkChange::Retry), and_more(says.did_retry(n()))),
            (bulk::key(BulkChange::Delete), and_more(says.did_delete(n()))),
            ("forgot", says.did_forget()),
        ],
    )
}

/// Jobs of each state that a search names, if the totals have the numbers.
fn counts<'s>(search: &JobSearch, stats: &'s Stats) -> Option<&'s BTreeMap<JobState, u64>> {
    match search.queue_alone() {
        Some(queue) => {
            let mut queues = stats.queues.iter();
            queues.find(|(name, _)| name.as_str() == queue).map(|(_, counts)| counts)
        }
        None => search.is_of_state_alone().then_some(&stats.jobs),
    }
}

/// A tab for each state, with a number if the totals have it.
fn tabs(visit: &Visit, says: Says, search: &JobSearch, stats: &Stats) -> Markup {
    let counts = counts(search, stats);
    let count = |state: JobState| counts.map(|of| of.get(&state).copied().unwrap_or_default());
    let here = search.state();
    let is_any = search.in_state(None) == *search;
    html! {
        nav class="tabs" aria-label=(says.state()) {
            a href=(visit.to_jobs(&search.in_state(None).text()))
                aria-current=[is_any.then_some("true")] { (says.all()) }
            @for state in JobState::ALL {
                a href=(visit.to_jobs(&search.in_state(Some(state)).text()))
                    aria-current=[(here == Some(state)).then_some("true")] {
                    (word(state, visit.tongue))
                    @if let Some(n) = count(state).filter(|n| *n > 0) {
                        span class="count" { (grouped(n)) }
                    }
                }
            }
        }
    }
}

/// Jobs, one per row, and below each a line of its payload if `lines` has one.
///
/// `has_boxes`: each has a box, by which the form around the table names it.
pub(super) fn table(
    visit: &Visit,
    jobs: &[JobView],
    lines: &PayloadLines,
    has_boxes: bool,
) -> Markup {
    let says = Says(visit.tongue);
    let heads = html! {
        @if has_boxes { td class="c-box" {} }
        th scope="col" class="c-id" { (says.job()) }
        th scope="col" class="c-state" { (says.state()) }
        th scope="col" class="c-queue" { (says.queue()) }
        th scope="col" class="c-kind" { (says.kind()) }
        th scope="col" class="c-count num" { (says.attempt()) }
        th scope="col" class="c-error" { (says.error()) }
        th scope="col" class="c-when num" { (says.when()) }
    };
    let rows = html! {
        @for job in jobs {
            (row(visit, says, job, has_boxes))
            (payload_row(lines.get(&job.id), has_boxes, COLUMNS))
        }
    };
    scroll_table(Some("rows"), heads, rows)
}

/// Beside the column of boxes.
const COLUMNS: usize = 7;

fn row(visit: &Visit, says: Says, job: &JobView, has_boxes: bool) -> Markup {
    // The moment that matters in this state: the end, the start, the next run, or the push.
    let when = match job.state {
        JobState::Scheduled => Some(job.run_at),
        JobState::Running => job.started_at,
        _ => job.finished_at.or(Some(job.created_at)),
    };
    let attempts = match job.retry.max_attempts {
        0 => job.attempt.to_string(),
        most => says.of_attempts(job.attempt, most),
    };
    let error = job.error.as_deref().and_then(|error| error.lines().next());
    html! {
        tr {
            @if has_boxes {
                td class="c-box" { input type="checkbox" name="job" value=(job.id) aria-label=(job.id); }
            }
            th scope="row" class="c-id mono" {
                (id_link(visit, &visit.to("jobs", &job.id), job.id.as_str()))
            }
            td class="c-state" { (state(job.state, visit.tongue)) }
            td class="c-queue" { a href=(visit.to("queues", &job.queue)) { (job.queue) } }
            td class="c-kind" {
                (job.kind)
                @for (key, value) in job.labels.iter().take(2) {
                    " " span class="chip" { (key) "=" (value) }
                }
            }
            td class="c-count num" { (attempts) }
            td class="c-error" title=[error] { @if let Some(error) = error { (error) } }
            td class="c-when num soft" { @if let Some(at) = when { (ago(visit, at)) } }
        }
    }
}
