//! The servers that are or recently were registered, with their addresses.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tenure_core::time::Span;
use tenure_election::ids::ServerId;
use tenure_redis::{FORMAT, ServerEntry, StoreServers};

use crate::place::FollowerHealth;

/// The release of this server.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// A server without a registration is remembered for this long: the store may have lost the registration.
const REMEMBERED_FOR: Span = Span::from_s(60);

struct KnownServer {
    entry: ServerEntry,
    /// It was the previous process at the same address, so it is gone: it is asked, and gets nothing.
    is_predecessor: bool,
    /// The time of its last report, by the store's clock, in microseconds.
    said: u64,
    /// The time since which it is not registered, by the own monotonic clock.
    missing_since: Option<Span>,
}

/// Keyed by the random ids of the processes.
#[derive(Default)]
pub(crate) struct KnownServers(BTreeMap<ServerId, KnownServer>);

impl KnownServer {
    /// True if the store could be handed over to it, and a snapshot could be requested from it.
    fn is_standby(&self) -> bool {
        self.missing_since.is_none() && !self.is_predecessor
    }
}

impl KnownServers {
    /// Takes the registrations in the store at `at`, except this server's.
    pub fn read(&mut self, me: &ServerEntry, all: &StoreServers, at: Span) {
        for known in self.0.values_mut() {
            known.missing_since.get_or_insert(at);
        }
        for (said, entry) in all.servers.iter().filter(|(_, entry)| entry.id != me.id) {
            let is_predecessor = entry.url == me.url;
            let (entry, said) = (entry.clone(), *said);
            let known = KnownServer { entry, is_predecessor, said, missing_since: None };
            self.0.insert(ServerId(known.entry.id), known);
        }
        let is_remembered = |known: &KnownServer| {
            known.missing_since.is_none_or(|since| at.us() < since.us() + REMEMBERED_FOR.us())
        };
        self.0.retain(|_, known| is_remembered(known));
    }

    pub fn ids(&self) -> Vec<ServerId> {
        self.0.keys().copied().collect()
    }

    /// The highest entry that a server has applied.
    pub fn applied(&self) -> u64 {
        self.0.values().map(|known| known.entry.applied).max().unwrap_or(0)
    }

    pub fn url(&self, id: ServerId) -> Option<&str> {
        self.0.get(&id).map(|known| known.entry.url.as_str())
    }

    /// The followers' distances behind the entry `end`.
    pub fn standbys(&self, end: u64) -> Vec<FollowerHealth> {
        let health = |entry: &ServerEntry| FollowerHealth {
            url: entry.url.clone(),
            behind: end.saturating_sub(entry.applied),
        };
        self.registered().into_iter().map(health).collect()
    }

    /// The other servers, each address once, with its latest process.
    pub fn registered(&self) -> Vec<&ServerEntry> {
        let mut by_url: BTreeMap<&str, &KnownServer> = BTreeMap::new();
        for known in self.0.values().filter(|known| known.is_standby()) {
            match by_url.entry(&known.entry.url) {
                Entry::Vacant(vacant) => drop(vacant.insert(known)),
                Entry::Occupied(mut occupied) if occupied.get().said < known.said => {
                    occupied.insert(known);
                }
                Entry::Occupied(_) => {}
            }
        }
        by_url.into_values().map(|known| &known.entry).collect()
    }

    /// The follower whose rows are furthest; among equals the one with the latest report.
    pub fn furthest(&self) -> Option<ServerId> {
        self.furthest_of(|_| true)
    }

    /// The same among followers that have rows and are of this release: another release may write its rows otherwise.
    pub fn furthest_with_rows(&self, release: &str) -> Option<ServerId> {
        self.furthest_of(|entry| entry.release == release && entry.applied > 0)
    }

    fn furthest_of(&self, counts: impl Fn(&ServerEntry) -> bool) -> Option<ServerId> {
        // R18: a server that cannot read this format only forwards calls.
        let reads = |entry: &ServerEntry| entry.format >= FORMAT;
        let counts =
            |known: &KnownServer| known.is_standby() && reads(&known.entry) && counts(&known.entry);
        let among = self.0.iter().filter(|(_, known)| counts(known));
        let furthest = among.max_by_key(|(_, known)| (known.entry.applied, known.said));
        furthest.map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::secret::Secret;

    use super::*;

    fn me() -> ServerEntry {
        let (url, release) = ("http://1".to_owned(), "1".to_owned());
        ServerEntry { id: 1, url, release, format: 1, applied: 0 }
    }

    #[test]
    fn a_former_process_at_this_address_is_asked_but_is_no_follower() {
        let before = ServerEntry { id: 2, applied: 9, ..me() };
        let other = ServerEntry { id: 3, url: "http://3".to_owned(), applied: 5, ..me() };
        for (others, furthest) in
            [(vec![before.clone(), other], Some(ServerId(3))), (vec![before], None)]
        {
            let ids: Vec<ServerId> = others.iter().map(|entry| ServerId(entry.id)).collect();
            let servers = others.into_iter().map(|entry| (9, entry)).collect();
            let all = StoreServers { secret: Secret::new("x"), servers };
            let mut known = KnownServers::default();
            known.read(&me(), &all, Span::ZERO);
            assert_eq!(known.ids(), ids, "it may have owned the store at a later epoch");
            assert_eq!(known.url(ServerId(2)), Some("http://1"));
            assert_eq!((known.furthest(), known.furthest_with_rows("1")), (furthest, furthest));
            let standbys: Vec<String> = known.standbys(9).into_iter().map(|one| one.url).collect();
            assert_eq!(
                standbys,
                furthest.map(|_| "http://3".to_owned()).into_iter().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_server_that_was_started_again_is_listed_once() {
        let process = |id, applied| ServerEntry { id, url: "http://2".to_owned(), applied, ..me() };
        // The random order of the ids does not matter.
        for (before, now) in [(2, 3), (3, 2)] {
            let servers = vec![(5, process(before, 10)), (9, process(now, 90))];
            let mut known = KnownServers::default();
            known.read(&me(), &StoreServers { secret: Secret::new("x"), servers }, Span::ZERO);
            let url = "http://2".to_owned();
            assert_eq!(known.standbys(100), [FollowerHealth { url, behind: 10 }]);
        }
    }

    #[test]
    fn a_server_is_remembered_for_a_minute_after_its_registration() {
        let server = |id, said| {
            let (url, release) = (format!("http://{id}"), "0".to_owned());
            (said, ServerEntry { id, url, release, format: 1, applied: 10 - said })
        };
        let all = |servers| StoreServers { secret: Secret::new("x"), servers };
        let mut known = KnownServers::default();
        known.read(&me(), &all(vec![server(1, 9), server(2, 5), server(3, 7)]), Span::ZERO);
        assert_eq!(known.ids(), [ServerId(2), ServerId(3)]);
        assert_eq!(known.furthest(), Some(ServerId(2)), "the other spoke later, and is behind");
        for (at, left) in [(10, 2), (69, 2), (71, 1)] {
            known.read(&me(), &all(vec![server(2, 6)]), Span::from_s(at));
            assert_eq!(known.ids().len(), left, "{at} s");
            assert_eq!(known.furthest(), Some(ServerId(2)));
        }
    }

    #[test]
    fn snapshots_are_left_to_a_server_of_the_same_release_with_rows() {
        let server = |id, release: &str, applied| {
            let (url, release) = (format!("http://{id}"), release.to_owned());
            (9, ServerEntry { id, url, release, format: 1, applied })
        };
        let servers = vec![server(1, "2", 9), server(2, "1", 9), server(3, "2", 0)];
        let mut known = KnownServers::default();
        let all = StoreServers { secret: Secret::new("x"), servers };
        known.read(&me(), &all, Span::ZERO);
        assert_eq!(known.furthest(), Some(ServerId(2)));
        assert_eq!(known.furthest_with_rows("2"), None, "one has no rows, the other is older");
        assert_eq!(known.furthest_with_rows("1"), Some(ServerId(2)));
    }

    #[test]
    fn nothing_is_handed_to_a_server_that_does_not_read_the_format() {
        let server = |id, format, applied| {
            let (url, release) = (format!("http://{id}"), "2".to_owned());
            (9, ServerEntry { id, url, release, format, applied })
        };
        let (older, newer) = (server(2, FORMAT - 1, 9), server(3, FORMAT + 1, 5));
        let mut known = KnownServers::default();
        let all = StoreServers { secret: Secret::new("x"), servers: vec![older, newer] };
        known.read(&me(), &all, Span::ZERO);
        assert_eq!(known.ids(), [ServerId(2), ServerId(3)], "it is one of the store all the same");
        assert_eq!(known.furthest(), Some(ServerId(3)));
        assert_eq!(known.furthest_with_rows("2"), Some(ServerId(3)));
    }
}
