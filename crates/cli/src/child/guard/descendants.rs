//! The processes that live below another: its children, their children, and so on.
//!
//! A process that left its group or session is found all the same, as long as its parents live or the
//! process above adopts orphans. It finds, and signals nothing.

use nix::unistd::Pid;

/// Every process below this one that still runs. Empty where the system does not show its processes.
#[cfg(target_os = "linux")]
pub fn of(above: Pid) -> Vec<Pid> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut others: Vec<(i32, i32)> = all
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found = vec![above.as_raw()];
    let mut looked = 0;
    while looked < found.len() {
        let parent = found[looked];
        looked += 1;
        others.retain(|(pid, its)| {
            if *its == parent {
                found.push(*pid);
            }
            *its != parent
        });
    }
    found.into_iter().skip(1).map(Pid::from_raw).collect()
}

/// The parent of a process; `None` if it has ended, also if nobody has waited for it yet.
#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in brackets, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

/// Every process below this one that still runs. Empty where the system does not show its processes.
#[cfg(not(target_os = "linux"))]
pub fn of(_above: Pid) -> Vec<Pid> {
    Vec::new()
}
