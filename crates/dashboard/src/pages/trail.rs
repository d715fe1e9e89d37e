//! "Who did what": the trail of this server, newest first, for visitors with `admin`.

use maud::{Markup, html};
use serde_json::Value;
use tenure_core::access::Scope;
use tenure_core::count::grouped;
use tenure_core::decode;
use tenure_core::trail::{TrailLine, UNANSWERED};
use tenure_engine_api::Fault;
use tokio::task::spawn_blocking;

use super::{PageRow, Section, draw};
use crate::language::sentences;
use crate::show::{clock, command, empty, pager, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Who did what", "操作记录";
    what: "Changes, logins and refusals of this server, in all namespaces. Other calls are counted each minute.",
        "本服务器在所有命名空间中的更改、登录与拒绝。其他调用按分钟计数。";
    none: "No line matches.", "没有匹配的记录。";
    caller: "Token", "令牌";
    op: "Operation, such as put_limit or put_*", "操作，例如 put_limit 或 put_*";
    target: "About, such as limit:site:* or pool:accounts", "关于，例如 limit:site:* 或 pool:accounts";
    namespace: "Namespace", "命名空间";
    filter: "Filter", "筛选";
    time: "Time", "时间";
    operation: "Operation", "操作";
    about: "About", "关于";
    result: "Result", "结果";
    more(n): "{n} in all", "共 {n} 个";
    times(n): "{n} times", "{n} 次";
    done: "done", "完成";
    unanswered: "the caller left before the answer", "调用方在答复前离开";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Trail, "/trail").shows(draw!(show))];

/// Parameters of the API for the filter of this page.
const FILTERS: [&str; 4] = ["caller", "op", "target", "namespace"];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let caller = visit.engine.caller().clone();
    caller.grants().may(Scope::Admin, "read_trail")?;
    let filters: Vec<(&str, &str)> =
        FILTERS.into_iter().filter_map(|name| Some((name, visit.query.get(name)?))).collect();
    let cursor = visit.query.get("cursor").map(|cursor| ("cursor", cursor));
    let pairs: Vec<(&str, &str)> = filters.iter().copied().chain(cursor).collect();
    let asked = decode::read_trail(&pairs)?;
    let trail = visit.trail.clone();
    let read = spawn_blocking(move || trail.read(&asked, caller.grants())).await;
    let read = read.map_err(|why| Unanswered::Fault(Fault::Broken(why.to_string())))??;
    let field = |name: &str, label: String| {
        let short = label.split([',', '，']).next().unwrap_or_default();
        html! {
            input name=(name) value=[visit.query.get(name)] placeholder=(short) aria-label=(label) title=(label)
                autocomplete="off" spellcheck="false";
        }
    };
    let options: Vec<String> = filters
        .iter()
        .filter(|(name, _)| *name != "namespace")
        .flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()])
        .collect();
    let mut words = vec!["trail"];
    words.extend(options.iter().map(String::as_str));
    let body = html! {
        div class="head" { div { h1 { (says.title()) } p class="sub" { (says.what()) } } }
        form class="filters" action="/trail" {
            @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
            (field("caller", says.caller())) (field("op", says.op()))
            (field("target", says.target())) (field("namespace", says.namespace()))
            button { (says.filter()) }
        }
        section class="panel" {
            @if read.items.is_empty() { (empty(&says.none())) } @else { (table(visit, says, &read.items)) }
            (pager(visit, "/trail", &filters, read.next.as_deref(), read.partial))
        }
        (command(visit, &visit.command(&words)))
    };
    // Each look reads files: not again by itself.
    Sheet::still(says.title(), body)
}

fn table(visit: &Visit, says: Says, lines: &[TrailLine]) -> Markup {
    let heads = html! {
        th scope="col" { (says.time()) }
        th scope="col" { (says.caller()) }
        th scope="col" { (says.operation()) }
        th scope="col" { (says.namespace()) }
        th scope="col" { (says.about()) }
        th scope="col" { (says.result()) }
    };
    scroll_table(None, heads, html! { @for line in lines { (row(visit, says, line)) } })
}

fn row(visit: &Visit, says: Says, line: &TrailLine) -> Markup {
    let via = line.via.map(|via| via.as_str());
    html! {
        tr {
            td class="tight soft" { (clock(visit, line.at)) }
            td {
                @if let Some(caller) = &line.caller {
                    a class="mono" href=(visit.link_with("/trail", &[("caller", caller)])) { (caller) } " "
                }
                @if let Some(peer) = &line.peer { span class="faint" { (peer) } " " }
                @if let Some(via) = via { span class="faint" { (via) } }
            }
            td class="tight" {
                a class="mono" href=(visit.link_with("/trail", &[("op", &line.op)])) { (line.op) }
            }
            td { @if let Some(namespace) = &line.namespace { (namespace) } }
            td {
                @for target in &line.targets { span class="mono" { (target) } " " }
                @if let Some(count) = line.targets_count { span class="faint" { (says.more(grouped(count))) } " " }
                (changed_settings(line))
                @if let Some(detail) = &line.detail { span class="soft" { (detail) } }
            }
            td class="soft" { (result(visit, line)) }
        }
    }
}

/// The settings that a line says were changed.
pub(super) fn changed_settings(line: &TrailLine) -> Markup {
    html! { @for (name, change) in &line.changed { span class="soft" { (changed(name, change)) } " " } }
}

/// How the call of a line ended, and how often.
pub(super) fn result(visit: &Visit, line: &TrailLine) -> Markup {
    let says = Says(visit.tongue);
    html! {
        @match (line.status, line.code.as_deref()) {
            (Some(200), _) => (says.done()),
            (_, Some(UNANSWERED)) => (says.unanswered()),
            (Some(status), code) => span class="state failed" { (status) " " (code.unwrap_or_default()) },
            (None, code) => (code.unwrap_or_default()),
        }
        @if let Some(count) = line.count { " " (says.times(grouped(count))) }
    }
}

/// `concurrency: 5 → 8`.
fn changed(name: &str, change: &Value) -> String {
    let text = |side: &str| match change.get(side) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match change.get("old") {
        Some(_) => format!("{name}: {} → {}", text("old"), text("new")),
        None => format!("{name}: {}", text("new")),
    }
}
