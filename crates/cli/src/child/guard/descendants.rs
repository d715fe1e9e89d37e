//! The processes that live below another: its children, their children, and so on.
//!
//! A process that left its group or session is found all the same, as long as its parents live or the
//! process above adopts orphans. It finds, and signals nothing.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;

use nix::unistd::Pid;

/// Every process below this one that still runs. Empty where the system does not show its processes.
#[cfg(target_os = "linux")]
pub fn of(above: Pid) -> Vec<Pid> {
    below(vec![above.as_raw()], &mut all()).into_iter().skip(1).map(Pid::from_raw).collect()
}

/// The children of a process that are not among `others`, each with all below it that still runs. A child that has ended
/// and that nobody has waited for is among them.
#[cfg(target_os = "linux")]
pub fn children_except(of: Pid, others: &BTreeSet<i32>) -> (Vec<Pid>, Vec<Pid>) {
    let mut all = all();
    let strange = |one: &Process| one.parent == of.as_raw() && !others.contains(&one.pid);
    let children: Vec<i32> = all.iter().filter(|one| strange(one)).map(|one| one.pid).collect();
    let below = below(children.clone(), &mut all);
    let pids = |list: Vec<i32>| list.into_iter().map(Pid::from_raw).collect();
    (pids(children), pids(below))
}

/// A process, as the system lists it.
#[cfg(target_os = "linux")]
struct Process {
    pid: i32,
    parent: i32,
    /// It has not ended.
    runs: bool,
}

#[cfg(target_os = "linux")]
fn all() -> Vec<Process> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(process)
        .collect()
}

/// These, and all running processes below them, which are removed from `among`.
#[cfg(target_os = "linux")]
fn below(mut found: Vec<i32>, among: &mut Vec<Process>) -> Vec<i32> {
    let mut looked = 0;
    while looked < found.len() {
        let parent = found[looked];
        looked += 1;
        among.retain(|one| {
            if one.parent == parent && one.runs {
                found.push(one.pid);
            }
            one.parent != parent
        });
    }
    found
}

#[cfg(target_os = "linux")]
fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in brackets, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, runs: state != "Z" && state != "X" })
}

/// Every process below this one that still runs. Empty where the system does not show its processes.
#[cfg(not(target_os = "linux"))]
pub fn of(_above: Pid) -> Vec<Pid> {
    Vec::new()
}
