//! `tenure limit`: shows limits, their holders and their lines; sets, pauses and observes them.

use tenure::Client;
use tenure_core::names::LimitName;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, Patch, PatchLimit, PauseLimit, ResumeLimit,
};
use tenure_core::settings::{LimitView, Rate};
use tenure_core::time::{Moment, Span};

use crate::args::settings::{LimitAction, LimitArgs};
use crate::args::value::{PerSpan, Setting};
use crate::cmd::holders::Holders;
use crate::cmd::limit_gauge;
use crate::cmd::next_page;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock::{self, second};
use crate::output::page::Page;
use crate::output::table::{Table, or_dash, when};

/// Shows limits, or runs the action.
pub async fn run(client: &Client, out: Output, args: LimitArgs) -> Result<(), Failure> {
    let action = match (args.action, args.name) {
        (Some(action), _) => action,
        (None, Some(limit)) => {
            let view = client.run(GetLimit { limit }).await?;
            return show(client, out, &view).await;
        }
        (None, None) => {
            let listed = client.run(ListLimits { page: args.page.page() }).await?;
            return next_page::answer(out, &listed, table);
        }
    };
    let view = match action {
        LimitAction::Set { name, concurrency, rate, burst, gap, quarantine, gauge } => {
            let rate = match (rate, burst) {
                (None, Some(burst)) => burst_alone(client, &name, burst).await?,
                (rate, burst) => rate_of(rate, burst)?,
            };
            let (concurrency, gap) = (Setting::of(concurrency), Setting::of(gap));
            let quarantine = Setting::of(quarantine);
            let gauge = limit_gauge::setting(&gauge)?;
            if (&concurrency, &rate, &gap, &quarantine, &gauge)
                == (&Patch::Keep, &Patch::Keep, &Patch::Keep, &Patch::Keep, &Patch::Keep)
            {
                return Err(Failure::usage("limit set: no setting is named")
                    .hint("name a setting, such as --concurrency 4 or --rate 10/1s"));
            }
            client
                .set(PatchLimit { limit: name, concurrency, rate, gap, quarantine, gauge })
                .await?
                .view
        }
        LimitAction::Pause { name, later } => {
            client.run(PauseLimit { limit: name, until: later.later() }).await?
        }
        LimitAction::Resume { name } => client.run(ResumeLimit { limit: name }).await?,
        LimitAction::Observe { name, external, hold } => {
            client.run(ObserveLimit { limit: name, external, hold }).await?
        }
        LimitAction::Delete { name } => {
            client.run(DeleteLimit { limit: name.clone() }).await?;
            return out.done(&format!("the settings of limit '{name}' were deleted"));
        }
    };
    show(client, out, &view).await
}

async fn show(client: &Client, out: Output, view: &LimitView) -> Result<(), Failure> {
    let holders = view.holders.iter().map(|one| one.holder.as_str());
    let holders = Holders::ask(client, out, holders).await;
    out.answer(view, |view| people(view, &holders, clock::now()))
}

/// `--rate` and `--burst` as one field.
pub fn rate_of(rate: Option<Setting<PerSpan>>, burst: Option<u32>) -> Result<Patch<Rate>, Failure> {
    match (Setting::of(rate), burst) {
        (Patch::Set(rate), burst) => Ok(Patch::Set(rate.with_burst(burst))),
        (Patch::Keep, None) => Ok(Patch::Keep),
        (Patch::Reset, None) => Ok(Patch::Reset),
        (_, Some(_)) => Err(no_rate()),
    }
}

fn no_rate() -> Failure {
    Failure::usage("--burst needs a rate, and the limit has none")
        .hint("give the rate too: --rate 10/1s --burst 5")
}

/// `--burst` without `--rate` changes the rate that is set.
async fn burst_alone(
    client: &Client,
    limit: &LimitName,
    burst: u32,
) -> Result<Patch<Rate>, Failure> {
    let view = client.run(GetLimit { limit: limit.clone() }).await?;
    match view.settings.rate {
        Some(rate) => Ok(Patch::Set(Rate { burst, ..rate })),
        None => Err(no_rate()),
    }
}

/// A rate in the form of the command line.
pub fn rate_text(rate: &Rate) -> String {
    format!("{}/{}, burst {}", rate.count, rate.per, rate.burst)
}

fn used(limit: &LimitView) -> String {
    let used = match limit.external {
        0 => limit.in_use.to_string(),
        external => format!("{}+{external}", limit.in_use),
    };
    match limit.settings.concurrency {
        Some(cap) => format!("{used} of {cap}"),
        None => used,
    }
}

fn paused(limit: &LimitView, now: Moment) -> Option<Moment> {
    limit.paused_until.filter(|until| *until > now)
}

fn table(limits: &[LimitView]) -> String {
    let now = clock::now();
    let head = ["LIMIT", "IN USE", "RATE", "GAP", "WAITING", "TEMPLATE", "PAUSED UNTIL"];
    let mut table = Table::new(&head).numbers(&["WAITING"]);
    for limit in limits {
        table.row([
            limit.name.to_string(),
            used(limit),
            or_dash(limit.settings.rate.as_ref().map(rate_text)),
            or_dash(limit.settings.gap),
            limit.waiting.to_string(),
            or_dash(limit.template.as_ref()),
            or_dash(paused(limit, now).map(second)),
        ]);
    }
    table.render("no limits")
}

fn people(limit: &LimitView, holders: &Holders, now: Moment) -> String {
    let mut page = Page::default();
    page.field("limit", &limit.name)
        .maybe("template", limit.template.as_ref())
        .maybe("concurrency", limit.settings.concurrency)
        .maybe("rate", limit.settings.rate.as_ref().map(rate_text))
        .maybe("gap", limit.settings.gap)
        .maybe("quarantine", Some(limit.settings.quarantine).filter(|q| *q > Span::ZERO))
        .field("in use", limit.in_use)
        .maybe("resting", Some(limit.resting).filter(|n| *n > 0))
        .maybe("external", Some(limit.external).filter(|n| *n > 0));
    if let Some(gauge) = &limit.gauge {
        limit_gauge::show(&mut page, gauge, now);
    }
    page.maybe("over limit", Some(limit.over_limit).filter(|n| *n > 0))
        .field("waiting", limit.waiting)
        .maybe("paused until", paused(limit, now).map(second));
    let mut text = page.render();
    if !limit.holders.is_empty() {
        let mut table = Table::new(&["HOLDER", "SINCE", "JOB", "LEASE"]).ids(&["LEASE"]);
        for holder in &limit.holders {
            table.row([
                holders.name(&holder.holder).to_owned(),
                when(holder.since, now),
                or_dash(holder.job.as_ref()),
                holder.lease.clone(),
            ]);
        }
        text.push_str(&format!("\n{}", table.render("")));
    }
    if !limit.line.is_empty() {
        let mut table =
            Table::new(&["IN LINE", "WAITS SINCE", "QUEUE", "JOB"]).numbers(&["IN LINE"]);
        for (at, waiter) in limit.line.iter().enumerate() {
            table.row([
                (at + 1).to_string(),
                when(waiter.since, now),
                or_dash(waiter.queue.as_ref()),
                waiter.job.as_ref().map_or_else(|| "(a caller)".to_owned(), ToString::to_string),
            ]);
        }
        text.push_str(&format!("\n{}", table.render("")));
        let listed = limit.line.len() as u64;
        if limit.waiting > listed {
            text.push_str(&format!("… and {} more\n", limit.waiting - listed));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::names::JobId;
    use tenure_core::settings::{Holder, LimitSettings, Waiter};

    #[test]
    fn a_burst_belongs_to_a_rate() {
        let rate = PerSpan { count: 10, per: Span::from_s(1) };
        let set = Some(Setting(Patch::Set(rate)));
        let full = |burst| Patch::Set(Rate { count: 10, per: Span::from_s(1), burst });
        assert_eq!(rate_of(set.clone(), None).unwrap(), full(1));
        assert_eq!(rate_of(set, Some(5)).unwrap(), full(5));
        assert_eq!(rate_of(None, None).unwrap(), Patch::Keep);
        assert_eq!(rate_of(Some(Setting(Patch::Reset)), None).unwrap(), Patch::Reset);
        assert_eq!(rate_of(Some(Setting(Patch::Reset)), Some(5)).unwrap_err().code, 2);
    }

    #[test]
    fn a_limit_shows_holders_and_its_line_with_waiting_times() {
        let now = Moment::from_us(1_700_000_000_000_000);
        let ago = |s| now.minus(Span::from_s(s));
        let limit = LimitView {
            name: LimitName::parse("site:a").unwrap(),
            template: LimitName::parse("site:*").ok(),
            settings: LimitSettings { concurrency: Some(1), ..LimitSettings::default() },
            in_use: 1,
            resting: 0,
            external: 0,
            gauge: None,
            waiting: 2,
            over_limit: 0,
            paused_until: None,
            holders: vec![Holder {
                lease: "L1".into(),
                holder: "w1".into(),
                job: JobId::parse("j1").ok(),
                since: ago(192),
            }],
            line: vec![
                Waiter { job: JobId::parse("j2").ok(), queue: None, since: ago(65) },
                Waiter { job: None, queue: None, since: ago(3) },
            ],
        };
        let text = people(&limit, &Holders::default(), now);
        for part in ["template", "3m12s ago", "1m5s ago", "j2", "(a caller)", "3s ago"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
