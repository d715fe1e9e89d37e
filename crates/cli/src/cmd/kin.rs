//! `tenure parents` and `tenure children`: for which jobs and flows a job waits, and which jobs wait for it.

use tenure::Client;
use tenure_core::flow::{ChildView, ParentJob, ParentView};
use tenure_core::time::Moment;

use crate::args::flows::{ChildrenArgs, ParentsArgs};
use crate::cmd::{flow, next_page};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock;
use crate::output::table::{Table, when};

/// Lists the parents of a job.
pub async fn parents(client: &Client, out: Output, args: ParentsArgs) -> Result<(), Failure> {
    let listed = client.list_parents(args.job, args.full, args.page.page()).await?;
    next_page::answer(out, &listed, |parents| parents_table(parents, clock::now()))
}

/// Lists the jobs that wait for a job.
pub async fn children(client: &Client, out: Output, args: ChildrenArgs) -> Result<(), Failure> {
    let listed = client.list_children(args.job, args.page.page()).await?;
    next_page::answer(out, &listed, children_table)
}

fn parents_table(parents: &[ParentView], now: Moment) -> String {
    let mut table = Table::new(&["PARENT", "STATE", "ENDED", "NOTE"]);
    for parent in parents {
        table.row(match parent {
            ParentView::Job(ParentJob { id, state, error, finished_at, .. }) => [
                id.to_string(),
                state.as_str().to_owned(),
                finished_at.map_or_else(String::new, |at| when(at, now)),
                error.clone().unwrap_or_default(),
            ],
            ParentView::Flow { flow, counts } => [
                format!("flow:{flow}"),
                if counts.unfinished > 0 { "open" } else { "finished" }.to_owned(),
                String::new(),
                flow::counts(counts),
            ],
        });
    }
    table.render("it waits for no job")
}

fn children_table(children: &[ChildView]) -> String {
    let mut table = Table::new(&["CHILD", "STATE", "IF THIS FAILS"]);
    for child in children {
        let (id, state) = (child.id.to_string(), child.state.to_string());
        table.row([id, state, child.on_parent_failure.as_str().to_owned()]);
    }
    table.render("no job waits for it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_jobs_and_flows_and_may_be_gone() {
        let parents: Vec<ParentView> = [
            r#"{"id":"a","state":"failed","error":"http 500","finished_at":"2026-12-01T08:00:00Z"}"#,
            r#"{"id":"b","state":"gone","error":null,"finished_at":null}"#,
            r#"{"flow":"f","counts":{"unfinished":0,"succeeded":2}}"#,
        ]
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
        let now = "2026-12-01T08:00:05Z".parse().unwrap();
        let text = parents_table(&parents, now);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "a       failed    5s ago  http 500");
        assert_eq!(lines[1], "b       gone");
        assert!(
            lines[2].starts_with("flow:f  finished          0 unfinished, 2 succeeded"),
            "{text}"
        );
        assert_eq!(parents_table(&[], now), "it waits for no job\n");
        assert_eq!(children_table(&[]), "no job waits for it\n");
    }
}
