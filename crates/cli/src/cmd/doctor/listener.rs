//! Finds the folder of a server on this machine, which the server itself does not report: the process that listens at
//! its port has the store open.
//!
//! Linux lists both below /proc, for processes of the same user. Where it cannot be seen, there is no finding about the
//! disk.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// `None` if the server runs on another machine or as another user, or has no folder.
pub fn folder(port: u16) -> Option<PathBuf> {
    let lists = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let sockets: BTreeSet<String> =
        lists.into_iter().flatten().flat_map(|list| listening(port, &list)).collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.map(|process| process.path().join("fd")).find_map(|descriptors| {
        let open: Vec<PathBuf> = std::fs::read_dir(descriptors)
            .ok()?
            .flatten()
            .filter_map(|one| std::fs::read_link(one.path()).ok())
            .collect();
        let listens =
            open.iter().any(|file| file.to_str().is_some_and(|file| sockets.contains(file)));
        let store = open.iter().find(|file| file.ends_with("tenure.db"))?;
        listens.then(|| store.parent().map(PathBuf::from))?
    })
}

/// The sockets of a list that listen at a port, as descriptors name them.
fn listening(port: u16, list: &str) -> Vec<String> {
    const LISTENS: &str = "0A";
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, at) = words.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(at, 16) == Ok(port) && words.get(3) == Some(&LISTENS);
        is_it.then(|| words.get(9).map(|inode| format!("socket:[{inode}]")))?
    };
    list.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_listen_at_the_port_are_found() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1C03 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 123 1\n\
             1: 0100007F:1C03 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0  0 124 1\n\
             2: 0100007F:1C04 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 125 1\n";
        assert_eq!(listening(7171, list), ["socket:[123]"]);
        assert!(listening(7173, list).is_empty());
    }
}
