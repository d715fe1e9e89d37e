//! Figures of this process, from /proc; other systems have none.

use std::fs;

/// Linux counts processor time in these units, whatever its own timer does.
const TICKS_A_SECOND: f64 = 100.0;

/// Figures of the operating system.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub open_files: u64,
    /// The start of the process, in seconds since 1970.
    pub start: f64,
}

/// Reads the figures; `None` where there is no /proc.
pub(crate) fn read() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may contain anything, and ends with the last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok().map(|n| n / TICKS_A_SECOND);
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(Process {
        cpu_seconds: ticks(11)? + ticks(12)?,
        resident_bytes: kib * 1024,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        start: boot.trim().parse::<f64>().ok()? + ticks(19)?,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_system_tells_of_this_process() {
        let process = super::read().unwrap();
        assert!(process.resident_bytes > 100_000 && process.open_files > 2, "{process:?}");
        assert!(process.start > 1e9, "{process:?}");
    }
}
