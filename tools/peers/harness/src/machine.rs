//! Describes this machine by its own files.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The first line that a program prints, if it ends well.
pub fn first_line(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The version of a tool, or a note that it is missing.
pub fn version(program: &str) -> String {
    let missing = || format!("({program} is not there)");
    first_line(program, &["--version"]).unwrap_or_else(missing).trim_start_matches('v').to_owned()
}

/// Today's date, in UTC.
pub fn date() -> String {
    first_line("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default()
}

/// How many cores others keep busy: measured for some seconds in which we do nothing. 0 if the
/// kernel does not report it.
pub fn busy_cores() -> f64 {
    let before = ticks();
    std::thread::sleep(Duration::from_secs(3));
    let after = ticks();
    match (before, after) {
        (Some((busy, all)), Some((busy_then, all_then))) if all_then > all => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            (busy_then - busy) / (all_then - all) * cores as f64
        }
        _ => 0.0,
    }
}

/// Busy ticks of all cores since the start, and all ticks.
fn ticks() -> Option<(f64, f64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
    // Idle, and idle while waiting for a disk.
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    let all: f64 = ticks.iter().take(8).sum();
    Some((all - idle, all))
}

/// Processor, cores, memory and kernel.
pub fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field(&cpu, "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&memory, "MemTotal").and_then(|kib| kib.split(' ').next()?.parse::<f64>().ok());
    let gib = kib.unwrap_or(0.0) / 1024.0 / 1024.0;
    let kernel = first_line("uname", &["-sr"]).unwrap_or_default();
    format!("{cores} cores of {model}, {gib:.0} GiB, {kernel}")
}
