//! `tenure explain`: exactly what a job waits for.

use tenure::Client;
use tenure_core::lease::{Explained, Reason, ReasonKind};
use tenure_core::requests::ExplainJob;
use tenure_core::time::Moment;

use crate::args::jobs::JobArg;
use crate::exit::Failure;
use crate::output::table::when;
use crate::output::{Output, printable};

/// Says it.
pub async fn run(client: &Client, out: Output, args: JobArg) -> Result<(), Failure> {
    let explained = client.run(ExplainJob { job: args.job }).await?;
    out.answer(&explained, |explained| people(explained, super::now()))
}

fn people(explained: &Explained, now: Moment) -> String {
    let mut text = format!("{} is {}: {}\n", explained.id, explained.state, explained.summary);
    if let Some(lease) = &explained.lease {
        text.push_str(&format!(
            "  held by {} since {} (lease {}, expires {})\n",
            lease.holder,
            when(lease.since, now),
            lease.lease,
            when(lease.expires_at, now)
        ));
    }
    text.push_str(&reasons(&explained.reasons, now));
    printable(&text)
}

/// Reasons, a paragraph each.
fn reasons(reasons: &[Reason], now: Moment) -> String {
    let mut text = String::new();
    for (at, reason) in reasons.iter().enumerate() {
        let kind = super::job::json(&reason.kind);
        let kind = kind.trim_matches('"').replace('_', " ");
        text.push_str(&format!("- {kind}"));
        if let Some(name) = &reason.name {
            text.push_str(&format!(" '{name}'"));
        }
        if !reason.detail.is_empty() {
            text.push_str(&format!(": {}", reason.detail));
        }
        text.push('\n');
        let mut facts = Vec::new();
        if let (Some(in_use), Some(capacity)) = (reason.in_use, reason.capacity) {
            // How many parents are done is one number of the job, so the last of them says it.
            let more = reasons.get(at + 1).is_some_and(|next| next.kind == ReasonKind::WaitingOn);
            match reason.kind {
                ReasonKind::WaitingOn if more => {}
                ReasonKind::WaitingOn => facts.push(format!("{in_use} of {capacity} parents done")),
                _ => facts.push(format!("{in_use} of {capacity} in use")),
            }
        }
        facts.extend(reason.position.map(|position| format!("number {position} in its line")));
        facts.extend(reason.ahead.map(|ahead| format!("{ahead} ahead")));
        facts.extend(reason.earliest.map(|at| format!("no sooner than {}", when(at, now))));
        if !facts.is_empty() {
            text.push_str(&format!("    {}\n", facts.join(", ")));
        }
        for holder in &reason.holders {
            let job = holder.job.as_ref().map(|job| format!(" for job {job}")).unwrap_or_default();
            text.push_str(&format!(
                "    held by {}{job} since {} (lease {})\n",
                holder.holder,
                when(holder.since, now),
                holder.lease
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::sentences::WaitCause;

    #[test]
    fn how_many_parents_are_done_is_said_once() {
        let waits = |name: &str| Reason {
            name: Some(name.to_owned()),
            in_use: Some(1),
            capacity: Some(3),
            ..Reason::from(WaitCause::parent(name.to_owned(), false))
        };
        let text = reasons(&[waits("a"), waits("flow:f")], Moment::ZERO);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[0].starts_with("- waiting on 'a': ") && lines[1].contains("'flow:f'"),
            "{text}"
        );
        assert_eq!(lines[2], "    1 of 3 parents done");
    }
}
