//! Why a job waits, as a picture: the job, and a card for each thing that it waits for or needs, with its usage, its
//! holders, and the place in its line.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::job::{JobView, Need};
use tenure_core::lease::{Explained, Reason, ReasonKind};
use tenure_core::requests::{GetLimit, GetPool};
use tenure_core::settings::{Holder, LimitView, PoolView};

use crate::language::sentences;
use crate::show::{BarPart, ago, clock, place_in_line, squares, state};
use crate::visit::{Unanswered, Visit};

sentences! { NeedWords;
    why_waits: "Why it waits", "为什么等待";
    what_it_holds: "Holder", "谁在运行";
    limit: "limit", "限额";
    pool: "pool", "资源池";
    queue: "queue", "队列";
    waits: "waits", "等待";
    may_go: "free", "可用";
    turn: "its turn", "轮次";
    parents: "other jobs", "其他任务";
    time: "time", "时间";
    worker: "a worker", "工作进程";
    place(n): "Place {n} in line", "排在第 {n} 位";
    place_of(n, all): "Place {n} of {all} in line", "排在第 {n} 位，共 {all} 个";
    ahead(n): "jobs ahead: {n}", "前面有 {n} 个任务";
    in_use(n, of): "{n} of {of} in use", "已用 {n} / {of}";
    open(n): "{n} in use", "已用 {n}";
    free(n): "{n} free", "{n} 个空闲";
    earliest: "No sooner than", "最早于";
    since: "since", "自";
    resting(n): "resting: {n}", "冷却中：{n}";
    outside(n): "used by work outside: {n}", "被外部工作占用：{n}";
    banned(n): "banned: {n}", "被禁用：{n}";
    cooling(n): "cooling: {n}", "冷却中：{n}";
    lease: "lease", "租约";
    until: "It expires unless its holder extends it:", "除非持有者续期，否则将被收回：";
    unset: "It is not set: it grants nothing.", "尚未设置：不会发放。";
    more(n): "and {n} more", "以及另外 {n} 个";
}

/// Holders that a card shows.
const HOLDERS_SHOWN: usize = 5;

/// The panel; empty if the job waits for nothing and holds nothing.
pub(super) async fn panel(
    visit: &Visit,
    job: &JobView,
    explained: &Explained,
) -> Result<Markup, Unanswered> {
    let words = NeedWords(visit.tongue);
    if let Some(lease) = &explained.lease {
        return Ok(html! {
            section class="panel" {
                header { h2 { (words.what_it_holds()) } p { (explained.summary) } }
                div class="body needs" {
                    p { (state(job.state, visit.tongue)) }
                    div class="need" {
                        header {
                            h2 { a href=(visit.link_with("/leases", &[("worker", &lease.holder)])) class="mono" { (lease.holder) } }
                            span class="soft" { (words.since()) " " (clock(visit, lease.since)) }
                        }
                        p class="soft" { (words.lease()) " " span class="mono" { (lease.lease) } }
                        p class="soft" { (words.until()) " " (ago(visit, lease.expires_at)) }
                    }
                    (needs(visit, words, job, &[]).await?)
                }
            }
        });
    }
    if job.state.is_finished() {
        return Ok(html! {});
    }
    Ok(html! {
        section class="panel" {
            header { h2 { (words.why_waits()) } p { (summary(explained)) } }
            div class="body needs" {
                p { (state(job.state, visit.tongue)) }
                @for reason in explained.reasons.iter().filter(|reason| need_of(job, reason).is_none()) {
                    (other(visit, words, reason))
                }
                (needs(visit, words, job, &explained.reasons).await?)
            }
        }
    })
}

/// The summary of all reasons; a single reason stands on its card instead.
fn summary(explained: &Explained) -> &str {
    match explained.reasons.as_slice() {
        [one] if one.detail == explained.summary => "",
        _ => &explained.summary,
    }
}

/// The need that a reason is about.
fn need_of<'j>(job: &'j JobView, reason: &Reason) -> Option<&'j Need> {
    let name = reason.name.as_deref()?;
    let of_limit = matches!(
        reason.kind,
        ReasonKind::Limit
            | ReasonKind::Rate
            | ReasonKind::Gap
            | ReasonKind::LimitPaused
            | ReasonKind::External
    );
    let of_pool = reason.kind == ReasonKind::Pool;
    let of_both = matches!(reason.kind, ReasonKind::Reserved | ReasonKind::NeverFits);
    job.needs.iter().find(|need| match need {
        Need::Limit { limit, .. } => (of_limit || of_both) && limit.to_string() == name,
        Need::Pool { pool, .. } => (of_pool || of_both) && pool.as_str() == name,
    })
}

/// A card for each need.
async fn needs(
    visit: &Visit,
    words: NeedWords,
    job: &JobView,
    reasons: &[Reason],
) -> Result<Markup, Unanswered> {
    let mut cards = Vec::new();
    for need in &job.needs {
        let of_it: Vec<&Reason> =
            reasons.iter().filter(|reason| need_of(job, reason) == Some(need)).collect();
        cards.push(match need {
            Need::Limit { limit, .. } => {
                let view = there(visit.ask(GetLimit { limit: limit.clone() }).await)?;
                of_limit(visit, words, limit.as_ref(), view.as_ref(), &of_it)
            }
            Need::Pool { pool, tag, .. } => {
                let view = there(visit.ask(GetPool { pool: pool.clone() }).await)?;
                let tag = tag.as_ref().map(|tag| format!(" #{tag}")).unwrap_or_default();
                of_pool(visit, words, pool.as_str(), &tag, view.as_ref(), &of_it)
            }
        });
    }
    // A need that the job does not name itself (that of its queue) has only its reason as a card.
    Ok(html! { @for card in &cards { (card) } })
}

fn there<T>(answer: Result<T, Unanswered>) -> Result<Option<T>, Unanswered> {
    match answer {
        Ok(view) => Ok(Some(view)),
        Err(stop) if stop.is_absent() => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// The card of something that the job waits for and that is not one of its own needs.
fn other(visit: &Visit, words: NeedWords, reason: &Reason) -> Markup {
    let name = reason.name.as_deref();
    let title = match (&reason.kind, name) {
        (ReasonKind::WaitingOn, Some(job)) => {
            html! { a class="mono" href=(visit.to("jobs", job)) { (job) } }
        }
        (ReasonKind::WaitingOn, None) => html! { (words.parents()) },
        (ReasonKind::Scheduled, _) => html! { (words.time()) },
        (ReasonKind::Behind, _) => html! { (words.turn()) },
        (ReasonKind::NoWorker | ReasonKind::WorkersFull, _) => html! { (words.worker()) },
        (ReasonKind::QueuePaused, Some(queue)) => html! {
            a href=(visit.to("queues", queue)) { (queue) } " " span class="soft" { (words.queue()) }
        },
        (_, Some(name)) => html! { (name) },
        (_, None) => html! { (words.waits()) },
    };
    card(visit, words, title, html! {}, html! {}, &[reason], None)
}

fn of_limit(
    visit: &Visit,
    words: NeedWords,
    name: &str,
    view: Option<&LimitView>,
    reasons: &[&Reason],
) -> Markup {
    let title = html! {
        a href=(visit.to("limits", name)) { (name) } " " span class="soft" { (words.limit()) }
    };
    let Some(view) = view else {
        return card(visit, words, title, html! {}, html! { p { (words.unset()) } }, reasons, None);
    };
    let held = view.in_use.saturating_sub(view.resting);
    let parts: [BarPart; 3] = [("use", held), ("rest", view.resting), ("outside", view.external)];
    let used = view.in_use + view.external;
    let beside = match view.settings.concurrency {
        Some(most) => words.in_use(grouped(used), most),
        None => words.open(grouped(used)),
    };
    let picture = html! {
        @if let Some(most) = view.settings.concurrency {
            (squares(&parts, u64::from(most), used >= u64::from(most)))
        }
        @if view.resting > 0 { p class="soft" { (words.resting(grouped(view.resting))) } }
        @if view.external > 0 { p class="soft" { (words.outside(grouped(view.external))) } }
        (holders(visit, words, &view.holders, held))
    };
    card(visit, words, title, html! { (beside) }, picture, reasons, Some(view.waiting))
}

fn of_pool(
    visit: &Visit,
    words: NeedWords,
    name: &str,
    tag: &str,
    view: Option<&PoolView>,
    reasons: &[&Reason],
) -> Markup {
    let title = html! {
        a href=(visit.to("pools", name)) { (name) } " " span class="soft" { (words.pool()) (tag) }
    };
    let Some(view) = view else {
        return card(visit, words, title, html! {}, html! { p { (words.unset()) } }, reasons, None);
    };
    let parts: [BarPart; 4] = [
        ("free", view.available),
        ("use", view.leased),
        ("cooling", view.cooling),
        ("banned", view.banned),
    ];
    let all: Vec<&Holder> = reasons.iter().flat_map(|reason| &reason.holders).collect();
    let held: Vec<Holder> = all.into_iter().cloned().collect();
    let picture = html! {
        (squares(&parts, 0, false))
        @if view.cooling > 0 { p class="soft" { (words.cooling(grouped(view.cooling))) } }
        @if view.banned > 0 { p class="soft" { (words.banned(grouped(view.banned))) } }
        (holders(visit, words, &held, view.leased))
    };
    let beside = html! { (words.free(grouped(view.available))) };
    card(visit, words, title, beside, picture, reasons, Some(view.waiting))
}

/// The first holders, and how many more there are.
fn holders(visit: &Visit, words: NeedWords, held: &[Holder], all: u64) -> Markup {
    let shown = &held[..held.len().min(HOLDERS_SHOWN)];
    let more = all.saturating_sub(shown.len() as u64);
    html! {
        @if !shown.is_empty() {
            ul class="held" {
                @for one in shown {
                    li {
                        span class="mono" { (one.holder) }
                        @if let Some(job) = &one.job {
                            a class="mono" href=(visit.to("jobs", job)) { (job) }
                        }
                        span { (words.since()) " " (clock(visit, one.since)) }
                    }
                }
                @if more > 0 { li class="faint" { (words.more(grouped(more))) } }
            }
        }
    }
}

/// A card: its subject, state and picture, and each reason why the job waits for it.
fn card(
    visit: &Visit,
    words: NeedWords,
    title: Markup,
    beside: Markup,
    picture: Markup,
    reasons: &[&Reason],
    waiting: Option<u64>,
) -> Markup {
    let waits = !reasons.is_empty();
    html! {
        div class={ "need" @if waits { " waits" } } {
            header {
                h2 { (title) }
                span class={ "state " (if waits { "blocked" } else { "succeeded" }) } {
                    @match (waits, beside.0.is_empty()) {
                        (true, true) => (words.waits()),
                        (true, false) => { (words.waits()) ", " (beside) },
                        (false, true) => (words.may_go()),
                        (false, false) => (beside),
                    }
                }
            }
            @for reason in reasons { @if !reason.detail.is_empty() { p { (reason.detail) } } }
            (picture)
            @for reason in reasons {
                @if let Some(place) = reason.position {
                    div {
                        h3 {
                            @match waiting.filter(|all| *all >= place) {
                                Some(all) => (words.place_of(grouped(place), grouped(all))),
                                None => (words.place(grouped(place))),
                            }
                        }
                        (place_in_line(place, waiting))
                    }
                }
                @if let Some(n) = reason.ahead.filter(|n| *n > 0) {
                    p class="soft" { (words.ahead(grouped(n))) }
                }
                @if let Some(earliest) = reason.earliest {
                    p class="soft" { (words.earliest()) " " (clock(visit, earliest)) ", " (ago(visit, earliest)) }
                }
            }
        }
    }
}
