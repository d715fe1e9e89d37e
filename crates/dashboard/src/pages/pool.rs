//! One pool: its resources, who holds which, and the three things that one does with them. Their data is shown nowhere, not even
//! its keys.

use maud::{Markup, html};
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::count::grouped;
use tenure_core::decode::{self, ResourcePath};
use tenure_core::names::PoolName;
use tenure_core::requests::{DeletePool, GetPool, ListResources, Page, RestoreResource};
use tenure_core::settings::{PoolView, ResourceState, ResourceView};

use super::{PageRow, Section, draw, limits, pools};
use crate::acting::{Field, back_to, said};
use crate::language::sentences;
use crate::show::{Confirm, ago, ask_first, ask_to_delete, bar, command, done, empty, pager};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    pools: "Pools", "资源池";
    cooldown(span): "each rests {span} after a use", "每次使用后冷却 {span}";
    quarantine(span): "{span} after a lost holder", "持有者丢失后冷却 {span}";
    rate(rate): "each at most {rate}", "每个最多 {rate}";
    resources: "Resources", "资源";
    none: "The pool has no resources. Add some: tenure pool add NAME ID, or tenure pool sync NAME FILE",
        "资源池为空。添加资源：tenure pool add NAME ID 或 tenure pool sync NAME FILE";
    resource: "Resource", "资源";
    state: "State", "状态";
    tags: "Tags", "标签";
    held_by: "Held by", "持有者";
    slots: "Slots", "槽位";
    of(n, all): "{n} of {all}", "{n} / {all}";
    uses: "Uses", "使用次数";
    last: "Last used", "上次使用";
    actions: "Actions", "操作";
    available: "available", "可用";
    leased: "leased", "已租用";
    cooling: "cooling", "冷却中";
    banned: "banned", "已禁用";
    retiring: "retiring", "待移除";
    more(n): "and {n} more", "以及另外 {n} 个";
    cool: "Cool", "冷却";
    ban: "Ban", "禁用";
    restore: "Restore", "恢复";
    delete: "Delete", "删除";
    cool_title(id): "Let \"{id}\" rest?", "让“{id}”冷却？";
    cool_what: "It is handed out no more until then. Whoever holds it keeps it.",
        "在此之前不再发放。当前持有者继续持有。";
    cool_for: "For how long, such as 10m", "冷却多久，例如 10m";
    ban_title(id): "Ban \"{id}\"?", "禁用“{id}”？";
    ban_what: "It is handed out no more until it is restored. Whoever holds it keeps it.",
        "在恢复之前不再发放。当前持有者继续持有。";
    ban_reason: "Why, for whoever looks at it later", "原因，供以后查看";
    delete_title(pool): "Delete pool \"{pool}\"?", "删除资源池“{pool}”？";
    delete_what: "Its resources are forgotten with their data. A pool of which something is held is not deleted. Jobs that need it wait until it is there again.",
        "其资源及数据将被删除。仍有资源被持有的池不会被删除。需要它的任务将等待其重新出现。";
    did_cool(id): "\"{id}\" rests.", "“{id}”正在冷却。";
    did_ban(id): "\"{id}\" is banned.", "“{id}”已被禁用。";
    did_restore(id): "\"{id}\" is available again.", "“{id}”已恢复可用。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Pools, "/pools/{}").shows(draw!(show)),
    PageRow::new(Section::Pools, "/pools/{}/delete").shows(draw!(ask_delete)).acts(draw!(delete)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/cool")
        .shows(draw!(ask_cool))
        .acts(draw!(cool)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/ban")
        .shows(draw!(ask_ban))
        .acts(draw!(ban)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/restore").acts(draw!(restore)),
];

/// Holders of a resource that its row names.
const HOLDERS_SHOWN: usize = 2;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let name: PoolName = decode::pool_path(visit.name())?;
    let pool = visit.ask(GetPool { pool: name.clone() }).await?;
    let cursor = visit.query.get("cursor").map(str::to_owned);
    let page = Page { max: LIST_DEFAULT, cursor };
    let list = visit.ask(ListResources { pool: name.clone(), page }).await?;
    let path = crate::pairs::path(&["pools", name.as_str()]);
    let about = visit.query.get("id").unwrap_or_default();
    let body = html! {
        div class="head" {
            div {
                p class="crumb" { a href=(visit.link("/pools")) { (says.pools()) } }
                h1 { (name) }
                p class="sub" { (settings(says, &pool)) }
            }
            div class="acts" {
                a class="btn danger" href=(visit.link(&format!("{path}/delete"))) { (says.delete()) "…" }
            }
        }
        (done(visit, &[
            ("cooled", says.did_cool(about)),
            ("banned", says.did_ban(about)),
            ("restored", says.did_restore(about)),
        ]))
        div class="tiles" {
            @for (label, n) in pools::numbers(visit, &pool) {
                div class="tile" { span class="label" { (label) } span class="big" { (grouped(n)) } }
            }
        }
        section class="panel" {
            header { h2 { (says.resources()) } (pools::legend(visit)) }
            div class="body" { (bar(&pools::parts(&pool), 0, false)) }
            @if list.items.is_empty() { (empty(&says.none())) } @else { (table(visit, says, &name, &list.items)) }
            (pager(visit, &path, &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["pool", name.as_str()])))
    };
    Sheet::live(name.to_string(), body)
}

fn settings(says: Says, pool: &PoolView) -> Markup {
    let set = &pool.settings;
    html! {
        @if set.cooldown.us() > 0 { span { (says.cooldown(set.cooldown)) } }
        @if set.quarantine.us() > 0 { span { (says.quarantine(set.quarantine)) } }
        @if let Some(rate) = &set.rate { span { (says.rate(limits::rate_text(rate))) } }
    }
}

fn table(visit: &Visit, says: Says, pool: &PoolName, resources: &[ResourceView]) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead {
                    tr {
                        th scope="col" { (says.resource()) }
                        th scope="col" { (says.state()) }
                        th scope="col" { (says.tags()) }
                        th scope="col" { (says.held_by()) }
                        th scope="col" class="num" { (says.slots()) }
                        th scope="col" class="num" { (says.uses()) }
                        th scope="col" class="num" { (says.last()) }
                        th scope="col" { span class="hidden" { (says.actions()) } }
                    }
                }
                tbody { @for one in resources { (row(visit, says, pool, one)) } }
            }
        }
    }
}

fn row(visit: &Visit, says: Says, pool: &PoolName, one: &ResourceView) -> Markup {
    let (class, word) = match one.state {
        ResourceState::Available if one.in_use > 0 => ("leased", says.leased()),
        ResourceState::Available => ("available", says.available()),
        ResourceState::Cooling => ("cooling", says.cooling()),
        ResourceState::Banned => ("banned", says.banned()),
    };
    let more = one.holders.len().saturating_sub(HOLDERS_SHOWN);
    html! {
        tr {
            th scope="row" class="mono" { (one.id) }
            td {
                span class={ "state " (class) } { (word) }
                @if let Some(reason) = &one.reason { " " span class="soft" { (reason) } }
                @if let Some(until) = one.until { " " span class="soft" { (ago(visit, until)) } }
                @if one.retiring { " " span class="chip" { (says.retiring()) } }
            }
            td { @for tag in &one.tags { span class="chip" { (tag) } " " } }
            td {
                @for holder in one.holders.iter().take(HOLDERS_SHOWN) {
                    div {
                        span class="mono" { (holder.holder) } " "
                        @if let Some(job) = &holder.job { a class="mono" href=(visit.to("jobs", job)) { (job) } }
                    }
                }
                @if more > 0 { span class="faint" { (says.more(more)) } }
            }
            td class="num" { (says.of(one.in_use, one.slots)) }
            td class="num" { (grouped(one.uses)) }
            td class="num soft" { @if let Some(at) = one.last_used_at { (ago(visit, at)) } }
            td class="tight" { (buttons(visit, says, pool, one)) }
        }
    }
}

fn buttons(visit: &Visit, says: Says, pool: &PoolName, one: &ResourceView) -> Markup {
    let id = one.id.to_string();
    let path = |action| {
        visit.link(&crate::pairs::path(&["pools", pool.as_str(), "resources", &id, action]))
    };
    html! {
        span class="inline" {
            @if one.state == ResourceState::Available {
                a class="btn small" href=(path("cool")) { (says.cool()) "…" }
                a class="btn small danger" href=(path("ban")) { (says.ban()) "…" }
            } @else {
                form method="post" action=(path("restore")) { button class="small" { (says.restore()) } }
            }
        }
    }
}

/// The resource that the path names.
fn path_of(visit: &Visit) -> ResourcePath<'_> {
    let second = visit.names.get(1).map_or("", String::as_str);
    ResourcePath { name: visit.name(), id: second }
}

fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    back_to(visit, &["pools", visit.name()], &[("did", did), ("id", path_of(visit).id)])
}

async fn ask_cool(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let ResourcePath { name, id } = path_of(visit);
    ask_first(
        visit,
        Confirm {
            title: says.cool_title(id),
            says: vec![says.cool_what()],
            fields: &[],
            asks: Some(
                html! { label { (says.cool_for()) input name="for" required placeholder="10m"; } },
            ),
            label: says.cool(),
            is_danger: false,
            command: visit.command(&["pool", "cool", name, id, "--for", "10m"]),
            back: visit.to("pools", name),
        },
    )
}

async fn cool(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("for", Field::Text)]);
    visit.ask(decode::cool_resource(path_of(visit), body.as_bytes())?).await?;
    back(visit, "cooled")
}

async fn ask_ban(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let ResourcePath { name, id } = path_of(visit);
    ask_first(
        visit,
        Confirm {
            title: says.ban_title(id),
            says: vec![says.ban_what()],
            fields: &[],
            asks: Some(
                html! { label { (says.ban_reason()) input name="reason" maxlength="200"; } },
            ),
            label: says.ban(),
            is_danger: true,
            command: visit.command(&["pool", "ban", name, id]),
            back: visit.to("pools", name),
        },
    )
}

async fn ban(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("reason", Field::Text)]);
    visit.ask(decode::ban_resource(path_of(visit), body.as_bytes())?).await?;
    back(visit, "banned")
}

async fn restore(visit: &Visit) -> Result<Drawn, Unanswered> {
    let (pool, resource) = decode::resource_path(path_of(visit))?;
    visit.ask(RestoreResource { pool, resource }).await?;
    back(visit, "restored")
}

async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let title = says.delete_title(visit.name());
    ask_to_delete(visit, ("pool", "pools"), title, says.delete_what(), says.delete())
}

async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeletePool { pool: decode::pool_path(visit.name())? }).await?;
    Ok(Drawn::Elsewhere(visit.link("/pools")))
}
