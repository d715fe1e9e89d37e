//! Failures: jobs that failed for good, by their errors.

use maud::{Markup, html};
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::count::grouped;
use tenure_core::decode::Queried;
use tenure_core::requests::{FailureGroup, ListFailures};
use tenure_core::time::Span;

use super::{PageRow, Section, draw};
use crate::filter::term;
use crate::language::sentences;
use crate::payloads::PayloadLines;
use crate::show::{ago, command, empty, id_link, payload_row, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Failures", "失败";
    what: "Jobs that failed for good, grouped by error. Numbers in an error do not count, except a status code at its start or after \"status\".",
        "最终失败的任务，按错误分组：忽略其中的数字，开头或“状态码”之后的状态码除外。";
    hour: "Hour", "小时";
    day: "Day", "天";
    all: "All", "全部";
    none: "No job failed.", "没有失败。";
    error: "Error", "错误";
    no_error: "no error given", "未说明错误";
    queue: "Queue", "队列";
    kind: "Kind", "类型";
    jobs: "Jobs", "任务";
    first: "First", "首次";
    last: "Last", "最近";
    newest: "The newest", "最新";
    partial: "Only the first 10,000 failed jobs were counted.", "已统计前 10,000 个失败的任务。";
}

pub(super) const ROWS: &[PageRow] =
    &[PageRow::new(Section::Failures, "/failures").shows(draw!(show))];

/// Spans to choose from, by the word in the address.
const SPANS: [(&str, u64); 2] = [("hour", 3_600), ("day", 86_400)];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let over = visit.query.get("over").unwrap_or_default();
    let span = SPANS.into_iter().find(|(word, _)| *word == over);
    let finished_after = span.map(|(_, seconds)| visit.now.minus(Span::from_s(seconds)));
    let max = LIST_DEFAULT.to_string();
    let queue = visit.query.get("queue").unwrap_or_default();
    let mut query = vec![("max", max.as_str())];
    if !queue.is_empty() {
        query.push(("queue", queue));
    }
    let request = ListFailures { finished_after, ..ListFailures::of_query((), &query)? };
    let found = visit.ask(request).await?;
    let newest: Vec<_> = found.items.iter().map(|group| (&group.job, &group.queue)).collect();
    let lines = PayloadLines::named(visit, &newest).await?;
    let tab = |word: &str, label: String| {
        html! {
            a href=(visit.link_with("/failures", &[("queue", queue), ("over", word)]))
                aria-current=[(over == word).then_some("true")] { (label) }
        }
    };
    let mut words = vec!["failures"];
    if !queue.is_empty() {
        words.extend(["--queue", queue]);
    }
    let body = html! {
        div class="head" {
            div {
                h1 { (says.title()) }
                p class="sub" {
                    (says.what())
                    @if !queue.is_empty() { a href=(visit.to("queues", queue)) { (queue) } }
                }
            }
            nav class="tabs" aria-label=(says.last()) {
                (tab("hour", says.hour())) (tab("day", says.day())) (tab("", says.all()))
            }
        }
        section class="panel" {
            @if found.items.is_empty() { (empty(&says.none())) } @else { (table(visit, says, &found.items, &lines)) }
            @if found.partial { p class="pager" { (says.partial()) } }
        }
        (command(visit, &visit.command(&words)))
    };
    Sheet::live(says.title(), body)
}

fn table(visit: &Visit, says: Says, groups: &[FailureGroup], lines: &PayloadLines) -> Markup {
    let heads = html! {
        th scope="col" class="c-error" { (says.error()) }
        th scope="col" class="c-queue" { (says.queue()) }
        th scope="col" class="c-kind" { (says.kind()) }
        th scope="col" class="c-count num" { (says.jobs()) }
        th scope="col" class="c-when num" { (says.first()) }
        th scope="col" class="c-when num" { (says.last()) }
        th scope="col" class="c-id" { (says.newest()) }
    };
    let rows = html! {
        @for group in groups {
            (row(visit, says, group))
            (payload_row(lines.get(&group.job), false, COLUMNS))
        }
    };
    scroll_table(Some("rows"), heads, rows)
}

/// Columns of the table.
const COLUMNS: usize = 7;

fn row(visit: &Visit, says: Says, group: &FailureGroup) -> Markup {
    let error = if group.error.is_empty() { says.no_error() } else { group.error.clone() };
    html! {
        tr {
            th scope="row" class="c-error" title=(error) {
                a href=(visit.to_jobs(&search(group))) { (error) }
            }
            td class="c-queue" { a href=(visit.to("queues", &group.queue)) { (group.queue) } }
            td class="c-kind" { (group.kind) }
            td class="c-count num" { (grouped(group.count)) }
            td class="c-when num soft" { (ago(visit, group.first_at)) }
            td class="c-when num soft" { (ago(visit, group.last_at)) }
            td class="c-id mono" { (id_link(visit, &visit.to("jobs", &group.job), group.job.as_str())) }
        }
    }
}

/// A search for the jobs of a group, as far as that is possible: by the longest part of the error without a number.
fn search(group: &FailureGroup) -> String {
    let part = group.error.split('#').max_by_key(|part| part.len()).unwrap_or_default();
    let mut words = vec![term("queue", group.queue.as_str()), "state:failed".to_owned()];
    if !group.kind.is_empty() {
        words.push(term("kind", &group.kind));
    }
    if !part.trim().is_empty() {
        words.push(term("error", part));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use tenure_core::names::{JobId, QueueName};
    use tenure_core::time::Moment;

    use super::*;

    #[test]
    fn a_failure_group_is_searched_by_its_error_without_numbers() {
        for (error, words) in [
            ("http #", "queue:q state:failed error:\"http \""),
            ("#: upstream refused", "queue:q state:failed error:\": upstream refused\""),
            ("", "queue:q state:failed"),
            ("#", "queue:q state:failed"),
        ] {
            let group = FailureGroup {
                queue: QueueName::parse("q").unwrap(),
                kind: String::new(),
                error: error.to_owned(),
                count: 1,
                first_at: Moment::ZERO,
                last_at: Moment::ZERO,
                job: JobId::parse("j").unwrap(),
            };
            assert_eq!(search(&group), words, "{error}");
        }
    }
}
