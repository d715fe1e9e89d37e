//! What was measured, as it is kept and printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Results {
    /// The day, in UTC.
    pub date: String,
    /// Processor, cores, memory, kernel.
    pub machine: String,
    /// How many cores others kept busy right before it.
    pub busy_before: f64,
    /// redis-server.
    pub redis: String,
    /// Whether with appendonly everysec.
    pub aof: bool,
    /// node.
    pub node: String,
    /// rustc.
    pub rustc: String,
    /// Whether with a fifth of the jobs.
    pub quick: bool,
    /// Rounds of what is measured in rounds.
    pub rounds: usize,
    /// One for each system that was asked for.
    pub rows: Vec<Row>,
}

/// A system's figures.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its version.
    pub version: String,
    /// What a reader must know.
    pub note: String,
    /// Each figure of each round.
    pub figures: BTreeMap<String, Vec<f64>>,
    /// What could not be measured, and why.
    pub skipped: Vec<String>,
}

impl Row {
    /// One more.
    pub fn add(&mut self, name: &str, value: f64) {
        self.figures.entry(name.to_owned()).or_default().push(value);
    }
    /// One more, if there is one.
    pub fn add_some(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
    /// The smallest, the middle and the largest.
    pub fn spread(&self, name: &str) -> Option<(f64, f64, f64)> {
        let mut values = self.figures.get(name)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len() / 2)?;
        Some((*values.first()?, *middle, *values.last()?))
    }
    /// The middle.
    pub fn middle(&self, name: &str) -> Option<f64> {
        self.spread(name).map(|(_, middle, _)| middle)
    }
}
