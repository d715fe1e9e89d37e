//! `tenure explain`: exactly what a job waits for.

use tenure::Client;
use tenure_core::lease::{Explained, Reason, ReasonKind};
use tenure_core::requests::ExplainJob;
use tenure_core::time::Moment;

use crate::args::jobs::JobArg;
use crate::cmd::holders::Holders;
use crate::exit::Failure;
use crate::output::clock::{self, sentence};
use crate::output::prose::wrapped;
use crate::output::table::when;
use crate::output::{Output, width};

/// Prints why a job waits.
pub async fn run(client: &Client, out: Output, args: JobArg) -> Result<(), Failure> {
    let explained = client.run(ExplainJob { job: args.job }).await?;
    let lease = explained.lease.iter().map(|lease| lease.holder.as_str());
    let of_reason = |reason: &'_ Reason| {
        reason.holders.iter().map(|one| one.holder.clone()).collect::<Vec<_>>()
    };
    let others: Vec<String> = explained.reasons.iter().flat_map(of_reason).collect();
    let all = lease.chain(others.iter().map(String::as_str));
    let holders = Holders::ask(client, out, all).await;
    out.answer(&explained, |explained| fitted(&people(explained, &holders, clock::now())))
}

/// The same as text, for a screen of its own; holders are named by their ids alone.
pub fn told(explained: &Explained, now: Moment) -> String {
    people(explained, &Holders::default(), now)
}

/// Lines that fit the terminal, if it is one.
fn fitted(text: &str) -> String {
    let Some(width) = width::of_stdout() else { return text.to_owned() };
    let fitted = |line: &str| {
        let words = line.trim_start();
        let margin = &line[..line.len() - words.len()];
        let hang = format!("{margin}  ");
        format!("{margin}{}\n", wrapped(words, width - margin.len().min(width), &hang))
    };
    text.lines().map(fitted).collect()
}

/// Each reason stands once: beside the state if it is the only one, otherwise in a list.
fn people(explained: &Explained, holders: &Holders, now: Moment) -> String {
    let (id, state) = (&explained.id, explained.state);
    match (&explained.lease, explained.reasons.as_slice()) {
        (Some(lease), _) => format!(
            "{id} is {state}: held by {} since {}\n  lease {}, expires {}\n",
            holders.name(&lease.holder),
            when(lease.since, now),
            lease.lease,
            when(lease.expires_at, now)
        ),
        (None, []) => format!("{id} is {state}: {}\n", sentence(&explained.summary)),
        (None, [one]) => {
            format!("{id} is {state}: {}\n{}", clause(one), facts(one, true, holders, now))
        }
        (None, reasons) => {
            let mut text = format!("{id} is {state}, for {} reasons:\n", reasons.len());
            for (at, reason) in reasons.iter().enumerate() {
                // How many parents are done is one number of the job, so the last of them says it.
                let more =
                    reasons.get(at + 1).is_some_and(|next| next.kind == ReasonKind::WaitingOn);
                text.push_str(&format!(
                    "- {}\n{}",
                    clause(reason),
                    facts(reason, !more, holders, now)
                ));
            }
            text
        }
    }
}

/// The sentence of a reason; its kind and name if this version does not know it.
fn clause(reason: &Reason) -> String {
    if !reason.detail.is_empty() {
        return sentence(&reason.detail);
    }
    let kind = super::job::json(&reason.kind);
    let kind = kind.trim_matches('"').replace('_', " ");
    let name = reason.name.as_ref().map(|name| format!(" '{name}'")).unwrap_or_default();
    kind + &name
}

/// Facts that the sentence of a reason leaves out, shown below it.
fn facts(reason: &Reason, is_last: bool, holders: &Holders, now: Moment) -> String {
    let mut facts = Vec::new();
    if let (Some(done), Some(all), ReasonKind::WaitingOn, true) =
        (reason.in_use, reason.capacity, &reason.kind, is_last)
    {
        facts.push(format!("{done} of {all} parents done"));
    }
    facts.extend(reason.position.map(|position| format!("number {position} in its line")));
    if reason.kind != ReasonKind::Behind {
        let ahead = reason.ahead.filter(|ahead| *ahead > 0);
        facts.extend(ahead.map(|ahead| format!("{ahead} ahead")));
    }
    facts.extend(reason.earliest.map(|at| format!("no sooner than {}", when(at, now))));
    let mut text = String::new();
    if !facts.is_empty() {
        text.push_str(&format!("  {}\n", facts.join(", ")));
    }
    for holder in &reason.holders {
        let job = holder.job.as_ref().map(|job| format!(" for job {job}")).unwrap_or_default();
        let (name, since) = (holders.name(&holder.holder), when(holder.since, now));
        text.push_str(&format!("  held by {name}{job} since {since}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::job::JobState;
    use tenure_core::sentences::WaitCause;
    use tenure_core::settings::Holder;

    fn told(reasons: Vec<Reason>) -> String {
        let id = tenure_core::names::JobId::parse("j").unwrap();
        let explained = Explained::new(id, JobState::Blocked, reasons, None);
        people(&explained, &Holders::default(), Moment::ZERO)
    }

    #[test]
    fn how_many_parents_are_done_is_said_once() {
        let waits = |name: &str| Reason {
            name: Some(name.to_owned()),
            in_use: Some(1),
            capacity: Some(3),
            ..Reason::from(WaitCause::parent(name.to_owned(), false))
        };
        assert_eq!(
            told(vec![waits("a"), waits("flow:f")]),
            "j is blocked, for 2 reasons:\n- \"a\" has not ended\n- \"flow:f\" has not ended\n  \
             1 of 3 parents done\n"
        );
    }

    #[test]
    fn a_reason_says_its_sentence_once() {
        let taken = Reason {
            name: Some("x".to_owned()),
            in_use: Some(1),
            capacity: Some(1),
            position: Some(2),
            holders: vec![Holder {
                lease: "L".to_owned(),
                holder: "ann".to_owned(),
                job: None,
                since: Moment::ZERO,
            }],
            ..Reason::from(WaitCause::limit_taken("x".to_owned(), 1, 1, 1))
        };
        assert_eq!(
            told(vec![taken]),
            "j is blocked: 1 of 1 permit of \"x\" is in use\n  number 2 in its line\n  \
             held by ann since 0s ago\n"
        );
        let behind = Reason {
            ahead: Some(3),
            ..Reason::from(WaitCause::Behind { name: "q".to_owned(), ahead: 3 })
        };
        assert_eq!(told(vec![behind]), "j is blocked: 3 jobs of queue \"q\" go first\n");
    }
}
