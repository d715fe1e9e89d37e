//! Goals: reads required figures from a file, and checks measurements against them.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tenure_console::exit::Failure;
use tenure_console::output::table::Table;

use super::args::Scenario;
use super::scenario::Figure;

/// A file of goals, in JSON.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// The machine and the setting that these goals are for.
    #[serde(default)]
    pub note: String,
    pub goals: Vec<Goal>,
}

/// One goal: a lower or an upper bound on a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// As `--scenario` names it.
    pub scenario: String,
    /// As the scenario names it.
    pub figure: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// A goal with its measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GoalHeld {
    #[serde(flatten)]
    pub goal: Goal,
    /// The measured value; `None` if the scenario has no such figure.
    pub measured: Option<f64>,
    /// Whether it is reached.
    pub ok: bool,
}

impl Goals {
    /// Reads a file of goals.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::file(format!("cannot read '{name}'"), &error))?;
        let goals: Goals = serde_json::from_str(&text)
            .map_err(|why| Failure::usage(format!("'{name}' is no file of goals: {why}")))?;
        goals.scenarios()?;
        Ok(goals)
    }

    /// The scenarios that must be measured, each once, in the order of the file.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let mut all = Vec::new();
        for goal in &self.goals {
            let scenario = Scenario::from_str(&goal.scenario, false).map_err(|_| {
                Failure::usage(format!("there is no scenario '{}'", goal.scenario))
                    .hint("see `tenure-lab bench --help`")
            })?;
            if !all.contains(&scenario) {
                all.push(scenario);
            }
        }
        Ok(all)
    }

    /// Compares the measured figures with the goals.
    pub fn hold(self, figures: &[Figure]) -> Vec<GoalHeld> {
        let of = |goal: &Goal| {
            let same = |one: &&Figure| one.scenario == goal.scenario && one.figure == goal.figure;
            figures.iter().find(same).map(|one| one.value)
        };
        let held = |goal: Goal| {
            let measured = of(&goal);
            let ok = measured.is_some_and(|value| {
                goal.at_least.is_none_or(|least| value >= least)
                    && goal.at_most.is_none_or(|most| value <= most)
            });
            GoalHeld { goal, measured, ok }
        };
        self.goals.into_iter().map(held).collect()
    }
}

/// A table of the results.
pub fn text(results: &[GoalHeld]) -> String {
    let mut table = Table::new(&["scenario", "figure", "goal", "measured", ""]);
    for result in results {
        let goal = &result.goal;
        let least = goal.at_least.map(|least| format!(">= {}", number(least)));
        let most = goal.at_most.map(|most| format!("<= {}", number(most)));
        table.row([
            goal.scenario.clone(),
            goal.figure.clone(),
            [least, most].into_iter().flatten().collect::<Vec<_>>().join(" and "),
            result.measured.map_or("not measured".to_owned(), number),
            if result.ok { "reached" } else { "MISSED" }.to_owned(),
        ]);
    }
    table.render("there are no goals")
}

/// A figure for display: fewer digits when it is large.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goals(text: &str) -> Goals {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_goal_is_reached_missed_or_not_measured() {
        let goals = goals(
            r#"{"goals":[
                {"scenario":"lifecycle","figure":"jobs_per_s","at_least":100},
                {"scenario":"lifecycle","figure":"jobs_per_s","at_least":101},
                {"scenario":"start","figure":"seconds","at_most":3},
                {"scenario":"start","figure":"minutes","at_most":3}]}"#,
        );
        assert_eq!(goals.scenarios().unwrap(), [Scenario::Lifecycle, Scenario::Start]);
        let figure = |scenario: &str, figure: &str, value| Figure {
            scenario: scenario.to_owned(),
            figure: figure.to_owned(),
            value,
        };
        let figures = [figure("lifecycle", "jobs_per_s", 100.0), figure("start", "seconds", 3.5)];
        let results = goals.hold(&figures);
        let ok: Vec<bool> = results.iter().map(|result| result.ok).collect();
        assert_eq!(ok, [true, false, false, false]);
        assert!(text(&results).contains("not measured"));
    }

    #[test]
    fn a_goal_of_no_scenario_is_wrong_usage() {
        let goals = goals(r#"{"goals":[{"scenario":"x","figure":"y","at_most":1}]}"#);
        assert_eq!(goals.scenarios().unwrap_err().code, tenure_console::exit::USAGE);
    }

    #[test]
    fn the_file_of_this_repository_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/goals.json");
        assert!(!Goals::read(&path).unwrap().goals.is_empty());
    }
}
