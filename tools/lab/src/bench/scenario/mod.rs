//! Scenarios: the figures that Tenure promises, each measured alone.

mod events;
mod flows;
mod late;
mod rate;
mod schedules;
mod size;
mod worker;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_console::exit::Failure;
use tenure_console::scratch::Scratch;

use super::args::{BenchArgs, Promise, Scenario};
use super::target::{Place, Target, Under};

/// A measured value with its scenario and its name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The scenario it belongs to.
    pub scenario: String,
    /// The name of the figure, with its unit at the end.
    pub figure: String,
    pub value: f64,
}

/// The setting of a scenario.
pub struct Setup<'a> {
    under: Under<'a>,
    time: Duration,
    waiting: u32,
}

impl Setup<'_> {
    async fn open(&self, place: Place) -> Result<Target, Failure> {
        Target::open(place, self.under).await
    }
}

/// Figures with their names.
type Figures = Vec<(&'static str, f64)>;

/// Measures the figures of one scenario.
pub async fn measure(
    args: &BenchArgs,
    scratch: Option<&Scratch>,
    scenario: Scenario,
) -> Result<Vec<Figure>, Failure> {
    let promised = args.durability.unwrap_or(Promise::Always).each();
    let durability = promised.first().copied().unwrap_or_default();
    if scratch.is_some() && scenario.is_of_a_folder() {
        let name = scenario.name();
        return Err(Failure::usage(format!(
            "the scenario '{name}' measures a folder, not a Redis"
        ))
        .hint("leave out --store"));
    }
    let setup = Setup {
        under: scratch.map_or(Under::Folder { durability, dir: args.dir.as_deref() }, Under::Redis),
        time: args.time(),
        waiting: args.waiting,
    };
    let figures = match scenario {
        Scenario::Lifecycle => rate::free(&setup).await,
        Scenario::Needs => rate::needs(&setup).await,
        Scenario::HttpBatch => rate::http(&setup, 100, 16).await,
        Scenario::HttpSingle => rate::http(&setup, 1, 64).await,
        Scenario::Memory => size::memory(&setup).await,
        Scenario::WaitingReady => rate::waiting(&setup, rate::Waiting::Ready).await,
        Scenario::WaitingBlocked => rate::waiting(&setup, rate::Waiting::Blocked).await,
        Scenario::WaitingScheduled => rate::waiting(&setup, rate::Waiting::Scheduled).await,
        Scenario::IdleNamespaces => rate::idle_namespaces(&setup).await,
        Scenario::Start => size::start(&setup).await,
        Scenario::LongPoll => late::long_poll(&setup).await,
        Scenario::Delayed => late::delayed(&setup).await,
        Scenario::Saturated => rate::saturated(&setup).await,
        Scenario::SchedulesMemory => schedules::memory(&setup).await,
        Scenario::SchedulesStart => schedules::start(&setup).await,
        Scenario::SchedulesWaiting => schedules::waiting(&setup).await,
        Scenario::SchedulesDue => schedules::due(&setup).await,
        Scenario::SchedulesBacklog => schedules::backlog(&setup).await,
        Scenario::SchedulesSync => schedules::sync(&setup).await,
        Scenario::Flows => flows::measure(&setup).await,
        Scenario::Events => events::measure(&setup).await,
        Scenario::Worker => worker::measure(&setup, Place::InProcess).await,
        Scenario::WorkerHttp => worker::measure(&setup, Place::Http).await,
    }?;
    let scenario = scenario.name();
    let figure = |(name, value): (&str, f64)| Figure {
        scenario: scenario.clone(),
        figure: name.to_owned(),
        value,
    };
    Ok(figures.into_iter().map(figure).collect())
}

/// The median; the upper one of two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
