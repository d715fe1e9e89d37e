//! Results of a run, as saved and printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The results of a whole run.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Results {
    /// The day, in UTC.
    pub date: String,
    /// Processor, cores, memory, kernel.
    pub machine: String,
    /// How many cores other processes kept busy right before it.
    pub busy_before: f64,
    /// The version of redis-server.
    pub redis: String,
    /// Whether Redis ran with appendonly everysec.
    pub aof: bool,
    /// The version of node.
    pub node: String,
    /// The version of rustc.
    pub rustc: String,
    /// Whether it ran with a fifth of the jobs.
    pub quick: bool,
    /// Number of rounds, for workloads that are measured in rounds.
    pub rounds: usize,
    /// One for each selected system.
    pub rows: Vec<Row>,
}

/// The figures of one system.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
pub struct Row {
    pub name: String,
    pub title: String,
    pub version: String,
    /// A note for the reader of the table.
    pub note: String,
    /// Whether Redis has the jobs of the system.
    #[serde(skip)]
    pub is_on_redis: bool,
    /// Each figure of each round.
    pub figures: BTreeMap<String, Vec<f64>>,
    /// The workloads that could not be measured, with the reason.
    pub skipped: Vec<String>,
}

impl Row {
    /// Adds the value of one round.
    pub fn add(&mut self, name: &str, value: f64) {
        self.figures.entry(name.to_owned()).or_default().push(value);
    }
    /// Adds a figure of Redis in one round, unless the system keeps its jobs elsewhere.
    pub fn add_of_redis(&mut self, name: &str, value: f64) {
        if self.is_on_redis {
            self.add(name, value);
        }
    }
    /// Adds the value of one round, if it has one.
    pub fn add_some(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
    /// The smallest value, the median and the largest.
    pub fn spread(&self, name: &str) -> Option<(f64, f64, f64)> {
        let mut values = self.figures.get(name)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len() / 2)?;
        Some((*values.first()?, *middle, *values.last()?))
    }
    /// The median of the rounds.
    pub fn middle(&self, name: &str) -> Option<f64> {
        self.spread(name).map(|(_, middle, _)| middle)
    }
}
