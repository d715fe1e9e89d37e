//! One job: why it waits, its events, its own data, and the actions on it.

use maud::{Markup, html};
use tenure_core::access::Scope;
use tenure_core::decode;
use tenure_core::job::{JobState, JobView, Need, retain_for};
use tenure_core::requests::{
    CancelJob, DeleteJob, ExplainJob, GetJob, ListChildren, ListParents, Page, RetryJob, RunJobNow,
};
use tenure_core::secret::Json;

use super::{PageRow, Section, action, draw};
use crate::acting::back_to;
use crate::command::ShownCommand;
use crate::language::sentences;
use crate::show::{ago, ask_link, ask_to_destroy, at, button, commands, done, fact, pill};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

mod kin;
mod needs;
mod story;
mod timeline;

use self::kin::KnownParents;

sentences! { Says;
    jobs: "Jobs", "任务";
    run_now: "Run now", "立即运行";
    retry: "Retry", "重试";
    cancel: "Cancel", "取消";
    delete: "Delete", "删除";
    edit: "Edit", "编辑";
    again: "Run again as a new job", "作为新任务再次运行";
    cancel_asked: "asked to stop", "已请求停止";
    facts: "Facts", "详情";
    queue: "Queue", "队列";
    kind: "Kind", "类型";
    priority: "Priority", "优先级";
    group: "Group", "组";
    attempts: "Attempts", "尝试";
    of_attempts(n, most): "{n} of {most}", "{n} / {most}";
    without_end(n): "{n}, unlimited", "{n}，无上限";
    lost: "Holders lost in a row", "连续丢失的持有者";
    pushed: "Pushed", "推送于";
    due: "Due", "到期于";
    started: "Last run started", "上次运行开始于";
    finished: "Finished", "结束于";
    expires: "Must run before", "须在此前运行";
    timeout: "Timeout", "超时";
    kept: "Retention", "结束后保留";
    unique: "Unique key", "唯一键";
    flow: "Flow", "流程";
    schedule: "Schedule", "定时";
    trace: "Trace", "追踪";
    needs: "Needs", "需求";
    content: "Payload, progress and result", "负载、进度与结果";
    private: "private", "私密";
    show_content: "Show", "显示";
    hide_content: "Hide", "隐藏";
    content_what: "The content of a job may be secret. Payload and result are shown only on request.",
        "任务携带的内容可能是机密，因此仅在请求时显示。";
    payload: "Payload", "负载";
    progress: "Progress", "进度";
    result: "Result", "结果";
    did_run: "The job is ready.", "任务已就绪。";
    did_retry: "The job is ready again, and its attempts start at 0.", "任务已重新就绪，尝试次数从 0 开始。";
    did_cancel: "The job is cancelled, or asked to stop at its next heartbeat.",
        "任务已取消，或将在下一次心跳时收到停止请求。";
    did_edit: "The job is changed.", "任务已更改。";
    did_push: "This is the new job.", "这是新任务。";
    cancel_title: "Cancel this job?", "取消此任务？";
    cancel_what: "A waiting job will not run. If the job runs, its holder is asked to stop at the next heartbeat.",
        "如果它在等待，则不会运行；如果它在运行，其持有者将在下一次心跳时收到停止请求。";
    delete_title: "Delete this job?", "删除此任务？";
    delete_what: "It is deleted with its id and unique key; a waiting job is cancelled. This cannot be undone.",
        "如果在等待则会被取消，并连同 id 和唯一键一起删除。此操作无法撤销。";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Jobs, "/jobs/{}").shows(draw!(show)),
    PageRow::new(Section::Jobs, "/jobs/{}/run-now").acts(action!(RunJobNow, run_now)),
    PageRow::new(Section::Jobs, "/jobs/{}/retry").acts(action!(RetryJob, retry)),
    PageRow::new(Section::Jobs, "/jobs/{}/cancel")
        .shows(draw!(ask_cancel))
        .acts(action!(CancelJob, cancel)),
    PageRow::new(Section::Jobs, "/jobs/{}/delete")
        .shows(draw!(ask_delete))
        .acts(action!(DeleteJob, delete)),
];

/// Parents and children that a page shows; a link leads to all.
const KIN_SHOWN: usize = 20;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let reference = decode::job_path(visit.name())?;
    let job = visit.ask(GetJob { job: reference.clone() }).await?;
    let explained = visit.ask(ExplainJob { job: reference.clone() }).await?;
    let needs = needs::panel(visit, &job, &explained).await?;
    let story = story::panel(visit, &job).await?;
    let page = || Page { max: KIN_SHOWN, cursor: None };
    // Their results are for holders; without `work` a visitor sees which they are.
    let parents = if job.parents > 0 && visit.may(Scope::Work) {
        let list = ListParents { job: reference.clone(), full: false, page: page() };
        KnownParents::Listed(visit.ask(list).await?)
    } else {
        KnownParents::Named(&job.after)
    };
    let children = visit.ask(ListChildren { job: reference, page: page() }).await?;
    let id = job.id.to_string();
    let body = html! {
        div class="head" {
            div {
                p class="crumb" {
                    a href=(visit.link("/jobs")) { (says.jobs()) } " / "
                    a href=(visit.to("queues", &job.queue)) { (job.queue) }
                }
                h1 class="mono" { (id) }
                p class="sub" {
                    (pill(job.state, visit.tongue))
                    @if job.cancel_requested { span class="state paused" { (says.cancel_asked()) } }
                    @if !job.kind.is_empty() { span { (job.kind) } }
                    @for (key, value) in &job.labels { span class="chip" { (key) "=" (value) } }
                }
            }
            (actions(visit, says, &job))
        }
        (done(visit, &[
            ("run-now", says.did_run()),
            ("retry", says.did_retry()),
            ("cancel", says.did_cancel()),
            ("edit", says.did_edit()),
            ("push", says.did_push()),
        ]))
        div class="split" {
            div class="stack" { (needs) (story) }
            div class="stack" {
                (facts(visit, says, &job))
                (content(visit, says, &job))
                (kin::panel(visit, &parents, &children))
            }
        }
        (commands(visit, &by_command(visit, &job)))
    };
    // The page must not change while somebody reads the content.
    if shows_content(visit) {
        Sheet::still(id.clone(), body)
    } else {
        Sheet::live(id.clone(), body)
    }
}

fn shows_content(visit: &Visit) -> bool {
    visit.query.get("show") == Some("content")
}

fn actions(visit: &Visit, says: Says, job: &JobView) -> Markup {
    let id = job.id.to_string();
    let path = |action: &str| crate::pairs::path(&["jobs", &id, action]);
    let (is_over, runs) = (job.state.is_finished(), job.state == JobState::Running);
    let may_retry = matches!(job.state, JobState::Failed | JobState::Cancelled);
    html! {
        div class="acts" {
            @if job.state == JobState::Scheduled {
                (button(visit, &path("run-now"), "main", &says.run_now()))
            }
            @if may_retry { (button(visit, &path("retry"), "main", &says.retry())) }
            // Either form has the payload in it.
            @if !visit.may(Scope::Read) {
            } @else if is_over || runs {
                @if visit.may_act(&path("again")) {
                    (ask_link(visit, &path("edit"), "btn", &says.again()))
                }
            } @else { (ask_link(visit, &path("edit"), "btn", &says.edit())) }
            @if !is_over { (ask_link(visit, &path("cancel"), "btn danger", &says.cancel())) }
            @if !runs { (ask_link(visit, &path("delete"), "btn danger", &says.delete())) }
        }
    }
}

/// Commands for the page and for each of its buttons that does not ask first.
fn by_command(visit: &Visit, job: &JobView) -> Vec<ShownCommand> {
    let id = job.id.to_string();
    let mut verbs = vec!["explain", "job"];
    match job.state {
        JobState::Scheduled => verbs.push("run-now"),
        JobState::Failed | JobState::Cancelled => verbs.push("retry"),
        _ => {}
    }
    verbs.into_iter().map(|verb| visit.command(&[verb, &id])).collect()
}

fn facts(visit: &Visit, says: Says, job: &JobView) -> Markup {
    let text = |text: String| Some(html! { (text) });
    let mono = |text: String| Some(html! { span class="mono" { (text) } });
    let attempts = match job.retry.max_attempts {
        0 => says.without_end(job.attempt),
        most => says.of_attempts(job.attempt, most),
    };
    let both = |moment| html! { (at(moment)) ", " (ago(visit, moment)) };
    let kept = retain_for(job.state, job.retain).to_string();
    let is_due = job.run_at != job.created_at;
    html! {
        section class="panel" {
            header { h2 { (says.facts()) } }
            div class="body" {
                dl class="facts" {
                    dt { (says.queue()) } dd { a href=(visit.to("queues", &job.queue)) { (job.queue) } }
                    (fact(&says.kind(), (!job.kind.is_empty()).then(|| html! { (job.kind) })))
                    (fact(&says.priority(), text(job.priority.to_string())))
                    (fact(&says.group(), job.group.as_ref().map(|group| html! { (group) })))
                    (fact(&says.attempts(), text(attempts)))
                    (fact(&says.lost(), (job.lost > 0).then(|| html! { (job.lost) })))
                    (fact(&says.pushed(), Some(both(job.created_at))))
                    (fact(&says.due(), is_due.then(|| both(job.run_at))))
                    (fact(&says.started(), job.started_at.map(both)))
                    (fact(&says.finished(), job.finished_at.map(both)))
                    (fact(&says.expires(), job.expires_at.map(both)))
                    (fact(&says.timeout(), job.timeout.and_then(|span| text(span.to_string()))))
                    (fact(&says.kept(), text(kept)))
                    (fact(&says.unique(), job.unique.as_ref().and_then(|one| mono(one.key.to_string()))))
                    (fact(&says.flow(), job.flow.as_ref().map(|flow| {
                        html! { a href=(visit.to("flows", flow)) { (flow) } }
                    })))
                    (fact(&says.schedule(), job.schedule.as_ref().map(|made| {
                        html! { a href=(visit.to("schedules", &made.id)) { (made.id) } }
                    })))
                    (fact(&says.trace(), job.traceparent.as_ref().and_then(|trace| {
                        mono(trace.to_string())
                    })))
                    (fact(&says.needs(), (!job.needs.is_empty()).then(|| {
                        html! { code { (needs_text(&job.needs)) } }
                    })))
                }
            }
        }
    }
}

/// Needs in the syntax of the command line, one per line.
pub(super) fn needs_text(needs: &[Need]) -> String {
    let lines: Vec<String> = needs.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Payload and result of the job, if the visitor asked for them.
fn content(visit: &Visit, says: Says, job: &JobView) -> Markup {
    let path = crate::pairs::path(&["jobs", job.id.as_ref()]);
    let is_shown = shows_content(visit);
    let part = |name: String, json: Option<&Json>| {
        html! {
            @if let Some(json) = json.filter(|json| !json.is_null()) {
                h3 { (name) }
                pre class="text" tabindex="0" { (indented(json)) }
            }
        }
    };
    html! {
        section class="panel" id="content" {
            header { h2 { (says.content()) } p { (says.private()) } }
            div class="body fields" {
                @if !is_shown && job.state == JobState::Running {
                    (part(says.progress(), job.progress.as_ref()))
                }
                @if is_shown {
                    (part(says.payload(), job.payload.as_ref()))
                    (part(says.progress(), job.progress.as_ref()))
                    (part(says.result(), job.result.as_ref()))
                    p { a class="btn" href=(visit.link(&path)) { (says.hide_content()) } }
                } @else {
                    p class="soft" { (says.content_what()) }
                    p { a class="btn" href=(visit.link_with(&path, &[("show", "content")])) { (says.show_content()) } }
                }
            }
        }
    }
}

/// JSON for people, with its numbers and keys unchanged.
pub(super) fn indented(json: &Json) -> String {
    let (mut text, mut depth, mut in_string, mut escaped) = (String::new(), 0usize, false, false);
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    let mut rest = json.text().chars().peekable();
    while let Some(c) = rest.next() {
        if in_string {
            text.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                text.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                in_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}

/// Back to the page of the job, which says what was done.
fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    back_to(visit, &["jobs", visit.name()], &[("did", did)])
}

async fn run_now(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(RunJobNow { job: decode::job_path(visit.name())? }).await?;
    back(visit, "run-now")
}

async fn retry(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(RetryJob { job: decode::job_path(visit.name())?, finished_at: None }).await?;
    back(visit, "retry")
}

async fn ask_cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    ask(visit, says.cancel_title(), says.cancel_what(), says.cancel(), "cancel")
}

async fn cancel(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(CancelJob { job: decode::job_path(visit.name())? }).await?;
    back(visit, "cancel")
}

async fn ask_delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    ask(visit, says.delete_title(), says.delete_what(), says.delete(), "delete")
}

fn ask(
    visit: &Visit,
    title: String,
    what: String,
    label: String,
    verb: &str,
) -> Result<Drawn, Unanswered> {
    let id = visit.name();
    let says = vec![id.to_owned(), what];
    ask_to_destroy(visit, title, says, label, &[verb, id], visit.to("jobs", id))
}

async fn delete(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeleteJob { job: decode::job_path(visit.name())? }).await?;
    Ok(Drawn::Elsewhere(visit.link_with("/jobs", &[("did", "forgot")])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_otherwise_as_it_came() {
        for (text, shown) in [
            ("null", "null"),
            ("{}", "{}"),
            ("[ ]", "[]"),
            (
                r#"{"a":1.50,"b":[1, "x,{}:\" y"]}"#,
                "{\n  \"a\": 1.50,\n  \"b\": [\n    1,\n    \"x,{}:\\\" y\"\n  ]\n}",
            ),
            (r#""\\""#, r#""\\""#),
        ] {
            assert_eq!(indented(&Json::parse(text).unwrap()), shown, "{text}");
        }
    }
}
