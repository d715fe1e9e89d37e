//! Edits a job: a waiting one is changed; a running or finished one is pushed again as a new one.

use maud::{Markup, html};
use serde_json::{Map, Value};
use tenure_core::access::Scope;
use tenure_core::decode::{self, Decode};
use tenure_core::job::{JobState, JobView};
use tenure_core::requests::{GetJob, Patch, PatchJob, Push, PushAnswer, Pushed};

use super::{PageRow, Section, action, draw, job};
use crate::acting::{Field, back_to, said};
use crate::command::ShownCommand;
use crate::language::sentences;
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    edit: "Edit the job", "编辑任务";
    again: "Run again as a new job", "作为新任务再次运行";
    again_what: "The new job has the queue, kind, needs, labels and retries of this one, and an id of its own.",
        "新任务沿用此任务的队列、类型、需求、标签和重试设置，并拥有自己的 id。";
    payload: "Payload (JSON)", "负载（JSON）";
    priority: "Priority, -100 to 100", "优先级，-100 至 100";
    group: "Group", "组";
    delay: "Delay before the run, such as 10m", "运行前的等待时间，例如 10m";
    save: "Save", "保存";
    push: "Push", "推送";
    no_command: "The command line can move a job to another time; change the rest here, or by the API.",
        "命令行可更改任务的时间；其余内容在此处或通过 API 更改。";
    back: "Leave it as it is", "返回，不做更改";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Jobs, "/jobs/{}/edit").shows(draw!(show)).acts(action!(PatchJob, edit)),
    PageRow::new(Section::Jobs, "/jobs/{}/again").acts(action!(Push, again)),
];

/// Whether a job can be changed in place.
fn can_change(state: JobState) -> bool {
    !state.is_finished() && state != JobState::Running
}

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    // The form would send back `•••` in place of a payload that it does not show.
    visit.engine.caller().grants().may(Scope::Read, "the payload of get_job")?;
    let old = visit.ask(GetJob { job: decode::job_path(visit.name())? }).await?;
    let in_place = can_change(old.state);
    let title = if in_place { says.edit() } else { says.again() };
    let verb = if in_place { "edit" } else { "again" };
    let action = crate::pairs::path(&["jobs", visit.name(), verb]);
    let body = html! {
        section class="panel" {
            header { h1 { (title) } p class="mono" { (old.id) } }
            div class="body" {
                form class="fields" method="post" action=(visit.link(&action)) {
                    @if !in_place { p class="soft" { (says.again_what()) } }
                    (fields(says, &old))
                    div class="acts" {
                        button class="main" { @if in_place { (says.save()) } @else { (says.push()) } }
                        a class="btn" href=(visit.to("jobs", &old.id)) { (says.back()) }
                    }
                    @if in_place { p class="faint" { (says.no_command()) } }
                    code class="cmd" tabindex="0" { (by_command(visit, &old, in_place).text()) }
                }
            }
        }
    };
    Sheet::still(title, body)
}

/// The closest command. It reads the payload from a file, so that the payload is in no history of a shell.
fn by_command(visit: &Visit, old: &JobView, in_place: bool) -> ShownCommand {
    let (id, queue, kind) = (old.id.to_string(), old.queue.to_string(), old.kind.to_string());
    if in_place {
        return visit.command(&["reschedule", &id, "--delay", "10m"]);
    }
    let mut words = vec!["push", queue.as_str(), "@payload.json"];
    if !kind.is_empty() {
        words.extend(["--kind", kind.as_str()]);
    }
    visit.command(&words)
}

fn fields(says: Says, old: &JobView) -> Markup {
    let payload = old.payload.as_ref().map(job::indented).unwrap_or_default();
    html! {
        label { (says.payload())
            textarea name="payload" rows="12" spellcheck="false" { (payload) }
        }
        label { (says.priority())
            input name="priority" inputmode="numeric" value=(old.priority);
        }
        label { (says.group())
            input name="group" value=[old.group.as_ref()] maxlength="256";
        }
        label { (says.delay())
            input name="delay" placeholder="0s";
        }
    }
}

async fn edit(visit: &Visit) -> Result<Drawn, Unanswered> {
    let fields =
        [("priority", Field::Number), ("group", Field::TextOrNull), ("delay", Field::Text)];
    let mut patch = PatchJob::of(&visit.names, said(visit, &fields).as_bytes())?;
    let payload = visit.form.get("payload").unwrap_or("null");
    patch.payload = Patch::Set(decode::payload_line(payload.as_bytes())?);
    visit.ask(patch).await?;
    back_to(visit, &["jobs", visit.name()], &[("did", "edit")])
}

async fn again(visit: &Visit) -> Result<Drawn, Unanswered> {
    let old = visit.ask(GetJob { job: decode::job_path(visit.name())? }).await?;
    let fields =
        [("priority", Field::Number), ("group", Field::TextOrNull), ("delay", Field::Text)];
    let form: Map<String, Value> = serde_json::from_str(&said(visit, &fields)).unwrap_or_default();
    let mut jobs = decode::push(like(&old, form).to_string().as_bytes())?;
    let payload = visit.form.get("payload").unwrap_or("null");
    for job in &mut jobs {
        job.payload = decode::payload_line(payload.as_bytes())?;
    }
    let pushed = visit.ask(Push { jobs, answer: PushAnswer::Ids }).await?;
    let Pushed::Ids(ids) = pushed else { return Err(Unanswered::NoPage) };
    let Some(one) = ids.first() else { return Err(Unanswered::NoPage) };
    back_to(visit, &["jobs", one.id.as_str()], &[("did", "push")])
}

/// The body of a push for a job like this one, with the fields of a form.
fn like(old: &JobView, form: Map<String, Value>) -> Value {
    let mut body = Map::new();
    let mut copy = |name: &str, value: serde_json::Result<Value>| {
        if let Ok(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    copy("queue", serde_json::to_value(&old.queue));
    copy("kind", serde_json::to_value(&old.kind));
    copy("needs", serde_json::to_value(&old.needs));
    copy("labels", serde_json::to_value(&old.labels));
    copy("retry", serde_json::to_value(&old.retry));
    copy("timeout", serde_json::to_value(old.timeout));
    copy("retain", serde_json::to_value(old.retain));
    body.extend(form);
    Value::Object(body)
}
