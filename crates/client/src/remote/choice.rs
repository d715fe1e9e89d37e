//! Chooses the server for the next call: the only place of that rule, which the Python client shares.
//!
//! A client stays with a server that works. If that one cannot be reached, or does not serve, it moves to the next of
//! the list. A server that forwarded a call names the leader of the store; a client that knows several servers goes to
//! the leader from then on, never to a weaker scheme. It decides without a socket and without reading a clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::search::MayCall;
use crate::url::{ServerUrl, StoreUrl};

/// A leader that could not be reached is not called again for this long, even if a server names it.
const AVOIDED: Duration = Duration::from_secs(30);

/// Where the addresses of the servers come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KnownFrom {
    /// Their addresses were given.
    List,
    /// They are looked up, and again when all of the found ones fail. Only permitted ones are called.
    Search(MayCall),
}

/// The servers of one client.
pub(super) struct ServerChoice {
    from: KnownFrom,
    /// In the order in which they are tried.
    listed: Vec<ServerUrl>,
    /// Whether all of them are sent a token.
    shows_token: bool,
    /// The server of the next call; `None` if the servers must be looked up first.
    at: Option<ServerUrl>,
    /// The server of the list that named the leader.
    way_back: Option<ServerUrl>,
    /// Servers that could not be reached, and until when they are not called even if a server names them.
    avoided: HashMap<ServerUrl, Instant>,
}

impl ServerChoice {
    pub fn new(from: KnownFrom, listed: Vec<ServerUrl>, shows_token: bool) -> Self {
        let at = listed.first().cloned();
        ServerChoice { from, listed, shows_token, at, way_back: None, avoided: HashMap::new() }
    }

    /// Whether there may be another server to try.
    pub fn are_several(&self) -> bool {
        matches!(self.from, KnownFrom::Search(_)) || self.listed.len() > 1
    }

    /// The server of the next call; `None` if the servers must be looked up first.
    pub fn at(&self) -> Option<&ServerUrl> {
        self.at.as_ref()
    }

    /// Whether this server may be called again: connections to the others are closed.
    pub fn knows(&self, server: &ServerUrl) -> bool {
        self.at.as_ref() == Some(server) || self.listed.contains(server)
    }

    /// Adds the servers of a search. Those that could not be reached a moment ago are tried last.
    pub fn found(&mut self, mut servers: Vec<ServerUrl>, now: Instant) {
        if self.at.is_some() {
            // Another call has found some already.
            return;
        }
        servers.sort_by_key(|server| self.is_avoided(server, now));
        self.at = servers.first().cloned();
        self.listed = servers;
    }

    /// A server could not be reached, or its answer was lost.
    pub fn lost(&mut self, server: &ServerUrl, now: Instant) {
        self.avoided.retain(|_, until| *until > now);
        self.avoided.insert(server.clone(), now + AVOIDED);
        self.leave(server);
    }

    /// A server says that it does not serve, or a proxy says that the server is not there.
    pub fn leave(&mut self, server: &ServerUrl) {
        if self.at.as_ref() != Some(server) {
            return;
        }
        let first = || self.listed.first().cloned();
        self.at = match (self.listed.iter().position(|one| one == server), self.from) {
            (None, _) => self.way_back.take().filter(|back| self.listed.contains(back)).or(first()),
            (Some(place), KnownFrom::List) => self.listed.get(place + 1).cloned().or(first()),
            (Some(place), KnownFrom::Search(_)) => self.listed.get(place + 1).cloned(),
        };
    }

    /// The answer of a server named the leader of the store.
    pub fn named(&mut self, server: &ServerUrl, owner: &str, now: Instant) {
        // A single address may be that of a load balancer, whose servers are unreachable from here.
        if !self.are_several() || self.at.as_ref() != Some(server) {
            return;
        }
        let Ok(StoreUrl::Server(owner)) = owner.parse() else { return };
        if owner == *server || self.is_weaker(server, &owner) || self.is_avoided(&owner, now) {
            return;
        }
        if self.listed.contains(server) {
            self.way_back = Some(server.clone());
        }
        self.at = Some(owner);
    }

    fn is_avoided(&self, server: &ServerUrl, now: Instant) -> bool {
        self.avoided.get(server).is_some_and(|until| *until > now)
    }

    /// Whether calls there would be less safe than to the server that this client was given.
    fn is_weaker(&self, server: &ServerUrl, owner: &ServerUrl) -> bool {
        if let KnownFrom::Search(may_call) = self.from
            && !may_call.takes(owner)
        {
            return true;
        }
        let some_are_tls = || self.listed.iter().any(|one| one.tls);
        !owner.tls && (server.tls || (self.shows_token && some_are_tls()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> ServerUrl {
        match text.parse() {
            Ok(StoreUrl::Server(server)) => server,
            other => panic!("{text} is no server: {other:?}"),
        }
    }

    fn servers(texts: &[&str]) -> Vec<ServerUrl> {
        texts.iter().map(|text| server(text)).collect()
    }

    fn of_list(texts: &[&str], shows_token: bool) -> ServerChoice {
        ServerChoice::new(KnownFrom::List, servers(texts), shows_token)
    }

    fn at(choice: &ServerChoice) -> String {
        choice.at().map_or("nowhere".to_owned(), ServerUrl::to_string)
    }

    #[test]
    fn a_left_server_is_followed_by_the_next_one_in_a_circle() {
        let now = Instant::now();
        let mut choice = of_list(&["a:1", "b:1"], false);
        for (leaves, then) in [("b:1", "a:1"), ("a:1", "b:1"), ("a:1", "b:1"), ("b:1", "a:1")] {
            choice.leave(&server(leaves));
            assert_eq!(at(&choice), format!("http://{then}"));
        }
        let mut choice = ServerChoice::new(KnownFrom::Search(MayCall::All), Vec::new(), false);
        assert_eq!(at(&choice), "nowhere");
        choice.found(servers(&["a:1", "b:1"]), now);
        choice.lost(&server("a:1"), now);
        assert_eq!(at(&choice), "http://b:1");
        // Another call looked them up too.
        choice.found(servers(&["c:1"]), now);
        choice.lost(&server("b:1"), now);
        assert_eq!(at(&choice), "nowhere");
        choice.found(servers(&["a:1", "c:1", "b:1"]), now);
        assert_eq!(at(&choice), "http://c:1");
    }

    #[test]
    fn a_lost_leader_is_followed_again_when_named_after_30_s() {
        let begun = Instant::now();
        let mut choice = of_list(&["gone:1", "a:1"], false);
        choice.lost(&server("gone:1"), begun);
        choice.named(&server("a:1"), "http://c:1", begun);
        assert_eq!(at(&choice), "http://c:1");
        choice.lost(&server("c:1"), begun);
        assert_eq!(at(&choice), "http://a:1");
        for (ms, then) in [(0, "http://a:1"), (29_900, "http://a:1"), (30_100, "http://c:1")] {
            choice.named(&server("a:1"), "http://c:1", begun + Duration::from_millis(ms));
            assert_eq!(at(&choice), then, "after {ms} ms");
        }
        // A server that only does not serve is called again as soon as another names it.
        choice.leave(&server("c:1"));
        assert_eq!(at(&choice), "http://a:1");
        choice.named(&server("a:1"), "http://c:1", begun + Duration::from_secs(31));
        assert_eq!(at(&choice), "http://c:1");
    }

    #[test]
    fn nobody_is_led_to_a_weaker_scheme_or_to_nonsense() {
        for (listed, asked, owner, shows_token, follows) in [
            (["http://a:1", "http://b:1"], "http://a:1", "http://c:1", true, true),
            (["http://a:1", "http://b:1"], "http://a:1", "https://c:1", true, true),
            (["https://a:1", "https://b:1"], "https://a:1", "https://c:1", true, true),
            (["https://a:1", "https://b:1"], "https://a:1", "http://c:1", false, false),
            (["http://a:1", "https://b:1"], "http://a:1", "http://c:1", true, false),
            (["http://a:1", "https://b:1"], "http://a:1", "http://c:1", false, true),
            (["http://a:1", "http://b:1"], "http://a:1", "http://ann:x@c:1", false, false),
            (["http://a:1", "http://b:1"], "http://a:1", "file:/etc/passwd", false, false),
            (["http://a:1", "http://b:1"], "http://a:1", "http://c:1,http://d:1", false, false),
            (["http://a:1", "http://b:1"], "http://a:1", "", false, false),
            // A late answer, from a server that was left meanwhile.
            (["http://a:1", "http://b:1"], "http://b:1", "http://c:1", false, false),
        ] {
            let mut choice = of_list(&listed, shows_token);
            let before = at(&choice);
            choice.named(&server(asked), owner, Instant::now());
            assert_eq!(at(&choice) != before, follows, "{listed:?} {owner:?}");
        }
    }

    #[test]
    fn a_found_server_leads_only_to_servers_that_may_be_called() {
        let here = "http://127.0.0.1:1";
        for (may_call, owner, follows) in [
            (MayCall::All, "http://c:1", true),
            (MayCall::TlsAndLoopback, "http://c:1", false),
            (MayCall::TlsAndLoopback, "http://127.0.0.1:2", true),
            (MayCall::TlsAndLoopback, "https://c:1", true),
            (MayCall::Tls, "http://127.0.0.1:2", false),
        ] {
            let mut choice = ServerChoice::new(KnownFrom::Search(may_call), Vec::new(), true);
            choice.found(servers(&[here]), Instant::now());
            choice.named(&server(here), owner, Instant::now());
            assert_eq!(at(&choice) != here, follows, "{may_call:?} {owner}");
        }
    }

    #[test]
    fn a_client_of_one_address_stays_there() {
        let mut choice = of_list(&["a:1"], false);
        choice.named(&server("a:1"), "http://c:1", Instant::now());
        choice.lost(&server("a:1"), Instant::now());
        assert_eq!(at(&choice), "http://a:1");
    }
}
