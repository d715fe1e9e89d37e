//! One pool: its resources, their holders, and its settings. The data of resources is shown nowhere, not even its keys.

use maud::{Markup, html};
use serde_json::Value;
use tenure_core::count::grouped;
use tenure_core::decode::{self, Decode};
use tenure_core::names::PoolName;
use tenure_core::requests::{DeletePool, GetPool, ListResources, Listed, PatchPool};
use tenure_core::settings::{Pick, PoolView, ResourceState, ResourceView};

use super::last_changes::last_changes;
use super::{PageRow, Section, action, draw, limits, pools, rate_fields};
use crate::acting::{Field, back_to, body};
use crate::command::ShownCommand;
use crate::language::sentences;
use crate::look_through::look_through;
use crate::show::{
    ago, ask_link, ask_to_delete, bar, button, commands, done, empty, pager, scroll_table,
};
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
    all: "All", "全部";
    none_so: "No resource is in this state.", "没有处于此状态的资源。";
    none_so_far: "No resource on this page is in this state; the next page continues the search.",
        "已查看的资源中没有处于此状态的；下一页会继续查找。";
    retiring: "retiring", "待移除";
    more(n): "and {n} more", "以及另外 {n} 个";
    cool: "Cool", "冷却";
    ban: "Ban", "禁用";
    restore: "Restore", "恢复";
    delete: "Delete", "删除";
    delete_title(pool): "Delete pool \"{pool}\"?", "删除资源池“{pool}”？";
    delete_what: "Its resources are deleted with their data. A pool with a leased resource cannot be deleted. Jobs that need the pool wait until it exists again.",
        "其资源及数据将被删除。仍有资源被持有的池不会被删除。需要它的任务将等待其重新出现。";
    remove: "Remove", "移除";
    add: "Add a resource", "添加资源";
    change: "Change the settings", "更改设置";
    cooldown_field: "Rest of a resource after each use", "每次使用后的冷却";
    quarantine_field: "Rest after a lost holder", "持有者丢失后的冷却";
    max_uses: "Uses after which a resource is banned", "禁用前的最大使用次数";
    no_bound: "no bound", "无上限";
    pick: "Free resource to grant", "选择方式";
    lru: "the least recently used", "最久未使用的";
    random: "any", "随机";
    save: "Save", "保存";
    did_set: "The pool is changed.", "资源池已更改。";
    did_add(id): "\"{id}\" is added.", "“{id}”已添加。";
    did_remove(id): "\"{id}\" is removed, or will be when it is free.", "“{id}”已移除，或将在空闲后移除。";
    did_cool(id): "\"{id}\" rests.", "“{id}”正在冷却。";
    did_ban(id): "\"{id}\" is banned.", "“{id}”已被禁用。";
    did_restore(id): "\"{id}\" is available again.", "“{id}”已恢复可用。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Pools, "/pools/{}").shows(draw!(show)),
    PageRow::new(Section::Pools, "/pools/{}/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeletePool, delete)),
    PageRow::new(Section::Pools, "/pools/{}/set").acts(action!(PatchPool, set)),
];

/// Holders of a resource that its row names.
const HOLDERS_SHOWN: usize = 2;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let name: PoolName = decode::pool_path(visit.name())?;
    let pool = visit.ask(GetPool { pool: name.clone() }).await?;
    let wanted = visit.query.get("state");
    let list = look(visit, &name, wanted).await?;
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
                (ask_link(visit, &format!("{path}/add"), "btn main", &says.add()))
                (ask_link(visit, &format!("{path}/delete"), "btn danger", &says.delete()))
            }
        }
        (done(visit, &[
            ("cooled", says.did_cool(about)),
            ("banned", says.did_ban(about)),
            ("restored", says.did_restore(about)),
            ("added", says.did_add(about)),
            ("removed", says.did_remove(about)),
            ("set", says.did_set()),
        ]))
        div class="tiles" {
            @for (label, n) in pools::numbers(visit, &pool) {
                div class="tile" { span class="label" { (label) } span class="big" { (grouped(n)) } }
            }
        }
        section class="panel" {
            header { h2 { (says.resources()) } (pools::legend(visit)) }
            div class="body" { (bar(&pools::parts(&pool), 0, false)) }
            (tabs(visit, says, &path, &pool, wanted))
            @if list.items.is_empty() {
                (empty(&match (wanted, &list.next) {
                    (None, _) => says.none(),
                    (Some(_), None) => says.none_so(),
                    (Some(_), Some(_)) => says.none_so_far(),
                }))
            } @else { (table(visit, says, &name, &list.items)) }
            (pager(visit, &path, &[("state", wanted.unwrap_or_default())], list.next.as_deref(), list.partial))
        }
        @if visit.may_act(&format!("{path}/set")) {
            (editor(visit, says, &pool, &format!("{path}/set")))
        }
        (last_changes(visit, &format!("pool:{name}")))
        (commands(visit, &by_command(visit, &name)))
    };
    Sheet::live(name.to_string(), body)
}

/// One page of resources. The API lists them by id alone, so for one state up to ten thousand are read and filtered.
async fn look(
    visit: &Visit,
    pool: &PoolName,
    state: Option<&str>,
) -> Result<Listed<ResourceView>, Unanswered> {
    let page = visit.page();
    let ask = |page| visit.ask(ListResources { pool: pool.clone(), page });
    match state {
        None => ask(page).await,
        Some(state) => {
            let stands_so = |one: &ResourceView| pools::standing(visit, one).0 == state;
            look_through(page.cursor, page.max, ask, stands_so).await
        }
    }
}

/// A tab for each state of a resource.
fn tabs(visit: &Visit, says: Says, path: &str, pool: &PoolView, here: Option<&str>) -> Markup {
    let states = ["available", "leased", "cooling", "banned"];
    html! {
        nav class="tabs" aria-label=(says.state()) {
            a href=(visit.link(path)) aria-current=[here.is_none().then_some("true")] { (says.all()) }
            @for (state, (label, n)) in states.into_iter().zip(pools::numbers(visit, pool)) {
                a href=(visit.link_with(path, &[("state", state)]))
                    aria-current=[(here == Some(state)).then_some("true")] {
                    (label)
                    @if n > 0 { span class="count" { (grouped(n)) } }
                }
            }
        }
    }
}

fn by_command(visit: &Visit, name: &PoolName) -> Vec<ShownCommand> {
    let name = name.as_str();
    vec![
        visit.command(&["pool", name]),
        visit.command(&["pool", "resources", name]),
        visit.command(&["pool", "set", name, "--cooldown", "10s"]),
        visit.command(&["pool", "restore", name, "ID"]),
    ]
}

/// The settings in a form that opens.
fn editor(visit: &Visit, says: Says, pool: &PoolView, path: &str) -> Markup {
    let set = &pool.settings;
    let rest = |span: tenure_core::time::Span| (span.us() > 0).then(|| span.to_string());
    html! {
        details class="panel editor" {
            summary { (says.change()) }
            form class="fields two" method="post" action=(visit.link(path)) {
                label { (says.cooldown_field())
                    input name="cooldown" value=[rest(set.cooldown)] placeholder="0s";
                }
                label { (says.quarantine_field())
                    input name="quarantine" value=[rest(set.quarantine)] placeholder="0s";
                }
                (rate_fields::fields(visit, set.rate.as_ref()))
                label { (says.max_uses())
                    input name="max_uses" inputmode="numeric" value=[set.max_uses] placeholder=(says.no_bound());
                }
                label { (says.pick())
                    select name="pick" {
                        option value="lru" selected[set.pick == Pick::Lru] { (says.lru()) }
                        option value="random" selected[set.pick == Pick::Random] { (says.random()) }
                    }
                }
                div { button class="main" { (says.save()) } }
            }
        }
    }
}

async fn set(visit: &Visit) -> Result<Drawn, Unanswered> {
    let fields = [
        ("cooldown", Field::TextOrNull),
        ("quarantine", Field::TextOrNull),
        ("max_uses", Field::NumberOrNull),
        ("pick", Field::Text),
    ];
    let mut body = body(visit, &fields);
    rate_fields::say(visit, &mut body);
    let body = Value::Object(body).to_string();
    visit.set(PatchPool::of(&visit.names, body.as_bytes())?).await?;
    back_to(visit, &["pools", visit.name()], &[("did", "set")])
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
    let heads = html! {
        th scope="col" { (says.resource()) }
        th scope="col" { (says.state()) }
        th scope="col" { (says.tags()) }
        th scope="col" { (says.held_by()) }
        th scope="col" class="num" { (says.slots()) }
        th scope="col" class="num" { (says.uses()) }
        th scope="col" class="num" { (says.last()) }
        th scope="col" { span class="hidden" { (says.actions()) } }
    };
    scroll_table(None, heads, html! { @for one in resources { (row(visit, says, pool, one)) } })
}

fn row(visit: &Visit, says: Says, pool: &PoolName, one: &ResourceView) -> Markup {
    let (class, word) = pools::standing(visit, one);
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
    let path = |action| crate::pairs::path(&["pools", pool.as_str(), "resources", &id, action]);
    html! {
        span class="inline" {
            @if one.state == ResourceState::Available {
                (ask_link(visit, &path("cool"), "btn small", &says.cool()))
                (ask_link(visit, &path("ban"), "btn small danger", &says.ban()))
            } @else { (button(visit, &path("restore"), "small", &says.restore())) }
            @if !one.retiring {
                (ask_link(visit, &path("remove"), "btn small danger", &says.remove()))
            }
        }
    }
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
