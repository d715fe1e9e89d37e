//! All pools: how many of their resources are free.

use maud::{Markup, html};
use tenure_core::requests::ListPools;
use tenure_core::settings::{PoolView, ResourceState, ResourceView};

use super::{PageRow, Section, draw};
use crate::language::sentences;
use crate::show::{BarPart, bar, command, empty, number_cell, pager, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Pools", "资源池";
    none: "There is no pool yet. Make one of a file of accounts: tenure pool sync accounts accounts.csv",
        "还没有资源池。用账号文件创建：tenure pool sync accounts accounts.csv";
    pool: "Pool", "资源池";
    resources: "Resources", "资源";
    available: "available", "可用";
    leased: "leased", "已租用";
    cooling: "cooling", "冷却中";
    banned: "banned", "已禁用";
    waiting: "waiting", "等待";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Pools, "/pools").shows(draw!(show))];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let list = visit.ask(ListPools { page: visit.page() }).await?;
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else {
                header { h2 { (says.resources()) } (legend(visit)) }
                (table(visit, says, &list.items))
            }
            (pager(visit, "/pools", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["pool"])))
    };
    Sheet::live(says.title(), body)
}

/// The legend of a pool's bar.
pub(super) fn legend(visit: &Visit) -> Markup {
    let says = Says(visit.tongue);
    html! {
        p class="legend" {
            span class="available" { i {} (says.available()) }
            span class="ready" { i {} (says.leased()) }
            span class="cooling" { i {} (says.cooling()) }
            span class="banned" { i {} (says.banned()) }
        }
    }
}

/// Resources by state, as the parts of a bar.
pub(super) fn parts(pool: &PoolView) -> [BarPart; 4] {
    [
        ("free", pool.available),
        ("use", pool.leased),
        ("cooling", pool.cooling),
        ("banned", pool.banned),
    ]
}

/// The word for the state of a resource, and the class of its colour.
pub(super) fn standing(visit: &Visit, one: &ResourceView) -> (&'static str, String) {
    let says = Says(visit.tongue);
    match one.state {
        ResourceState::Available if one.in_use > 0 => ("leased", says.leased()),
        ResourceState::Available => ("available", says.available()),
        ResourceState::Cooling => ("cooling", says.cooling()),
        ResourceState::Banned => ("banned", says.banned()),
    }
}

/// The numbers of a pool, by their names.
pub(super) fn numbers(visit: &Visit, pool: &PoolView) -> [(String, u64); 5] {
    let says = Says(visit.tongue);
    [
        (says.available(), pool.available),
        (says.leased(), pool.leased),
        (says.cooling(), pool.cooling),
        (says.banned(), pool.banned),
        (says.waiting(), pool.waiting),
    ]
}

fn table(visit: &Visit, says: Says, pools: &[PoolView]) -> Markup {
    let heads = html! {
        th scope="col" { (says.pool()) }
        th scope="col" { (says.resources()) }
        th scope="col" class="num" { (says.available()) }
        th scope="col" class="num" { (says.leased()) }
        th scope="col" class="num" { (says.cooling()) }
        th scope="col" class="num" { (says.banned()) }
        th scope="col" class="num" { (says.waiting()) }
    };
    let rows = html! {
        @for pool in pools {
            tr {
                th scope="row" { a href=(visit.to("pools", &pool.name)) { (pool.name) } }
                td class="wide" { (bar(&parts(pool), 0, false)) }
                @for (_, n) in numbers(visit, pool) {
                    (number_cell(n))
                }
            }
        }
    };
    scroll_table(None, heads, rows)
}
