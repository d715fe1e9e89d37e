//! The last changes of one thing with the names of their callers, on its page, for visitors who may see the trail.

use maud::{Markup, html};
use tenure_core::bounds::TRAIL_RECENT_MAX;
use tenure_core::count::grouped;
use tenure_core::trail::TrailLine;

use super::trail::{changed_settings, result};
use crate::language::sentences;
use crate::show::{ago, empty, scroll_table};
use crate::visit::Visit;

sentences! { Says;
    title: "Last changes", "最近的更改";
    all: "Who did what", "操作记录";
    none(most): "It is not among the last {most} changes that this server recorded. Of a shared store the leader records them.",
        "不在本服务器记录的最近 {most} 次更改之中。共享存储的更改由主节点记录。";
    when: "When", "时间";
    caller: "Token", "令牌";
    operation: "Operation", "操作";
    settings: "Settings", "设置";
    result: "Result", "结果";
}

/// The most changes that a page shows; a link leads to all.
const SHOWN: usize = 5;

/// The panel about a target, as the trail names it: `limit:site:*`. Nothing for a visitor who may not see the trail, and
/// where the trail cannot be read back.
pub(super) fn last_changes(visit: &Visit, target: &str) -> Markup {
    if !visit.may_see_trail() {
        return html! {};
    }
    let says = Says(visit.tongue);
    let changes = visit.trail.last_changes(&visit.namespace, target, SHOWN);
    let of_target = [("target", target), ("namespace", visit.namespace.as_str())];
    html! {
        section class="panel" {
            header { h2 { (says.title()) } a href=(visit.link_with("/trail", &of_target)) { (says.all()) } }
            @if changes.is_empty() { (empty(&says.none(grouped(TRAIL_RECENT_MAX as u64)))) } @else {
                (scroll_table(None, html! {
                    th scope="col" { (says.when()) }
                    th scope="col" { (says.caller()) }
                    th scope="col" { (says.operation()) }
                    th scope="col" { (says.settings()) }
                    th scope="col" { (says.result()) }
                }, html! { @for line in &changes { (row(visit, target, line)) } }))
            }
        }
    }
}

fn row(visit: &Visit, target: &str, line: &TrailLine) -> Markup {
    // A change of a resource is one of its pool.
    let others = line.targets.iter().filter(|one| *one != target);
    html! {
        tr {
            td class="tight soft" { (ago(visit, line.at)) }
            td class="mono" { (line.caller.as_deref().unwrap_or("-")) }
            td class="tight mono" { (line.op) }
            td {
                @for other in others { span class="mono" { (other) } " " }
                (changed_settings(line))
            }
            td class="soft" { (result(visit, line)) }
        }
    }
}
