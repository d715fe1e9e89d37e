//! Leases and locks: their holders and ages, and their end by force.

use maud::{Markup, html};
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::decode::{self, Queried};
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{ForceLease, ListLeases};

use super::{PageRow, Section, action, draw};
use crate::language::sentences;
use crate::show::{
    ago, ask_link, ask_to_destroy, command, done, empty, id, id_link, pager, scroll_table,
};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Leases", "租约";
    none: "There are no leases.", "当前没有任何持有。";
    none_match: "No lease matches.", "没有匹配的租约。";
    lease: "Lease", "租约";
    fence: "Fence", "栅栏号";
    holder: "Holder", "持有者";
    job: "Job", "任务";
    needs_alone: "needs only", "仅需求";
    holds: "Holds", "持有";
    since: "Since", "自";
    expires: "Expires", "收回于";
    cancel_asked: "asked to stop", "已请求停止";
    actions: "Actions", "操作";
    force: "End", "强制结束";
    queue: "Queue", "队列";
    limit: "Limit", "限额";
    pool: "Pool", "资源池";
    worker: "Worker", "工作进程";
    filter: "Filter", "筛选";
    force_title: "End this lease by force?", "强制结束此租约？";
    force_what: "Its job, permits and resources go to the next in line while its holder may still be working: two may then do the same work. Its resources rest for their quarantine. Its holder is notified at its next heartbeat.",
        "其持有的资源将交给下一个等待者，而原持有者可能仍在工作：两者可能同时做同一件事。资源将进入隔离期。持有者将在下一次心跳时得知。";
    force_job: "Its job waits two seconds and runs again; this does not count as a lost holder.",
        "其任务将等待两秒后重新运行；不计入持有者丢失。";
    did_force: "The lease has ended.", "租约已结束。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Leases, "/leases").shows(draw!(show)),
    PageRow::new(Section::Leases, "/leases/{}")
        .shows(draw!(ask_force))
        .acts(action!(ForceLease, force)),
];

/// Filters of leases: parameters of the API.
const FILTERS: [&str; 4] = ["queue", "limit", "pool", "worker"];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let max = LIST_DEFAULT.to_string();
    let kept: Vec<(&str, &str)> =
        FILTERS.into_iter().filter_map(|name| Some((name, visit.query.get(name)?))).collect();
    let mut query = kept.clone();
    query.push(("max", &max));
    query.extend(visit.query.get("cursor").map(|cursor| ("cursor", cursor)));
    let request: ListLeases = ListLeases::of_query((), &query)?;
    let list = visit.ask(request).await?;
    let options: Vec<String> =
        kept.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect();
    let mut words = vec!["leases"];
    words.extend(options.iter().map(String::as_str));
    let field = |name: &str, label: String| {
        html! {
            input name=(name) value=[visit.query.get(name)] placeholder=(label) aria-label=(label)
                autocomplete="off" spellcheck="false";
        }
    };
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        (done(visit, &[("forced", says.did_force())]))
        form class="filters" action="/leases" {
            @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
            (field("queue", says.queue())) (field("limit", says.limit()))
            (field("pool", says.pool())) (field("worker", says.worker()))
            button { (says.filter()) }
        }
        section class="panel" {
            @if list.items.is_empty() {
                (empty(&if kept.is_empty() { says.none() } else { says.none_match() }))
            } @else { (table(visit, says, &list.items)) }
            (pager(visit, "/leases", &kept, list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&words)))
    };
    Sheet::live(says.title(), body)
}

fn table(visit: &Visit, says: Says, leases: &[LeaseSummary]) -> Markup {
    let heads = html! {
        th scope="col" class="c-id" { (says.holder()) }
        th scope="col" class="c-id wider" { (says.job()) }
        th scope="col" class="c-holds" { (says.holds()) }
        th scope="col" class="c-when num" { (says.since()) }
        th scope="col" class="c-when num" { (says.expires()) }
        th scope="col" class="c-fence num" { (says.fence()) }
        th scope="col" class="c-count" { span class="hidden" { (says.actions()) } }
    };
    scroll_table(Some("rows"), heads, html! { @for lease in leases { (row(visit, says, lease)) } })
}

fn row(visit: &Visit, says: Says, lease: &LeaseSummary) -> Markup {
    html! {
        tr {
            th scope="row" class="c-id mono" {
                a href=(visit.link_with("/leases", &[("worker", &lease.holder)])) { (id(&lease.holder)) }
            }
            td class="c-id" {
                @match &lease.job {
                    Some(job) => (id_link(visit, &visit.to("jobs", job), job.as_str())),
                    None => span class="soft" { (says.needs_alone()) },
                }
                @if let Some(queue) = &lease.queue {
                    " " a class="soft" href=(visit.to("queues", queue)) { (queue) }
                }
                @if lease.cancel_requested { " " span class="state paused" { (says.cancel_asked()) } }
            }
            td class="c-holds" {
                @for limit in &lease.limits {
                    a class="chip" href=(visit.to("limits", limit)) { (limit) } " "
                }
                @for one in &lease.resources {
                    a class="chip" href=(visit.to("pools", &one.pool)) { (one.pool) " " (one.id) } " "
                }
            }
            td class="c-when num soft" { (ago(visit, lease.granted_at)) }
            td class="c-when num soft" { (ago(visit, lease.expires_at)) }
            td class="c-fence num mono" { (lease.fence) }
            td class="c-count num" {
                (ask_link(visit, &crate::pairs::path(&["leases", &lease.lease]), "btn small danger", &says.force()))
            }
        }
    }
}

async fn ask_force(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let lease = decode::lease_path(visit.name())?;
    let what = vec![format!("{} {lease}", says.lease()), says.force_what(), says.force_job()];
    let (words, back) = (["leases", "force", &lease], visit.link("/leases"));
    ask_to_destroy(visit, says.force_title(), what, says.force(), &words, back)
}

async fn force(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(ForceLease { lease: decode::lease_path(visit.name())? }).await?;
    Ok(Drawn::Elsewhere(visit.link_with("/leases", &[("did", "forced")])))
}
