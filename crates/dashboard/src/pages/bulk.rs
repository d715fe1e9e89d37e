//! Cancels, retries or deletes all jobs that a search names, after a question with their number.

use maud::{Markup, html};
use tenure_core::bounds::LIST_MAX;
use tenure_core::count::grouped;
use tenure_core::requests::{BulkChange, CancelJobs, DeleteJobs, DoneMany, RetryJobs};

use super::first_found::{LOOKS_MAX, first_found};
use super::{PageRow, Section, action, draw};
use crate::filter::JobSearch;
use crate::language::sentences;
use crate::show::Confirm;
use crate::visit::{Drawn, Unanswered, Visit};

sentences! { Says;
    cancel: "Cancel", "取消";
    retry: "Retry", "重试";
    delete: "Delete", "删除";
    cancel_title: "Cancel these jobs?", "取消这些任务？";
    retry_title: "Retry these jobs?", "重试这些任务？";
    delete_title: "Delete these jobs?", "删除这些任务？";
    cancel_what: "Waiting jobs are cancelled. Running jobs are asked to stop at their next heartbeat.",
        "等待中的任务将被取消；运行中的任务将在下一次心跳时收到停止请求。";
    retry_what: "They become ready again, and their attempts start at 0.", "它们将重新就绪，尝试次数从 0 开始。";
    delete_what: "They are deleted with their ids and unique keys; waiting jobs are cancelled. This cannot be undone.",
        "它们连同 id 和唯一键一起被删除；等待中的任务会因此取消。此操作无法撤销。";
    named(filter): "Filter: {filter}", "筛选：{filter}";
    counted(n): "Jobs that match now: {n}.", "当前有 {n} 个任务匹配。";
    counted_more(n): "Jobs that match now: at least {n}. Each confirmation changes up to 1,000, the newest first.",
        "至少有 {n} 个任务匹配；每次确认最多处理 1,000 个，最新的优先。";
    none_so_far: "No job matches among the newest ones that were searched.", "已查看的最新任务中没有匹配项。";
    none: "No matching job can be changed in this way.", "没有可以如此更改的匹配任务。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Jobs, "/bulk/cancel")
        .shows(draw!(ask_cancel))
        .acts(action!(CancelJobs, cancel)),
    PageRow::new(Section::Jobs, "/bulk/retry")
        .shows(draw!(ask_retry))
        .acts(action!(RetryJobs, retry)),
    PageRow::new(Section::Jobs, "/bulk/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeleteJobs, delete)),
];

/// The word for a change in paths, addresses and on the command line.
pub(super) const fn key(change: BulkChange) -> &'static str {
    match change {
        BulkChange::Cancel => "cancel",
        BulkChange::Retry => "retry",
        BulkChange::Delete => "delete",
    }
}

fn label(says: Says, change: BulkChange) -> String {
    match change {
        BulkChange::Cancel => says.cancel(),
        BulkChange::Retry => says.retry(),
        BulkChange::Delete => says.delete(),
    }
}

/// The label of the change's button.
pub(super) fn name(visit: &Visit, change: BulkChange) -> String {
    label(Says(visit.tongue), change)
}

/// The question before the change, and its effect.
pub(super) fn question(visit: &Visit, change: BulkChange) -> (String, String) {
    let says = Says(visit.tongue);
    match change {
        BulkChange::Cancel => (says.cancel_title(), says.cancel_what()),
        BulkChange::Retry => (says.retry_title(), says.retry_what()),
        BulkChange::Delete => (says.delete_title(), says.delete_what()),
    }
}

/// Links to the three changes, for a search that can be acted on.
pub(super) fn buttons(visit: &Visit, search: &str) -> Markup {
    let says = Says(visit.tongue);
    html! {
        div class="acts" {
            @for change in [BulkChange::Retry, BulkChange::Cancel, BulkChange::Delete] {
                @let path = format!("/bulk/{}", key(change));
                @if visit.may_act(&path) {
                    a class={ "btn" @if change == BulkChange::Delete { " danger" } }
                        href=(visit.link_with(&path, &[("q", search)])) { (label(says, change)) "…" }
                }
            }
        }
    }
}

async fn ask_cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    ask(visit, BulkChange::Cancel).await
}
async fn ask_retry(visit: &Visit) -> Result<Drawn, Unanswered> {
    ask(visit, BulkChange::Retry).await
}
async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    ask(visit, BulkChange::Delete).await
}

async fn ask(visit: &Visit, change: BulkChange) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let search = JobSearch::read(visit.query.get("q").unwrap_or_default());
    if !search.can_be_acted_on() {
        // The page of the jobs says why.
        return Ok(Drawn::Elsewhere(visit.to_jobs(&search.text())));
    }
    let (n, has_more) = count(visit, &search, change).await?;
    let counted = match (n, has_more) {
        (0, false) => says.none(),
        (0, true) => says.none_so_far(),
        (n, false) => says.counted(grouped(n)),
        (n, true) => says.counted_more(grouped(n)),
    };
    let (title, what) = question(visit, change);
    let text = search.text();
    let options = search.options();
    let mut words = vec![key(change)];
    words.extend(options.iter().map(String::as_str));
    let is_danger = change != BulkChange::Retry;
    Confirm {
        title,
        says: vec![counted, what, says.named(&text)],
        fields: &[("q", &text)],
        asks: None,
        label: label(says, change),
        is_danger,
        command: visit.command(&words),
        back: visit.to_jobs(&text),
    }
    .ask(visit)
}

/// How many matching jobs the change applies to, and whether there are more.
async fn count(
    visit: &Visit,
    search: &JobSearch,
    change: BulkChange,
) -> Result<(u64, bool), Unanswered> {
    let mut request = search.request(LIST_MAX, None)?;
    let states = &mut request.filter.states;
    if states.is_empty() {
        states.extend(change.states());
    } else {
        states.retain(|state| change.states().contains(state));
        if states.is_empty() {
            return Ok((0, false));
        }
    }
    let list = first_found(visit, request).await?;
    Ok((list.items.len() as u64, list.next.is_some()))
}

async fn cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    act(visit, BulkChange::Cancel).await
}
async fn retry(visit: &Visit) -> Result<Drawn, Unanswered> {
    act(visit, BulkChange::Retry).await
}
async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    act(visit, BulkChange::Delete).await
}

async fn act(visit: &Visit, change: BulkChange) -> Result<Drawn, Unanswered> {
    let search = JobSearch::read(visit.form.get("q").unwrap_or_default());
    if !search.can_be_acted_on() {
        // The page of the jobs says why.
        return Ok(Drawn::Elsewhere(visit.to_jobs(&search.text())));
    }
    let filter = search.filter()?;
    let mut done = DoneMany::default();
    // A call looks at ten thousand jobs, and the matching ones may come after them.
    for _ in 0..LOOKS_MAX {
        let (filter, max, cursor) = (filter.clone(), LIST_MAX, done.next.take());
        done = match change {
            BulkChange::Cancel => visit.ask(CancelJobs { filter, max, cursor }).await?,
            BulkChange::Retry => visit.ask(RetryJobs { filter, max, cursor }).await?,
            BulkChange::Delete => visit.ask(DeleteJobs { filter, max, cursor }).await?,
        };
        if done.done > 0 || done.next.is_none() {
            break;
        }
    }
    let (text, n) = (search.text(), done.done.to_string());
    let more = if done.more { "1" } else { "" };
    let query = [("q", text.as_str()), ("did", key(change)), ("n", &n), ("more", more)];
    Ok(Drawn::Elsewhere(visit.link_with("/jobs", &query)))
}
