//! Cancels, retries or deletes the jobs whose boxes are checked in a list, after a question that
//! names them.

use maud::{Markup, html};
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::decode;
use tenure_core::requests::{BulkChange, CancelJob, DeleteJob, RetryJob};

use super::{PageRow, Section, action, bulk};
use crate::language::sentences;
use crate::show::Confirm;
use crate::visit::{Drawn, Unanswered, Visit};

sentences! { Says;
    chosen: "With the checked jobs:", "对选中的任务：";
    none: "Check the boxes of some jobs first.", "请先选中一些任务。";
    jobs(ids): "Jobs: {ids}", "任务：{ids}";
}

pub(super) const ROWS: &[PageRow] =
    &[PageRow::new(Section::Jobs, "/chosen").acts(action!(CancelJob, change_chosen))];

/// The changes, in the order of their buttons.
const CHANGES: [BulkChange; 3] = [BulkChange::Retry, BulkChange::Cancel, BulkChange::Delete];

/// The buttons of the form around a list with boxes. `search`: the list to return to.
pub(super) fn buttons(visit: &Visit, search: &str) -> Markup {
    html! {
        div class="pager chosen" {
            span { (Says(visit.tongue).chosen()) }
            input type="hidden" name="q" value=(search);
            span class="acts" {
                @for change in CHANGES {
                    button class={ "small" @if change == BulkChange::Delete { " danger" } }
                        name="do" value=(bulk::key(change)) { (bulk::name(visit, change)) "…" }
                }
            }
        }
    }
}

async fn change_chosen(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let word = visit.form.get("do").unwrap_or_default();
    let Some(change) = CHANGES.into_iter().find(|change| bulk::key(*change) == word) else {
        return Err(Unanswered::NoPage);
    };
    let search = visit.form.get("q").unwrap_or_default();
    let ids: Vec<&str> = visit.form.all("job").take(LIST_DEFAULT).collect();
    if visit.form.has("sure") {
        let mut done = 0_u64;
        for id in ids {
            match act(visit, change, id).await {
                Ok(()) => done += 1,
                // The job ended or was deleted meanwhile.
                Err(Unanswered::Refused(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        let query = [("q", search), ("did", word), ("n", &done.to_string())];
        return Ok(Drawn::Elsewhere(visit.link_with("/jobs", &query)));
    }
    let mut fields = vec![("do", word), ("q", search), ("sure", "1")];
    fields.extend(ids.iter().map(|id| ("job", *id)));
    let (title, what) = bulk::question(visit, change);
    let named = if ids.is_empty() { says.none() } else { says.jobs(ids.join(", ")) };
    Confirm {
        title,
        says: vec![named, what],
        fields: &fields,
        asks: None,
        label: bulk::name(visit, change),
        is_danger: change != BulkChange::Retry,
        command: visit.command(&[word, ids.first().copied().unwrap_or("ID")]),
        back: visit.to_jobs(search),
    }
    .ask(visit)
}

async fn act(visit: &Visit, change: BulkChange, id: &str) -> Result<(), Unanswered> {
    let job = decode::job_path(id)?;
    match change {
        BulkChange::Cancel => visit.ask(CancelJob { job }).await.map(drop),
        BulkChange::Retry => visit.ask(RetryJob { job, finished_at: None }).await.map(drop),
        BulkChange::Delete => visit.ask(DeleteJob { job }).await.map(drop),
    }
}
