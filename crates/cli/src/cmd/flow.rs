//! `tenure flow`: shows flows, waits for them, cancels and retries them as a whole.

use tenure::Client;
use tenure_core::count::{self, grouped};
use tenure_core::flow::{FlowCounts, FlowState, FlowView};
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::requests::{DoneMany, JobFilter, RetryJobs};
use tenure_core::time::{Moment, Span};

use crate::args::flows::{FlowAction, FlowArgs};
use crate::cmd::{cancel, contact, next_page};
use crate::exit::{Failure, NO};
use crate::output::Output;
use crate::output::clock;
use crate::output::page::Page;
use crate::output::table::{Table, when};

/// Shows flows, or makes the call that the arguments name.
pub async fn run(client: &Client, out: Output, args: FlowArgs, url: &str) -> Result<(), Failure> {
    let view = match (args.action, args.flow) {
        (None, None) => {
            let listed = client.list_flows(args.page.page()).await?;
            return next_page::answer(out, &listed, |flows| table(flows, clock::now()));
        }
        (None, Some(flow)) => client.get_flow(flow, Span::ZERO).await?,
        (Some(FlowAction::Cancel { flow }), _) => client.cancel_flow(flow).await?,
        (Some(FlowAction::Retry { flow }), _) => return retry(client, out, flow).await,
        (Some(FlowAction::Wait { flow, longest }), _) => {
            let view =
                contact::telling(client, url).wait_for_flow(flow, longest.map(Span::std)).await?;
            show(out, &view)?;
            return no(&view, longest).map_or(Ok(()), Err);
        }
    };
    show(out, &view)
}

fn show(out: Output, view: &FlowView) -> Result<(), Failure> {
    out.answer(view, |view| people(view, clock::now()))
}

fn people(view: &FlowView, now: Moment) -> String {
    let mut page = Page::default();
    page.noted("flow", &view.flow, &said(view, now)).field("jobs", counts(&view.counts));
    page.render()
}

/// `open since 4m ago`.
fn said(view: &FlowView, now: Moment) -> String {
    match (view.state, view.finished_at, view.cancelling) {
        (FlowState::Finished, Some(at), _) => format!("finished {}", when(at, now)),
        (FlowState::Finished, None, _) => "finished".to_owned(),
        (FlowState::Open, _, true) => {
            format!("open since {}, is being cancelled", when(view.created_at, now))
        }
        (FlowState::Open, _, false) => format!("open since {}", when(view.created_at, now)),
    }
}

/// `9,991 unfinished, 8 succeeded, 1 failed, 0 cancelled`.
pub fn counts(counts: &FlowCounts) -> String {
    let FlowCounts { unfinished, succeeded, failed, cancelled } = *counts;
    let [unfinished, succeeded, failed, cancelled] =
        [unfinished, succeeded, failed, cancelled].map(grouped);
    format!(
        "{unfinished} unfinished, {succeeded} succeeded, {failed} failed, {cancelled} cancelled"
    )
}

fn table(flows: &[FlowView], now: Moment) -> String {
    let head = ["FLOW", "STATE", "UNFINISHED", "SUCCEEDED", "FAILED", "CANCELLED", "SINCE"];
    let mut table = Table::new(&head);
    for flow in flows {
        let FlowCounts { unfinished, succeeded, failed, cancelled } = flow.counts;
        let [unfinished, succeeded, failed, cancelled] =
            [unfinished, succeeded, failed, cancelled].map(grouped);
        let state = if flow.cancelling { "cancelling" } else { flow.state.as_str() };
        let since = when(flow.finished_at.unwrap_or(flow.created_at), now);
        let name = flow.flow.to_string();
        table.row([name, state.to_owned(), unfinished, succeeded, failed, cancelled, since]);
    }
    table.render("no flows")
}

/// Why a flow that was waited for did not end well; `None` if all its jobs succeeded.
fn no(view: &FlowView, longest: Option<Span>) -> Option<Failure> {
    let FlowView { flow, counts, .. } = view;
    if view.state == FlowState::Open {
        let within = longest.filter(|longest| *longest > Span::ZERO);
        let within = within.map(|longest| format!(" after {longest}")).unwrap_or_default();
        let jobs = count::of(counts.unfinished, "job is", "jobs are");
        let unfinished = grouped(counts.unfinished);
        let sentence =
            format!("flow '{flow}' is not finished{within}: {unfinished} {jobs} unfinished");
        let next = format!("`tenure jobs --flow '{flow}'` lists its jobs");
        return Some(Failure::new(NO, sentence).hint(next));
    }
    if !counts.has_failed() {
        return None;
    }
    let were = count::of(counts.cancelled, "was", "were");
    let (failed, cancelled) = (grouped(counts.failed), grouped(counts.cancelled));
    let sentence =
        format!("flow '{flow}' did not succeed: {failed} failed, and {cancelled} {were} cancelled");
    let next = format!(
        "`tenure jobs --flow '{flow}' --state failed` shows why; `tenure flow retry '{flow}'` makes them ready again"
    );
    Some(Failure::new(NO, sentence).hint(next))
}

/// Retries failed and cancelled jobs. One walk goes from the oldest job to the newest and skips those whose parents are
/// still failed; a parent may stand behind its child, so walks follow each other while they change something. Each job
/// is retried once at most, or one that fails at once would be retried without end.
async fn retry(client: &Client, out: Output, flow: FlowName) -> Result<(), Failure> {
    let before = client.get_flow(flow.clone(), Span::ZERO).await?.counts;
    let states = vec![JobState::Failed, JobState::Cancelled];
    let filter = JobFilter { flow: Some(flow.clone()), states, ..JobFilter::default() };
    let mut left = before.failed + before.cancelled;
    let mut done = 0;
    while left > 0 {
        let make = |filter, max, cursor| RetryJobs { filter, max, cursor };
        let walked = cancel::walk(client, &filter, left, make).await?;
        if walked.done == 0 {
            break;
        }
        done += walked.done;
        left = left.saturating_sub(walked.done);
    }
    out.answer(&DoneMany::all(done), |sum| format!("{} made ready again\n", grouped(sum.done)))?;
    // The retry is done and answered; if the counts cannot be read now, it did not fail for that.
    let after = client.get_flow(flow.clone(), Span::ZERO).await;
    let still = after.map_or(0, |view| view.counts.failed + view.counts.cancelled);
    if still > 0 {
        let jobs = count::of(still, "job is", "jobs are");
        crate::output::tell(&format!(
            "{} {jobs} still failed or cancelled: they failed again, are no longer kept, or wait for a failed job that \
             does not belong to flow '{flow}'",
            grouped(still)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_us(1_000_000_000);

    fn view(counts: [u64; 4]) -> FlowView {
        let [unfinished, succeeded, failed, cancelled] = counts;
        let (state, finished_at) = match unfinished {
            0 => (FlowState::Finished, Some(NOW)),
            _ => (FlowState::Open, None),
        };
        FlowView {
            flow: FlowName::parse("import-7").unwrap(),
            state,
            cancelling: false,
            counts: FlowCounts { unfinished, succeeded, failed, cancelled },
            created_at: NOW,
            finished_at,
        }
    }

    #[test]
    fn a_flow_is_shown_with_its_state_and_its_counts() {
        let later = NOW.plus(Span::from_s(250));
        let mut open = view([9_991, 8, 1, 0]);
        let jobs = "jobs  9,991 unfinished, 8 succeeded, 1 failed, 0 cancelled\n";
        assert_eq!(people(&open, later), format!("flow  import-7  open since 4m10s ago\n{jobs}"));
        open.cancelling = true;
        let said = "flow  import-7  open since 4m10s ago, is being cancelled\n";
        assert_eq!(people(&open, later), format!("{said}{jobs}"));
        let text = people(&view([0, 10_000, 0, 0]), later);
        assert!(text.starts_with("flow  import-7  finished 4m10s ago\n"), "{text}");
        assert!(table(&[open], later).contains("cancelling"));
        assert_eq!(table(&[], later), "no flows\n");
    }

    #[test]
    fn flow_wait_succeeds_only_if_all_jobs_of_the_flow_did() {
        for (counts, longest, sentence) in [
            ([0, 3, 0, 0], None, None),
            ([0, 0, 0, 0], None, None),
            (
                [0, 3, 1, 2_000],
                None,
                Some("flow 'import-7' did not succeed: 1 failed, and 2,000 were cancelled"),
            ),
            (
                [0, 3, 0, 1],
                None,
                Some("flow 'import-7' did not succeed: 0 failed, and 1 was cancelled"),
            ),
            (
                [1, 0, 0, 0],
                Some(Span::from_s(5)),
                Some("flow 'import-7' is not finished after 5s: 1 job is unfinished"),
            ),
            (
                [2_000, 0, 1, 0],
                Some(Span::ZERO),
                Some("flow 'import-7' is not finished: 2,000 jobs are unfinished"),
            ),
        ] {
            let failure = no(&view(counts), longest);
            let told = failure.as_ref().and_then(|failure| failure.sentence.as_deref());
            assert_eq!(told, sentence, "{counts:?}");
            assert!(failure.is_none_or(|failure| failure.code == NO && failure.hint.is_some()));
        }
    }
}
