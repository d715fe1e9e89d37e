//! What needs attention, in sentences: found by a few bounded calls, and the worst first.

use maud::{Markup, html};
use tenure_core::bounds::LIST_MAX;
use tenure_core::count::grouped;
use tenure_core::requests::{
    GetLimit, ListFailures, ListLimits, ListPools, ListQueues, Page, Stats,
};
use tenure_core::settings::{LimitView, PoolView, QueueView};
use tenure_core::time::Span;

use crate::language::sentences;
use crate::show::for_people;
use crate::visit::{Stop, Visit};

sentences! { AttentionWords;
    title: "Needs attention", "需要关注";
    nothing: "Nothing needs attention.", "没有需要关注的事项。";
    no_worker(queue, jobs, since): "Queue \"{queue}\" has no worker: {jobs} wait, the oldest for {since}.",
        "队列“{queue}”没有工作进程：{jobs} 个任务在等待，最早的已等待 {since}。";
    slow(queue, jobs, since): "In queue \"{queue}\" the oldest ready job has waited for {since}; {jobs} are ready.",
        "队列“{queue}”中最早的就绪任务已等待 {since}；共 {jobs} 个就绪。";
    queue_paused(queue, jobs): "Queue \"{queue}\" is paused: {jobs} jobs wait.",
        "队列“{queue}”已暂停：{jobs} 个任务在等待。";
    limit_full(limit, waiting, since): "Limit \"{limit}\" is full: {waiting} wait, the first for {since}.",
        "限额“{limit}”已满：{waiting} 个在等待，最早的已等待 {since}。";
    limit_closed(limit, waiting): "Limit \"{limit}\" grants nothing at a concurrency of 0: {waiting} wait.",
        "限额“{limit}”的并发为 0，不发放任何许可：{waiting} 个在等待。";
    limit_paused(limit, waiting): "Limit \"{limit}\" is paused: {waiting} wait.",
        "限额“{limit}”已暂停：{waiting} 个在等待。";
    pool_empty(pool, waiting, banned): "Pool \"{pool}\" has nothing free: {waiting} wait; {banned} are banned.",
        "资源池“{pool}”没有空闲资源：{waiting} 个在等待；{banned} 个被禁用。";
    pool_banned(pool, banned, all): "In pool \"{pool}\" {banned} of {all} resources are banned.",
        "资源池“{pool}”中 {all} 个资源有 {banned} 个被禁用。";
    failures(n, error): "{n} jobs failed for good within the last hour with \"{error}\".",
        "过去一小时内有 {n} 个任务最终失败，错误为“{error}”。";
    schedule_late(since): "A moment of a schedule has been due for {since}.",
        "某个定时的触发时刻已过期 {since}。";
    store(why): "The store is not well: {why}.", "存储状态异常：{why}。";
    notice(what): "{what}.", "{what}。";
    look: "Open", "查看";
}

/// Longer than a worker takes to come back from a job.
const SLOW: Span = Span::from_s(60);
/// Of full limits and of failures, so many are said.
const SAID_MAX: usize = 3;

/// How bad it is; the worst is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Weight {
    Bad,
    Warning,
}

/// One thing that needs attention.
pub(crate) struct Concern {
    weight: Weight,
    says: String,
    link: String,
}

/// Looks at the first thousand queues, limits and pools, and at what failed within the last hour.
pub(crate) async fn look(visit: &Visit, stats: &Stats) -> Result<Vec<Concern>, Stop> {
    let words = AttentionWords(visit.tongue);
    let mut found = Vec::new();
    let mut say = |weight, says, link| found.push(Concern { weight, says, link });
    let health = visit.engine.health();
    if let Some(why) = health.degraded {
        say(Weight::Bad, words.store(why), visit.link("/system"));
    }
    if let Some(what) = visit.engine.notice() {
        say(Weight::Warning, words.notice(what), visit.link("/system"));
    }
    let page = || Page { max: LIST_MAX, cursor: None };
    for queue in visit.ask(ListQueues { page: page() }).await?.items {
        if let Some((weight, says)) = of_queue(visit, words, &queue) {
            say(weight, says, visit.to("queues", &queue.name));
        }
    }
    let mut limits = visit.ask(ListLimits { page: page() }).await?.items;
    limits.retain(|limit| limit.waiting > 0);
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.waiting));
    for limit in limits.iter().take(SAID_MAX) {
        if let Some(says) = of_limit(visit, words, limit).await? {
            say(Weight::Warning, says, visit.to("limits", &limit.name));
        }
    }
    for pool in visit.ask(ListPools { page: page() }).await?.items {
        if let Some(says) = of_pool(words, &pool) {
            say(Weight::Warning, says, visit.to("pools", &pool.name));
        }
    }
    let hour = Some(visit.now.minus(Span::from_s(3_600)));
    let asked = ListFailures { finished_after: hour, max: SAID_MAX, ..ListFailures::default() };
    for group in visit.ask(asked).await?.items {
        let says = words.failures(grouped(group.count), &group.error);
        say(Weight::Warning, says, visit.link("/failures"));
    }
    let late = stats.schedules.oldest_due_at.map(|due| visit.since(due));
    if let Some(late) = late.filter(|late| *late > SLOW) {
        say(Weight::Warning, words.schedule_late(for_people(late)), visit.link("/schedules"));
    }
    found.sort_by_key(|concern| concern.weight);
    Ok(found)
}

fn of_queue(visit: &Visit, words: AttentionWords, queue: &QueueView) -> Option<(Weight, String)> {
    let waiting = queue.counts.ready + queue.counts.blocked;
    if queue.paused {
        return (waiting > 0)
            .then(|| (Weight::Warning, words.queue_paused(&queue.name, grouped(waiting))));
    }
    let since = queue.oldest_ready_at.map(|at| visit.since(at)).filter(|since| *since > SLOW)?;
    let (jobs, since) = (grouped(queue.counts.ready), for_people(since));
    match queue.workers {
        0 => Some((Weight::Bad, words.no_worker(&queue.name, jobs, since))),
        _ => Some((Weight::Warning, words.slow(&queue.name, jobs, since))),
    }
}

async fn of_limit(
    visit: &Visit,
    words: AttentionWords,
    limit: &LimitView,
) -> Result<Option<String>, Stop> {
    let waiting = grouped(limit.waiting);
    if limit.paused_until.is_some_and(|until| until > visit.now) {
        return Ok(Some(words.limit_paused(&limit.name, waiting)));
    }
    let Some(concurrency) = limit.settings.concurrency else { return Ok(None) };
    if concurrency == 0 {
        return Ok(Some(words.limit_closed(&limit.name, waiting)));
    }
    if limit.in_use + limit.external < u64::from(concurrency) {
        return Ok(None);
    }
    let whole = match visit.ask(GetLimit { limit: limit.name.clone() }).await {
        Ok(whole) => whole,
        Err(stop) if stop.is_absent() => return Ok(None),
        Err(stop) => return Err(stop),
    };
    let since = whole.line.first().map(|first| visit.since(first.since));
    let since = since.filter(|since| *since > SLOW);
    Ok(since.map(|since| words.limit_full(&limit.name, waiting, for_people(since))))
}

fn of_pool(words: AttentionWords, pool: &PoolView) -> Option<String> {
    let all = pool.available + pool.leased + pool.cooling + pool.banned;
    if pool.waiting > 0 && pool.available == 0 {
        let (waiting, banned) = (grouped(pool.waiting), grouped(pool.banned));
        return Some(words.pool_empty(&pool.name, waiting, banned));
    }
    (pool.banned * 2 > all)
        .then(|| words.pool_banned(&pool.name, grouped(pool.banned), grouped(all)))
}

/// What was found, as a panel.
pub(crate) fn panel(visit: &Visit, found: &[Concern]) -> Markup {
    let words = AttentionWords(visit.tongue);
    html! {
        section class="panel" {
            @if !found.is_empty() { header { h2 { (words.title()) } } }
            ul class="calls" {
                @for concern in found {
                    li class=[(concern.weight == Weight::Bad).then_some("bad")] {
                        i {}
                        span { (concern.says) }
                        a href=(concern.link) { (words.look()) }
                    }
                }
                @if found.is_empty() { li class="good" { i {} span { (words.nothing()) } } }
            }
        }
    }
}
