//! The latest events, newest first.

use maud::{Markup, html};
use tenure_core::bounds::{EVENTS_SCAN_MAX, LIST_DEFAULT, LIST_MAX};
use tenure_core::decode::Queried;
use tenure_core::events::{BlockedOn, Event, EventFilter, EventId};
use tenure_core::requests::{EventsSince, GetStats, ReadEvents};

use super::{PageRow, Section, draw};
use crate::language::sentences;
use crate::show::{caller, clock, command, empty, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Events", "事件";
    none: "There are no events yet, or this server keeps none.", "尚未发生任何事件，或此服务器不保留事件。";
    none_match: "None of the last 10,000 events matches.", "最近 10,000 个事件中没有匹配项。";
    kind: "Type, such as job.* or limit.paused", "类型，例如 job.* 或 limit.paused";
    queue: "Queue", "队列";
    job: "Job", "任务";
    limit: "Limit", "限额";
    pool: "Pool", "资源池";
    filter: "Filter", "筛选";
    time: "Time", "时间";
    what: "What", "内容";
    about: "About", "关于";
    more: "More", "更多";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Events, "/events").shows(draw!(show))];

/// Parameters of the API for the filter of this page.
const FILTERS: [&str; 5] = ["type", "queue", "job", "limit", "pool"];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let kept: Vec<(&str, &str)> =
        FILTERS.into_iter().filter_map(|name| Some((name, visit.query.get(name)?))).collect();
    let filter = ReadEvents::of_query((), &kept)?.filter;
    let events = last(visit, &filter).await?;
    let field = |name: &str, label: String| {
        let short = label.split([',', '，']).next().unwrap_or_default();
        html! {
            input name=(name) value=[visit.query.get(name)] placeholder=(short) aria-label=(label) title=(label)
                autocomplete="off" spellcheck="false";
        }
    };
    let options: Vec<String> =
        kept.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect();
    let mut words = vec!["events"];
    words.extend(options.iter().map(String::as_str));
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        form class="filters" action="/events" {
            @if !visit.ns().is_empty() { input type="hidden" name="ns" value=(visit.ns()); }
            (field("type", says.kind())) (field("queue", says.queue())) (field("job", says.job()))
            (field("limit", says.limit())) (field("pool", says.pool()))
            button { (says.filter()) }
        }
        section class="panel" {
            @if events.is_empty() {
                (empty(&if kept.is_empty() { says.none() } else { says.none_match() }))
            } @else { (table(visit, says, &events)) }
        }
        (command(visit, &visit.command(&words)))
    };
    Sheet::live(says.title(), body)
}

/// The last hundred matching events among the last ten thousand, newest first.
async fn last(visit: &Visit, filter: &EventFilter) -> Result<Vec<Event>, Unanswered> {
    let kept = visit.ask(GetStats).await?.events;
    let Some(last) = kept.last else { return Ok(Vec::new()) };
    let is_filtered = *filter != EventFilter::default();
    let back = if is_filtered { EVENTS_SCAN_MAX } else { LIST_DEFAULT } as u64;
    let from = last.number.saturating_sub(back);
    let from = kept.first.map_or(from, |first| from.max(first.number.saturating_sub(1)));
    let mut since = EventId { life: last.life, number: from };
    let mut found: Vec<Event> = Vec::new();
    // Each call returns at most a thousand matching events, so ten calls are enough.
    for _ in 0..EVENTS_SCAN_MAX / LIST_MAX {
        let request = ReadEvents {
            since: EventsSince::Id(since),
            filter: filter.clone(),
            max: LIST_MAX,
            ..ReadEvents::default()
        };
        let read = visit.ask(request).await?;
        let is_all = read.items.len() < LIST_MAX;
        found.extend(read.items);
        found.drain(..found.len().saturating_sub(LIST_DEFAULT));
        if is_all {
            break;
        }
        since = read.next;
    }
    found.reverse();
    Ok(found)
}

fn table(visit: &Visit, says: Says, events: &[Event]) -> Markup {
    let heads = html! {
        th scope="col" { (says.time()) }
        th scope="col" { (says.what()) }
        th scope="col" { (says.about()) }
        th scope="col" { (says.more()) }
    };
    scroll_table(None, heads, html! { @for event in events { (row(visit, event)) } })
}

fn row(visit: &Visit, event: &Event) -> Markup {
    let about = &event.happened.about;
    let lacks = about.on.as_ref().map(|on| match on {
        BlockedOn::Limit(limit) => limit.to_string(),
        BlockedOn::Pool(pool) => pool.to_string(),
    });
    let more = [
        about.holder.clone(),
        lacks,
        about.outcome.map(|outcome| outcome.as_str().to_owned()),
        about.why.as_ref().map(|why| why.to_string()),
        about.error.clone(),
        about.external.map(|n| n.to_string()),
    ];
    html! {
        tr {
            td class="tight soft" { (clock(visit, event.happened.at)) }
            td class="tight mono" { (event.happened.kind) }
            td {
                @if let Some(job) = &about.job { a class="mono" href=(visit.to("jobs", job)) { (job) } " " }
                @if let Some(queue) = &about.queue { a href=(visit.to("queues", queue)) { (queue) } " " }
                @if let Some(limit) = &about.limit { a href=(visit.to("limits", limit)) { (limit) } " " }
                @if let Some(pool) = &about.pool { a href=(visit.to("pools", pool)) { (pool) } " " }
                @if let Some(resource) = &about.resource { span class="mono" { (resource) } " " }
                @if let Some(id) = &about.schedule { a href=(visit.to("schedules", id)) { (id) } " " }
                @if let Some(flow) = &about.flow { a href=(visit.to("flows", flow)) { (flow) } }
            }
            td class="soft" {
                @for text in more.iter().flatten() { (text) " " }
                (caller(visit, about.by.as_ref()))
            }
        }
    }
}
