//! Flows: the progress of each, and its jobs.

use std::cmp::Reverse;

use maud::{Markup, html};
use tenure_core::bounds::{LIST_MAX, LIST_SCAN_MAX};
use tenure_core::count::grouped;
use tenure_core::decode;
use tenure_core::flow::{FlowState, FlowView};
use tenure_core::requests::{
    CancelFlow, GetFlow, GetStats, JobFilter, ListFlows, ListJobs, Listed, Page,
};
use tenure_core::time::Span;

use super::{PageRow, Section, action, draw, flow_graph};
use crate::acting::back_to;
use crate::filter::term;
use crate::language::sentences;
use crate::payloads::PayloadLines;
use crate::show::{
    BarPart, ago, ask_link, ask_to_destroy, bar, command, done, empty, number_cell, pager,
    scroll_table,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Flows", "流程";
    none: "There is no flow yet. The first job of a flow creates it: tenure push build '{{}}' --flow release",
        "还没有流程。流程在第一个任务推送时出现：tenure push build '{{}}' --flow release";
    flow: "Flow", "流程";
    progress: "Progress", "进度";
    unfinished: "Unfinished", "未完成";
    succeeded: "Succeeded", "成功";
    failed: "Failed", "失败";
    cancelled: "Cancelled", "已取消";
    begun: "Begun", "开始";
    open: "open", "进行中";
    finished: "finished", "已结束";
    cancelling: "being cancelled", "正在取消";
    all_jobs: "All its jobs", "全部任务";
    no_jobs: "Its jobs are no longer kept.", "其任务已不再保留。";
    cancel: "Cancel", "取消";
    cancel_title(flow): "Cancel flow \"{flow}\"?", "取消流程“{flow}”？";
    cancel_what: "All unfinished jobs of the flow are cancelled, or asked to stop, as are jobs that they push into it.",
        "其所有未完成的任务将被取消或请求停止，它们推送到此流程的任务也一样。";
    did_cancel: "The flow is being cancelled.", "流程正在取消。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Flows, "/flows").shows(draw!(show_all)),
    PageRow::new(Section::Flows, "/flows/{}").shows(draw!(show)),
    PageRow::new(Section::Flows, "/flows/{}/cancel")
        .shows(draw!(ask_cancel))
        .acts(action!(CancelFlow, cancel)),
];

async fn show_all(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let list = listed(visit).await?;
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else { (table(visit, says, &list.items)) }
            (pager(visit, "/flows", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["flow"])))
    };
    Sheet::live(says.title(), body)
}

/// A page of flows, newest first. The store lists the oldest first, and more than ten thousand stay in its order.
async fn listed(visit: &Visit) -> Result<Listed<FlowView>, Unanswered> {
    let page = visit.page();
    if visit.ask(GetStats).await?.flows > LIST_SCAN_MAX as u64 {
        return visit.ask(ListFlows { page }).await;
    }
    let (mut all, mut next) = (Vec::new(), None);
    for _ in 0..LIST_SCAN_MAX / LIST_MAX {
        let list = visit.ask(ListFlows { page: Page { max: LIST_MAX, cursor: next } }).await?;
        all.extend(list.items);
        next = list.next;
        if next.is_none() {
            break;
        }
    }
    all.sort_by_key(|flow: &FlowView| Reverse(flow.created_at));
    let from = page.cursor.and_then(|from| from.parse().ok()).unwrap_or(0).min(all.len());
    let to = (from + page.max).min(all.len());
    let next = (to < all.len()).then(|| to.to_string());
    Ok(Listed { items: all.drain(from..to).collect(), next, partial: false })
}

fn parts(flow: &FlowView) -> [BarPart; 4] {
    let counts = &flow.counts;
    [
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("cancelled", counts.cancelled),
        ("dependent", counts.unfinished),
    ]
}

fn numbers(says: Says, flow: &FlowView) -> [(String, u64); 4] {
    let counts = &flow.counts;
    [
        (says.unfinished(), counts.unfinished),
        (says.succeeded(), counts.succeeded),
        (says.failed(), counts.failed),
        (says.cancelled(), counts.cancelled),
    ]
}

fn standing(says: Says, flow: &FlowView) -> Markup {
    let (class, word) = match (flow.cancelling, flow.state) {
        (true, FlowState::Open) => ("paused", says.cancelling()),
        (_, FlowState::Open) => ("running", says.open()),
        (_, FlowState::Finished) if flow.counts.has_failed() => ("failed", says.finished()),
        (_, FlowState::Finished) => ("succeeded", says.finished()),
    };
    html! { span class={ "state " (class) } { (word) } }
}

fn table(visit: &Visit, says: Says, flows: &[FlowView]) -> Markup {
    let heads = html! {
        th scope="col" { (says.flow()) }
        th scope="col" { (says.progress()) }
        th scope="col" class="num" { (says.unfinished()) }
        th scope="col" class="num" { (says.succeeded()) }
        th scope="col" class="num" { (says.failed()) }
        th scope="col" class="num" { (says.cancelled()) }
        th scope="col" class="num" { (says.begun()) }
    };
    let rows = html! {
        @for flow in flows {
            tr {
                th scope="row" {
                    a href=(visit.to("flows", &flow.flow)) { (flow.flow) } " " (standing(says, flow))
                }
                td class="wide" { (bar(&parts(flow), 0, false)) }
                @for (_, n) in numbers(says, flow) {
                    (number_cell(n))
                }
                td class="num soft" { (ago(visit, flow.created_at)) }
            }
        }
    };
    scroll_table(None, heads, rows)
}

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let name = decode::flow_path(visit.name())?;
    let flow = visit.ask(GetFlow { flow: name.clone(), wait: Span::ZERO }).await?;
    let filter = JobFilter { flow: Some(name.clone()), ..JobFilter::default() };
    let members = visit.ask(ListJobs { filter, full: true, ..ListJobs::default() }).await?;
    let lines = PayloadLines::of(visit, &members.items).await?;
    let path = crate::pairs::path(&["flows", name.as_str(), "cancel"]);
    let all = parts(&flow).iter().map(|(_, n)| n).sum();
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/flows")) { (says.title()) } }
                h1 { (name) }
                p class="sub" {
                    (standing(says, &flow))
                    a href=(visit.to_jobs(&term("flow", name.as_str()))) { (says.all_jobs()) }
                }
            }
            @if flow.state == FlowState::Open {
                div class="acts" { (ask_link(visit, &path, "btn danger", &says.cancel())) }
            }
        }
        (done(visit, &[("cancelled", says.did_cancel())]))
        (bar(&parts(&flow), 0, false))
        div class="tiles" {
            @for (label, n) in numbers(says, &flow) {
                div class="tile" { span class="label" { (label) } span class="big" { (grouped(n)) } }
            }
        }
        @if members.items.is_empty() {
            section class="panel" { (empty(&says.no_jobs())) }
        } @else { (flow_graph::panel(visit, &members.items, &lines, all)) }
        (command(visit, &visit.command(&["flow", name.as_str()])))
    };
    Sheet::live(name.to_string(), body)
}

async fn ask_cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let name = visit.name();
    let (title, what) = (says.cancel_title(name), vec![says.cancel_what()]);
    let words = ["flow", "cancel", name];
    ask_to_destroy(visit, title, what, says.cancel(), &words, visit.to("flows", name))
}

async fn cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(CancelFlow { flow: decode::flow_path(visit.name())? }).await?;
    back_to(visit, &["flows", visit.name()], &[("did", "cancelled")])
}
