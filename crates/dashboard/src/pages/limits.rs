//! All limits: the usage of each, and the number of waiting calls and jobs.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::requests::ListLimits;
use tenure_core::settings::{LimitView, Rate};

use super::{PageRow, Section, draw};
use crate::acting::back_to;
use crate::language::sentences;
use crate::show::{BarPart, bar, command, done, empty, number_cell, pager, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Limits", "限额";
    none: "There is no limit yet. Set one, and name it in the needs of jobs: tenure limit set site:example.com --concurrency 5",
        "还没有限额。设置一个，并在任务的需求中引用：tenure limit set site:example.com --concurrency 5";
    limit: "Limit", "限额";
    usage: "Use", "使用";
    in_use: "In use", "已用";
    outside_too(n, outside): "{n} + {outside} outside", "{n} + 外部 {outside}";
    of: "Of", "上限";
    rate: "Rate", "速率";
    gap: "Gap", "间隔";
    waiting: "Waiting", "等待";
    from(template): "from {template}", "来自 {template}";
    full: "full", "已满";
    closed: "closed", "已关闭";
    paused: "paused", "已暂停";
    template: "template", "模板";
    held: "held", "持有";
    resting: "resting", "冷却";
    outside: "outside", "外部";
    go_to: "Open a limit", "打开限额";
    open: "Open", "打开";
    did_delete: "The limit is deleted. Jobs that need it wait until it is set again.",
        "限额已删除。需要它的任务将等待其重新设置。";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Limits, "/limits").shows(draw!(show))];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    if let Some(name) = visit.query.get("name") {
        return back_to(visit, &["limits", name], &[]);
    }
    let list = visit.ask(ListLimits { page: visit.page() }).await?;
    let body = html! {
        div class="head" {
            h1 { (says.title()) }
            // With ten thousand limits a name is the fastest way to one of them.
            form class="inline" action="/limits" {
                @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
                input class="long" name="name" placeholder="site:example.com" aria-label=(says.go_to());
                button { (says.open()) }
            }
        }
        (done(visit, &[("deleted", says.did_delete())]))
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else {
                header { h2 { (says.usage()) } (legend(visit)) }
                (table(visit, says, &list.items))
            }
            (pager(visit, "/limits", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["limit"])))
    };
    Sheet::live(says.title(), body)
}

/// The legend of a limit's picture.
pub(super) fn legend(visit: &Visit) -> Markup {
    let says = Says(visit.tongue);
    html! {
        p class="legend" {
            span class="ready" { i {} (says.held()) }
            span class="scheduled" { i {} (says.resting()) }
            span class="faint" { i {} (says.outside()) }
        }
    }
}

/// The usage of a limit, as the parts of a picture.
pub(super) fn parts(limit: &LimitView) -> [BarPart; 3] {
    let held = limit.in_use.saturating_sub(limit.resting);
    [("use", held), ("rest", limit.resting), ("outside", limit.external)]
}

/// Why nothing is granted now, in a word.
pub(super) fn standing(visit: &Visit, limit: &LimitView) -> Option<Markup> {
    let says = Says(visit.tongue);
    let used = limit.in_use + limit.external;
    let (class, word) = if limit.paused_until.is_some_and(|until| until > visit.now) {
        ("paused", says.paused())
    } else {
        match limit.settings.concurrency {
            Some(0) => ("failed", says.closed()),
            Some(most) if used >= u64::from(most) => ("blocked", says.full()),
            _ => return None,
        }
    };
    Some(html! { span class={ "state " (class) } { (word) } })
}

/// A rate in a person's words.
pub(super) fn rate_text(rate: &Rate) -> String {
    format!("{} / {}", grouped(u64::from(rate.count)), rate.per)
}

fn table(visit: &Visit, says: Says, limits: &[LimitView]) -> Markup {
    let heads = html! {
        th scope="col" { (says.limit()) }
        th scope="col" { (says.usage()) }
        th scope="col" class="num" { (says.in_use()) }
        th scope="col" class="num" { (says.of()) }
        th scope="col" class="num" { (says.rate()) }
        th scope="col" class="num" { (says.gap()) }
        th scope="col" class="num" { (says.waiting()) }
        th scope="col" { span class="hidden" { (says.full()) } }
    };
    scroll_table(None, heads, html! { @for limit in limits { (row(visit, says, limit)) } })
}

fn row(visit: &Visit, says: Says, limit: &LimitView) -> Markup {
    let set = &limit.settings;
    let used = limit.in_use + limit.external;
    let is_full = set.concurrency.is_some_and(|most| used >= u64::from(most));
    let in_use = match limit.external {
        0 => grouped(limit.in_use),
        outside => says.outside_too(grouped(limit.in_use), grouped(outside)),
    };
    html! {
        tr {
            th scope="row" {
                a href=(visit.to("limits", &limit.name)) { (limit.name) }
                @if limit.name.is_template() { " " span class="chip" { (says.template()) } }
                @if let Some(template) = &limit.template {
                    " " span class="faint" { (says.from(template)) }
                }
            }
            td class="wide" {
                @if let Some(most) = set.concurrency { (bar(&parts(limit), u64::from(most), is_full)) }
            }
            td class={ "num" @if used == 0 { " zero" } } { (in_use) }
            td class="num" { @if let Some(most) = set.concurrency { (grouped(u64::from(most))) } }
            td class="num" { @if let Some(rate) = &set.rate { (rate_text(rate)) } }
            td class="num" { @if let Some(gap) = set.gap { (gap) } }
            (number_cell(limit.waiting))
            td class="tight" { @if let Some(standing) = standing(visit, limit) { (standing) } }
        }
    }
}
