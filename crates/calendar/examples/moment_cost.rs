//! Prints how long the computation of a moment takes, for decision 065:
//! `cargo run --release -p tenure-calendar --example moment_cost`.

use std::time::Instant;

use tenure_calendar::{Cron, Timing, Zone};
use tenure_core::schedule::TimingSpec;
use tenure_core::time::{Moment, Span};

const ROUNDS: u32 = 200;

fn main() {
    let now: Moment = "2026-12-01T08:00:00Z".parse().expect("a moment");
    println!("{:<16} {:<18} {:>9} {:>9} {:>9}", "zone", "cron", "a moment", "a plan", "to parse");
    for (zone, cron) in [
        ("UTC", "*/5 * * * *"),
        ("Europe/Berlin", "*/5 * * * *"),
        ("Europe/Berlin", "0 9 * * 1-5"),
        ("Europe/Berlin", "0 0 1 * *"),
        ("Europe/Berlin", "0 0 29 2 *"),
        ("Europe/Berlin", "0 0 30 2 *"),
        ("Africa/Casablanca", "0 0 15W * 5#2"),
    ] {
        let parsed = Cron::parse(cron).expect("an expression");
        let place = Zone::parse(zone).expect("a zone");
        let spec = TimingSpec {
            cron: Some(cron.to_owned()),
            zone: Some(zone.to_owned()),
            jitter: Span::from_s(30),
            ..TimingSpec::default()
        };
        let timing = Timing::of(&spec, "news-42").expect("a timing");

        let begun = Instant::now();
        let mut moments = 0;
        for _ in 0..ROUNDS {
            let mut at = now;
            for _ in 0..20 {
                moments += 1;
                let Some(next) = parsed.next_after(&place, at) else { break };
                at = next;
            }
        }
        let moment = begun.elapsed() / moments;

        let begun = Instant::now();
        for _ in 0..ROUNDS {
            std::hint::black_box(timing.plan(now, now, 1));
        }
        let plan = begun.elapsed() / ROUNDS;

        let begun = Instant::now();
        for _ in 0..ROUNDS {
            std::hint::black_box(Timing::of(&spec, "news-42")).expect("a timing");
        }
        let parse = begun.elapsed() / ROUNDS;
        println!("{zone:<16} {cron:<18} {moment:>9.1?} {plan:>9.1?} {parse:>9.1?}");
    }
    let begun = Instant::now();
    let zones = Zone::names().filter(|name| Zone::parse(name).is_ok()).count();
    println!("reading the {zones} zones once: {:.1?} each", begun.elapsed() / zones as u32);
}
