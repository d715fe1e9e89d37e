//! How much memory this process may have: the machine's, or less if a container says so.

use std::fs::read_to_string;
use std::path::Path;

use crate::args::serve::ServeArgs;

/// Bodies and answers in flight may take one part in this many of the memory.
const PART: u64 = 8;
/// Never less by default: one call may need this much.
const LEAST: u64 = 32 << 20;
/// Used if the memory is not known.
const UNKNOWN: u64 = 4 << 30;

/// Bytes of bodies and unread answers of a server that is started so.
pub fn of(args: &ServeArgs) -> u64 {
    args.max_in_flight_bytes.unwrap_or_else(in_flight_bytes)
}

/// Bytes of bodies and answers that may be in flight if nobody says how many.
fn in_flight_bytes() -> u64 {
    (memory(Path::new("/")).unwrap_or(UNKNOWN) / PART).max(LEAST)
}

/// The least of what the machine has and what each control group above this process allows.
fn memory(root: &Path) -> Option<u64> {
    let machine = read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| limit(root, line));
    limits.chain(machine).min()
}

/// Parses `MemTotal:       24641532 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least limit of a group and of those that it is in. `line` is `0::/a/b` (version 2) or
/// `7:memory:/a/b`.
fn limit(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    let (top, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        other if other.split(',').any(|one| one == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let group = Path::new(group.trim_start_matches('/'));
    // Inside of a container the group's own path is often that of the host, and the mounted folder
    // is the group itself: then only the top is there.
    let above = group.ancestors().map(|group| root.join(top).join(group).join(file));
    above.filter_map(|file| read_to_string(file).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(memory(root), None);
        create_dir_all(root.join("proc/self")).unwrap();
        write(root.join("proc/meminfo"), "MemTotal:  1000 kB\nMemFree: 1 kB\n").unwrap();
        assert_eq!(memory(root), Some(1_024_000));
        write(root.join("proc/self/cgroup"), "0::/a/b\n").unwrap();
        assert_eq!(memory(root), Some(1_024_000));
        create_dir_all(root.join("sys/fs/cgroup/a/b")).unwrap();
        write(root.join("sys/fs/cgroup/a/b/memory.max"), "max\n").unwrap();
        write(root.join("sys/fs/cgroup/a/memory.max"), "500000\n").unwrap();
        assert_eq!(memory(root), Some(500_000));
        create_dir_all(root.join("sys/fs/cgroup/memory")).unwrap();
        write(root.join("sys/fs/cgroup/memory/memory.limit_in_bytes"), "400000").unwrap();
        write(root.join("proc/self/cgroup"), "7:cpu:/x\n8:memory:/gone\n").unwrap();
        assert_eq!(memory(root), Some(400_000));
    }
}
