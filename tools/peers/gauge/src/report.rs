//! Prints the figures of a program at its end.

use std::fs;

use serde_json::{Map, Value};

/// Kernel ticks per second, as Linux shows them to programs on every machine.
const TICKS: f64 = 100.0;

/// Seconds of processor time that this process used; `None` without `/proc`.
pub fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name is in parentheses and may contain anything; the state follows it.
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// The peak memory of this process, in bytes; `None` without `/proc`.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Prints these figures, and the cost of the process.
pub fn report(mut figures: Map<String, Value>) {
    if let Some(cpu) = cpu_seconds() {
        figures.insert("cpu_s".to_owned(), cpu.into());
    }
    if let Some(rss) = peak_rss_bytes() {
        figures.insert("rss_bytes".to_owned(), rss.into());
    }
    println!("{}", Value::Object(figures));
}
