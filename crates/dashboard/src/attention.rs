//! The panel of things that need attention: the findings of `tenure_core::attention`, which the command line shows too,
//! and the engine's own notices. The worst is first.

use maud::{Markup, html};
use tenure_core::attention::{
    AttentionCause, AttentionReplies, AttentionSeverity, FAILED_WITHIN, Finding, Subject, findings,
    never_watched,
};
use tenure_core::bounds::LIST_MAX;
use tenure_core::count::grouped;
use tenure_core::requests::{
    ListFailures, ListLimits, ListPools, ListQueues, ListSchedules, Page, Stats,
};
use tenure_core::settings::QueueView;
use tenure_core::time::Span;
use tenure_engine_api::Engine;

use crate::language::{Tongue, sentences};
use crate::show::for_people;
use crate::visit::{Unanswered, Visit};

sentences! { AttentionWords;
    title: "Needs attention", "需要关注";
    nothing: "Nothing needs attention.", "没有需要关注的事项。";
    store(why): "The store is not well: {why}.", "存储状态异常：{why}。";
    looked: "Looked at the first 1,000 queues, limits, pools and schedules.",
        "已查看前 1,000 个队列、限额、资源池和定时。";
    look: "Open", "查看";
}

/// One thing that needs attention, ready to be shown.
pub(crate) struct Concern {
    severity: AttentionSeverity,
    says: String,
    fix: Option<String>,
    link: String,
}

/// The concerns of a namespace.
pub(crate) struct Attention {
    concerns: Vec<Concern>,
    /// Some list has more than one call may read.
    is_partial: bool,
    /// The queues that were read, for a page that shows some.
    pub queues: Vec<QueueView>,
}

/// Reads the first page of each list, and the failures of the last hour.
pub(crate) async fn look(visit: &Visit, stats: &Stats) -> Result<Attention, Unanswered> {
    let words = AttentionWords(visit.tongue);
    let page = || Page { max: LIST_MAX, cursor: None };
    let queues = visit.ask(ListQueues { page: page() }).await?;
    let limits = visit.ask(ListLimits { page: page() }).await?;
    let pools = visit.ask(ListPools { page: page() }).await?;
    let request = ListSchedules { owner: None, full: false, page: page() };
    let schedules = visit.ask(request).await?;
    let finished_after = Some(visit.now.minus(FAILED_WITHIN));
    let request = ListFailures { finished_after, max: LIST_MAX, ..ListFailures::default() };
    let failures = visit.ask(request).await?;
    let mut concerns = Vec::new();
    let own = |severity, says| Concern { severity, says, fix: None, link: visit.link("/system") };
    concerns.extend(
        visit.engine.health().degraded.map(|why| own(AttentionSeverity::Stuck, words.store(why))),
    );
    // A note, since work goes on: a follower is healthy, too.
    let notice = visit.engine.notice();
    let notice = notice.map(|what| own(AttentionSeverity::Note, sentence(&what)));
    let found = findings(&AttentionReplies {
        now: visit.now,
        stats,
        queues: &queues.items,
        limits: &limits.items,
        pools: &pools.items,
        schedules: &schedules.items,
        failures: &failures,
        since: &never_watched,
    });
    concerns.extend(found.iter().map(|finding| Concern {
        severity: finding.severity,
        says: match visit.tongue {
            Tongue::English => sentence(&finding.sentence),
            Tongue::Chinese => chinese(finding),
        },
        fix: Some(finding.fix.clone()),
        link: link(visit, finding),
    }));
    concerns.extend(notice);
    let is_partial = queues.next.is_some()
        || limits.next.is_some()
        || pools.next.is_some()
        || schedules.next.is_some();
    Ok(Attention { concerns, is_partial, queues: queues.items })
}

/// A sentence with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), rest.as_str().trim_end_matches('.')),
        None => String::new(),
    }
}

/// The page that shows the subject of a finding.
fn link(visit: &Visit, finding: &Finding) -> String {
    match (&finding.cause, &finding.subject) {
        (AttentionCause::Failed { .. }, Subject::Queue(queue)) => {
            visit.link_with("/failures", &[("queue", queue.as_str())])
        }
        (AttentionCause::LastFailed { job, .. }, _) => visit.to("jobs", job),
        (_, Subject::Queue(name)) => visit.to("queues", name),
        (_, Subject::Limit(name)) => visit.to("limits", name),
        (_, Subject::Pool(name)) => visit.to("pools", name),
        (_, Subject::Schedule(id)) => visit.to("schedules", id),
        (_, Subject::Schedules) => visit.link("/schedules"),
    }
}

/// The Chinese sentence of a finding; the finding itself has the English one.
fn chinese(finding: &Finding) -> String {
    let kind = match finding.subject.kind() {
        "queue" => "队列",
        "limit" => "限额",
        "pool" => "资源池",
        _ => "定时",
    };
    let name = finding.subject.name().map(|name| format!("“{name}”")).unwrap_or_default();
    let subject = format!("{kind}{name}");
    let wait = |n: u64| format!("{} 个在等待", grouped(n));
    let says = match &finding.cause {
        AttentionCause::NoWorker { waiting, oldest, .. } => {
            let oldest = oldest.map(|span| format!("，最早的已等待 {}", for_people(span)));
            format!("{subject}没有工作进程：{}{}", wait(*waiting), oldest.unwrap_or_default())
        }
        AttentionCause::Paused { waiting, until } => {
            let until = until.map_or("直到恢复".to_owned(), |until| format!("至 {until}"));
            format!("{subject}已暂停{until}：{}", wait(*waiting))
        }
        AttentionCause::Slow { ready, oldest } => {
            let (ready, oldest) = (grouped(*ready), for_people(*oldest));
            format!("{subject}最早的就绪任务已等待 {oldest}：{ready} 个就绪")
        }
        AttentionCause::QueueFull { most } => format!("{subject}已满（{most}）：拒绝推送"),
        AttentionCause::Failed { failed, most: (error, count) } => {
            let (failed, count) = (grouped(*failed), grouped(*count));
            format!("{subject}：过去一小时内 {failed} 个任务失败，其中 {count} 个的错误为“{error}”")
        }
        AttentionCause::Closed { waiting } => {
            format!("{subject}已关闭（并发为 0）：{}", wait(*waiting))
        }
        AttentionCause::LimitFull { waiting, full } => {
            format!("{subject}已满 {}：{}", for_people(*full), wait(*waiting))
        }
        AttentionCause::Unread { ago, error } => {
            format!("{subject}的外部计数在 {}前读取失败：{error}", for_people(*ago))
        }
        AttentionCause::NoResource { waiting } => format!("{subject}没有资源：{}", wait(*waiting)),
        AttentionCause::AllBanned { waiting, banned } => {
            format!("{subject}的全部 {} 个资源已被禁用：{}", grouped(*banned), wait(*waiting))
        }
        AttentionCause::NothingFree { waiting, leased, cooling, banned, empty } => {
            let span = empty.map(|span| format!("已有 {}", for_people(span))).unwrap_or_default();
            let parts = format!("使用中 {leased}，冷却 {cooling}，禁用 {banned}");
            format!("{subject}{span}没有空闲资源（{parts}）：{}", wait(*waiting))
        }
        AttentionCause::Overdue { due, oldest } => {
            format!("{due} 个定时有未触发的时刻，最早的已过期 {}", for_people(*oldest))
        }
        AttentionCause::LastFailed { job, ago } => {
            format!("{subject}的上一个任务在 {}前失败：{job}", for_people(*ago))
        }
    };
    format!("{says}。")
}

fn class_of(severity: AttentionSeverity) -> Option<&'static str> {
    match severity {
        AttentionSeverity::Stuck => Some("bad"),
        AttentionSeverity::Look => None,
        AttentionSeverity::Note => Some("note"),
    }
}

/// The panel of the concerns.
pub(crate) fn panel(visit: &Visit, found: &Attention) -> Markup {
    let words = AttentionWords(visit.tongue);
    let needs_somebody = found.concerns.iter().any(|concern| concern.severity.needs_somebody());
    html! {
        section class="panel" {
            @if needs_somebody { header { h2 { (words.title()) } } }
            ul class="calls" {
                @if !needs_somebody { li class="good" { i {} span { (words.nothing()) } } }
                @for concern in &found.concerns {
                    li class=[class_of(concern.severity)] {
                        i {}
                        span title=[concern.fix.as_ref()] { (concern.says) }
                        a href=(concern.link) { (words.look()) }
                    }
                }
            }
            @if found.is_partial { p class="pager" { (words.looked()) } }
        }
    }
}

/// A ready job older than this is shown in another colour: the age at which it becomes a finding.
pub(crate) const OLD: Span = Span::from_us(tenure_core::bounds::ATTENTION_AFTER_US);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_and_ends_as_one() {
        for (text, is) in [("queue 'a' waits", "Queue 'a' waits."), ("Done.", "Done."), ("", "")] {
            assert_eq!(sentence(text), is);
        }
    }
}
