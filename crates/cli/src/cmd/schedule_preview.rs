//! `tenure schedule preview`: the next moments of a timing. It asks no store, so every error in the timing is wrong
//! usage, which the command line sees itself.

use tenure_calendar::{Preview, Zone};
use tenure_core::decode::PreviewAsked;
use tenure_core::refusal::Refusal;
use tenure_core::schedule::TimingSpec;
use tenure_core::time::{Moment, Span};

use crate::args::schedules::{PreviewArgs, Start};
use crate::exit::{Failure, USAGE};
use crate::output::Output;
use crate::output::clock;
use crate::output::table::when;

/// Prints the moments, or with `--json` the answer of the HTTP call.
pub fn run(out: Output, args: &PreviewArgs) -> Result<(), Failure> {
    let now = clock::now();
    let timing = args.timing.spec(now);
    if timing.every.is_some() && timing.starts_at.is_none() && args.id.is_none() {
        return Err(Failure::usage("an interval without --starts-at needs the ID of its schedule")
            .hint(
                "the id decides the phase of the interval: tenure schedule preview ID --every D",
            ));
    }
    // A start that is now may be the first moment, as it is for a schedule.
    let from = match args.timing.starts_at {
        Some(Start::Now) => now.minus(Span::from_us(1)),
        _ => now,
    };
    let request = PreviewAsked { id: args.id.clone(), timing, from: Some(from), count: args.count };
    let preview = Preview::of(&request, now).map_err(wrong_usage)?;
    out.answer(&preview, |preview| moments(&preview.next, &request.timing, now))
}

fn wrong_usage(no: Refusal) -> Failure {
    Failure { code: USAGE, ..Failure::from(no) }
}

/// A line for each moment, by the wall clock of the timing's zone; of the first one also how far ahead it is. A zone that
/// this release does not know, but a newer server does, is shown as UTC.
pub fn moments(moments: &[Moment], timing: &TimingSpec, now: Moment) -> String {
    let zone = timing.zone.as_deref().and_then(|name| Zone::parse(name).ok());
    let zone = zone.unwrap_or_else(Zone::utc);
    let mut text = String::new();
    for (at, moment) in moments.iter().enumerate() {
        text.push_str(&zone.wall_clock(*moment).to_string());
        if at == 0 {
            text.push_str("   ");
            text.push_str(&when(*moment, now));
        }
        text.push('\n');
    }
    text
}
