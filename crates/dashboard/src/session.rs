//! Admits browsers to the pages: by a cookie, which stands for one of the server's tokens and does not contain it.
//!
//! The cookie is an end, the name of the token (empty for a token with all rights) and a signature of both, with a key
//! that belongs to the token. So it is valid at every server with the same token and after restarts, it ends when that
//! token is no longer valid, it has the grants that the token has now, and nothing is kept here
//! (docs/decisions/088-a-signed-session.md).

use std::sync::Arc;

use hmac::{Hmac, Mac};
use http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use sha2::Sha256;
use tenure_core::secret::Secret;
use tenure_core::time::{Moment, Span};
use tenure_server::{Caller, Tokens};

/// After this the token is needed again.
const SESSION: Span = Span::from_s(12 * 60 * 60);
/// The purpose of the key: the token signs nothing else with this text.
const PURPOSE: &[u8] = b"tenure dashboard session 2";

/// Checks tokens and sessions. Without tokens every caller may pass, since the server then answers loopback names
/// alone.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    tokens: Tokens,
}

fn signed(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(key) else {
        unreachable!("a key of any length is taken")
    };
    mac.update(text);
    mac
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

impl Door {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Door { tokens }
    }

    /// Whether there is a token to show.
    pub(crate) fn is_locked(&self) -> bool {
        self.tokens.are_asked_for()
    }

    /// The caller that shows this token; `None` if it is not valid.
    pub(crate) fn opens(&self, token: &str) -> Option<Arc<Caller>> {
        if self.is_locked() { self.tokens.who(token.as_bytes()) } else { Some(Caller::anyone()) }
    }

    /// The caller that the cookie of a request lets in.
    pub(crate) fn lets_in(&self, headers: &HeaderMap, now: Moment) -> Option<Arc<Caller>> {
        if !self.is_locked() {
            return Some(Caller::anyone());
        }
        let name = cookie_name(headers);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut shown = cookies.flat_map(|all| all.split(';')).filter_map(|one| {
            let (key, value) = one.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        shown.find_map(|value| {
            let shown = Shown::read(value)?;
            let signers = self.tokens.signers(shown.name).into_iter();
            signers
                .filter(|(_, token)| shown.is_signed(token, now))
                .map(|(caller, _)| caller)
                .next()
        })
    }

    /// The header that begins a session of this caller, whom the door has let in; `None` if its token was removed
    /// meanwhile. `is_secure`: the browser came by TLS, and the cookie must never leave without it.
    pub(crate) fn begins(
        &self,
        caller: &Arc<Caller>,
        headers: &HeaderMap,
        is_secure: bool,
        now: Moment,
    ) -> Option<String> {
        let end = now.plus(SESSION).us();
        let text = if self.is_locked() {
            let mut signers = self.tokens.signers(caller.name()).into_iter();
            let (_, token) = signers.find(|(signer, _)| Arc::ptr_eq(signer, caller))?;
            let name = if caller.is_listed() { caller.name() } else { "" };
            let text = format!("{end}.{name}");
            format!("{text}.{}", hex(&signature(&token, &text).finalize().into_bytes()))
        } else {
            format!("{end}..")
        };
        Some(set_cookie(headers, &text, SESSION.us() / 1_000_000, is_secure))
    }

    /// The header that ends the session.
    pub(crate) fn ends(headers: &HeaderMap, is_secure: bool) -> String {
        set_cookie(headers, "", 0, is_secure)
    }
}

fn signature(token: &Secret, text: &str) -> Hmac<Sha256> {
    let key = signed(token.reveal().as_bytes(), PURPOSE).finalize().into_bytes();
    signed(&key, text.as_bytes())
}

/// The parts of a cookie.
struct Shown<'c> {
    /// The parts that are signed.
    text: &'c str,
    end: Moment,
    name: &'c str,
    mac: Vec<u8>,
}

impl<'c> Shown<'c> {
    fn read(value: &'c str) -> Option<Self> {
        let (text, mac) = value.rsplit_once('.')?;
        let (end, name) = text.split_once('.')?;
        Some(Shown { text, end: Moment::from_us(end.parse().ok()?), name, mac: unhex(mac)? })
    }

    fn is_signed(&self, token: &Secret, now: Moment) -> bool {
        self.end > now && signature(token, self.text).verify_slice(&self.mac).is_ok()
    }
}

/// Browsers send a cookie to every port of a host: servers on one host must not end each other's sessions.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| is_number(port));
    format!("tenure_{}", port.unwrap_or("web"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 5 && text.bytes().all(|c| c.is_ascii_digit())
}

fn set_cookie(headers: &HeaderMap, value: &str, seconds: u64, is_secure: bool) -> String {
    let name = cookie_name(headers);
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Whether a form was sent by a page of this server. A browser says so in a header; otherwise the origin decides.
pub(crate) fn is_own_form(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    let place = origin.split_once("://").map(|(_, place)| place);
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use tenure_core::access::{GivenGrants, Grants};
    use tenure_server::{ListedToken, token_hash};

    use super::*;

    const NOW: Moment = Moment::from_us(1_800_000_000_000_000);

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn door(token: &str) -> Door {
        Door::new(Tokens::of(vec![Secret::new(token)]))
    }

    fn cookie(door: &Door, token: &str) -> String {
        let caller = door.opens(token).unwrap();
        let set = door.begins(&caller, &headers(&[("host", "localhost:7171")]), false, NOW);
        set.unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn only_a_cookie_signed_by_this_token_lets_in_until_its_end() {
        let own = door("one");
        let good = cookie(&own, "one");
        let (name, value) = good.split_once('=').unwrap();
        let (end, signature) = value.split_once('.').unwrap();
        let later = format!("{name}={}0.{signature}", end);
        for (shown, at, may) in [
            (good.as_str(), NOW, true),
            (&format!("a=b; {good}; c=d"), NOW, true),
            (&good, NOW.plus(SESSION), false),
            (&cookie(&door("two"), "two"), NOW, false),
            (&later, NOW, false),
            (&format!("{name}={end}."), NOW, false),
            (&format!("{name}={end}"), NOW, false),
            (&format!("{name}=one"), NOW, false),
            (&good.replace("7171", "7172"), NOW, false),
            ("", NOW, false),
        ] {
            let headers = headers(&[("host", "localhost:7171"), ("cookie", shown)]);
            assert_eq!(own.lets_in(&headers, at).is_some(), may, "{shown}");
        }
        assert!(!good.contains("one"));
        assert!(Door::new(Tokens::default()).lets_in(&HeaderMap::new(), NOW).is_some());
    }

    #[test]
    fn a_session_ends_with_the_token_that_began_it() {
        let secrets = |all: [&str; 2]| all.map(Secret::new).to_vec();
        let door = Door::new(Tokens::of(secrets(["old", "new"])));
        let [by_old, by_new] = ["old", "new"].map(|token| cookie(&door, token));
        let lets_in = |cookie: &str| {
            let headers = headers(&[("host", "localhost:7171"), ("cookie", cookie)]);
            door.lets_in(&headers, NOW).is_some()
        };
        assert!(lets_in(&by_old) && lets_in(&by_new));
        door.tokens.replace(secrets(["new", "newer"]));
        assert_eq!((lets_in(&by_old), lets_in(&by_new)), (false, true));
        assert!(door.opens("old").is_none() && door.opens("newer").is_some());
    }

    #[test]
    fn the_hash_of_a_token_signs_no_session() {
        let given = GivenGrants {
            name: "a".to_owned(),
            scopes: vec!["view".to_owned()],
            namespaces: vec!["*".to_owned()],
            ..GivenGrants::default()
        };
        let (grants, sha256) = (Grants::read(&given).unwrap(), token_hash(b"tnr_a_x"));
        let door = |seed: &str, whole: &[&str]| {
            let tokens = Tokens::locking(seed);
            tokens.replace(whole.iter().map(|token| Secret::new(*token)).collect());
            tokens.replace_listed(vec![ListedToken { grants: grants.clone(), sha256 }]);
            Door::new(tokens)
        };
        let begun = |door: &Door| cookie(door, "tnr_a_x");
        let lets_in = |door: &Door, cookie: &str| {
            let headers = headers(&[("host", "localhost:7171"), ("cookie", cookie)]);
            door.lets_in(&headers, NOW).map(|caller| caller.name().to_owned())
        };
        let one = door("seed", &[]);
        assert!(begun(&one).contains(".a."), "the session has the name of its token");
        assert_eq!(lets_in(&one, &begun(&one)).as_deref(), Some("a"));
        // Another process has the same file, and another seed.
        assert_eq!(lets_in(&door("other", &[]), &begun(&one)), None);
        // With a common long token of all rights sessions are valid at each server.
        let [root, other] = ["r", "s"].map(|letter| letter.repeat(32));
        let common = door("seed", &[&root]);
        assert_eq!(lets_in(&door("other", &[&root]), &begun(&common)).as_deref(), Some("a"));
        assert_eq!(lets_in(&door("other", &[&other]), &begun(&common)), None);
        // A short one could be guessed by the holder of the listed token.
        let short = door("seed", &["root"]);
        assert_eq!(lets_in(&door("other", &["root"]), &begun(&short)), None);
    }

    #[test]
    fn the_token_opens_and_nothing_else() {
        for (shown, may) in [("one", true), ("two", false), ("", false), ("one ", false)] {
            assert_eq!(door("one").opens(shown).is_some(), may, "{shown}");
        }
    }

    #[test]
    fn a_form_is_taken_from_a_page_of_this_server_alone() {
        let host = ("host", "localhost:7171");
        for (more, may) in [
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "none")], false),
            (vec![("sec-fetch-site", "cross-site"), ("origin", "http://localhost:7171")], false),
            (vec![("origin", "http://localhost:7171")], true),
            (vec![("origin", "http://localhost:7172")], false),
            (vec![("origin", "null")], false),
            (vec![], false),
        ] {
            let mut all = more.clone();
            all.push(host);
            assert_eq!(is_own_form(&headers(&all)), may, "{more:?}");
        }
    }
}
