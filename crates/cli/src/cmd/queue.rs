//! `tenure queue`: shows queues, sets their defaults, pauses them.

use std::collections::BTreeMap;

use tenure::Client;
use tenure_core::decode::Decode;
use tenure_core::job::{Need, Retry};
use tenure_core::names::{Group, QueueName};
use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, Patch, PatchQueue, PauseQueue, ResumeQueue,
};
use tenure_core::settings::QueueView;
use tenure_core::time::Moment;

use crate::args::settings::{QueueAction, QueueArgs, QueueSetArgs};
use crate::args::value::Setting;
use crate::cmd::job::json;
use crate::cmd::next_page;
use crate::exit::Failure;
use crate::json_args;
use crate::output::Output;
use crate::output::clock::{self, second};
use crate::output::page::Page;
use crate::output::table::{Table, when};

/// Shows queues, or runs the action.
pub async fn run(client: &Client, out: Output, args: QueueArgs) -> Result<(), Failure> {
    let view = match (args.action, args.name) {
        (None, None) => {
            let listed = client.run(ListQueues { page: args.page.page() }).await?;
            return next_page::answer(out, &listed, table);
        }
        (None, Some(queue)) => client.run(GetQueue { queue }).await?,
        (Some(QueueAction::Set(set)), _) => client.set(patch(*set)?).await?.view,
        (Some(QueueAction::Pause { name, later }), _) => {
            client.run(PauseQueue { queue: name, until: later.later() }).await?
        }
        (Some(QueueAction::Resume { name }), _) => client.run(ResumeQueue { queue: name }).await?,
        (Some(QueueAction::Delete { name }), _) => {
            client.run(DeleteQueue { queue: name.clone() }).await?;
            return out.done(&format!("queue '{name}' was deleted"));
        }
    };
    out.answer(&view, people)
}

fn patch(set: QueueSetArgs) -> Result<PatchQueue, Failure> {
    Ok(PatchQueue {
        needs: needs(&set.needs)?,
        retry: retry(set.retry.as_deref(), &set.name)?,
        timeout: Setting::of(set.timeout),
        retain: Setting::of(set.retain),
        max_waiting: Setting::of(set.max_waiting),
        lost_delay: Setting::of(set.lost_delay),
        shares: shares(&set.shares, &set.name)?,
        show_payload: Setting::of(set.show_payload),
        queue: set.name,
    })
}

/// The patch that the API would read from a body: its forms and bounds hold here too.
fn through_body(queue: &QueueName, field: &str, text: &str) -> Result<PatchQueue, Failure> {
    let what = format!("--{field}");
    let value = json_args::checked_json(&what, text.as_bytes())?;
    let body = json(&BTreeMap::from([(field, value)]));
    PatchQueue::of(&[queue.as_str()], body.as_bytes()).map_err(|no| json_args::usage(&what, &no))
}

fn needs(options: &[String]) -> Result<Patch<Vec<Need>>, Failure> {
    match options {
        [] => Ok(Patch::Keep),
        [none] if none == "none" => Ok(Patch::Reset),
        some => json_args::needs(some).map(Patch::Set),
    }
}

fn retry(option: Option<&str>, queue: &QueueName) -> Result<Patch<Retry>, Failure> {
    match option {
        None => Ok(Patch::Keep),
        Some("none") => Ok(Patch::Reset),
        option => {
            let retry = json_args::retry(option)?.unwrap_or_default();
            Ok(through_body(queue, "retry", retry.text())?.retry)
        }
    }
}

fn shares(options: &[String], queue: &QueueName) -> Result<Patch<BTreeMap<Group, u32>>, Failure> {
    match options {
        [] => return Ok(Patch::Keep),
        [none] if none == "none" => return Ok(Patch::Reset),
        [text] if text.trim_start().starts_with('{') => {
            return Ok(through_body(queue, "shares", text)?.shares);
        }
        _ => {}
    }
    let mut map = BTreeMap::new();
    for text in options {
        // A group may contain '=', a number cannot.
        let pair =
            text.rsplit_once('=').and_then(|(group, n)| Some((group, n.parse::<u32>().ok()?)));
        let (group, n) = pair.ok_or_else(|| {
            Failure::usage(format!("--shares: '{text}' is not GROUP=N"))
                .hint("write --shares tenant-7=3, or a JSON object")
        })?;
        map.insert(group, n);
    }
    Ok(through_body(queue, "shares", &json(&map))?.shares)
}

fn table(queues: &[QueueView]) -> String {
    let now = clock::now();
    let mut table = Table::new(&[
        "QUEUE",
        "READY",
        "BLOCKED",
        "SCHEDULED",
        "RUNNING",
        "WORKERS",
        "OLDEST READY",
        "PAUSED",
    ])
    .numbers(&["READY", "BLOCKED", "SCHEDULED", "RUNNING", "WORKERS"]);
    for queue in queues {
        table.row([
            queue.name.to_string(),
            queue.counts.ready.to_string(),
            queue.counts.blocked.to_string(),
            queue.counts.scheduled.to_string(),
            queue.counts.running.to_string(),
            queue.workers.to_string(),
            queue.oldest_ready_at.map(|at| when(at, now)).unwrap_or_default(),
            paused(queue.paused, queue.paused_until).unwrap_or_default(),
        ]);
    }
    table.render("no queues")
}

/// Until when something is paused, if it is.
pub fn paused(is_paused: bool, until: Option<Moment>) -> Option<String> {
    let until = until.map_or_else(|| "it is resumed".to_owned(), second);
    is_paused.then(|| format!("until {until}"))
}

fn people(queue: &QueueView) -> String {
    let now = clock::now();
    let (settings, counts) = (&queue.settings, &queue.counts);
    let mut page = Page::default();
    page.field("queue", &queue.name)
        .maybe("paused", paused(queue.paused, queue.paused_until))
        .field("ready", counts.ready)
        .field("blocked", counts.blocked)
        .field("scheduled", counts.scheduled)
        .maybe("dependent", Some(counts.dependent).filter(|n| *n > 0))
        .field("running", counts.running)
        .field("workers", queue.workers)
        .maybe("oldest ready", queue.oldest_ready_at.map(|at| when(at, now)))
        .maybe("needs", Some(json(&settings.needs)).filter(|_| !settings.needs.is_empty()))
        .maybe("retry", settings.retry.as_ref().map(json))
        .maybe("timeout", settings.timeout)
        .maybe("retain", settings.retain)
        .maybe("max waiting", settings.max_waiting)
        .maybe("lost delay", settings.lost_delay)
        .maybe("shares", Some(json(&settings.shares)).filter(|_| !settings.shares.is_empty()))
        .maybe("show payload", Some("false").filter(|_| !settings.show_payload));
    page.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> QueueName {
        QueueName::parse("q").unwrap()
    }

    #[test]
    fn shares_are_pairs_or_an_object() {
        let group = |text| Group::parse(text).unwrap();
        let want = Patch::Set(BTreeMap::from([(group("a"), 2), (group("b=c"), 3)]));
        assert_eq!(shares(&["a=2".into(), "b=c=3".into()], &queue()).unwrap(), want);
        assert_eq!(shares(&["{\"a\":2,\"b=c\":3}".into()], &queue()).unwrap(), want);
        assert_eq!(shares(&["none".into()], &queue()).unwrap(), Patch::Reset);
        assert_eq!(shares(&[], &queue()).unwrap(), Patch::Keep);
        for text in ["a", "a=x", "a=0", "{\"a\":0}", "{"] {
            assert_eq!(shares(&[text.into()], &queue()).unwrap_err().code, 2, "{text}");
        }
    }

    #[test]
    fn a_retry_is_json_in_the_form_of_the_api_or_short() {
        let set = retry(Some("{\"max_attempts\":5}"), &queue()).unwrap();
        assert!(matches!(set, Patch::Set(Retry { max_attempts: 5, max_lost: 3, .. })));
        assert_eq!(retry(Some("max_attempts=5"), &queue()).unwrap(), set);
        assert_eq!(retry(Some("5"), &queue()).unwrap(), set);
        assert_eq!(retry(Some("none"), &queue()).unwrap(), Patch::Reset);
        assert_eq!(retry(Some("{\"max_atempts\":5}"), &queue()).unwrap_err().code, 2);
    }
}
