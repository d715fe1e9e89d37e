//! Admits browsers to the pages: by a cookie, which stands for one of the server's tokens and does not contain it.
//!
//! The cookie is an end and a signature of it, with a key that is made from the token. So it is valid at every server
//! with the same token and after restarts, it ends when that token is no longer valid, and nothing is kept here
//! (docs/decisions/088-a-signed-session.md).

use hmac::{Hmac, Mac};
use http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use sha2::Sha256;
use tenure_core::secret::Secret;
use tenure_core::time::{Moment, Span};
use tenure_server::Tokens;

/// After this the token is needed again.
const SESSION: Span = Span::from_s(12 * 60 * 60);
/// The purpose of the key: the token signs nothing else with this text.
const PURPOSE: &[u8] = b"tenure dashboard session 1";

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

    /// Whether this is a valid token.
    pub(crate) fn opens(&self, token: &str) -> bool {
        !self.is_locked() || self.tokens.take(token.as_bytes())
    }

    /// Whether the cookie of a request lets it in.
    pub(crate) fn lets_in(&self, headers: &HeaderMap, now: Moment) -> bool {
        if !self.is_locked() {
            return true;
        }
        let tokens = self.tokens.all();
        let name = cookie_name(headers);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut shown = cookies.flat_map(|all| all.split(';')).filter_map(|one| {
            let (key, value) = one.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        shown.any(|value| tokens.iter().any(|token| is_signed(token, value, now)))
    }

    /// The header that begins a session for this token, which [opens](Door::opens) the door. `is_secure`: the browser
    /// came by TLS, and the cookie must never leave without it.
    pub(crate) fn begins(
        &self,
        shown: &str,
        headers: &HeaderMap,
        is_secure: bool,
        now: Moment,
    ) -> String {
        let end = now.plus(SESSION).us().to_string();
        let signature = if self.is_locked() {
            hex(&signature(&Secret::new(shown), &end).finalize().into_bytes())
        } else {
            String::new()
        };
        let value = format!("{end}.{signature}");
        set_cookie(headers, &value, SESSION.us() / 1_000_000, is_secure)
    }

    /// The header that ends the session.
    pub(crate) fn ends(headers: &HeaderMap, is_secure: bool) -> String {
        set_cookie(headers, "", 0, is_secure)
    }
}

fn signature(token: &Secret, end: &str) -> Hmac<Sha256> {
    let key = signed(token.reveal().as_bytes(), PURPOSE).finalize().into_bytes();
    signed(&key, end.as_bytes())
}

fn is_signed(token: &Secret, value: &str, now: Moment) -> bool {
    let Some((end, mac)) = value.split_once('.') else { return false };
    let lasts = end.parse().is_ok_and(|end| Moment::from_us(end) > now);
    let mac = unhex(mac).unwrap_or_default();
    lasts && signature(token, end).verify_slice(&mac).is_ok()
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
        assert!(door.opens(token));
        let set = door.begins(token, &headers(&[("host", "localhost:7171")]), false, NOW);
        set.split(';').next().unwrap().to_owned()
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
            assert_eq!(own.lets_in(&headers, at), may, "{shown}");
        }
        assert!(!good.contains("one"));
        assert!(Door::new(Tokens::default()).lets_in(&HeaderMap::new(), NOW));
    }

    #[test]
    fn a_session_ends_with_the_token_that_began_it() {
        let secrets = |all: [&str; 2]| all.map(Secret::new).to_vec();
        let door = Door::new(Tokens::of(secrets(["old", "new"])));
        let [by_old, by_new] = ["old", "new"].map(|token| cookie(&door, token));
        let lets_in = |cookie: &str| {
            let headers = headers(&[("host", "localhost:7171"), ("cookie", cookie)]);
            door.lets_in(&headers, NOW)
        };
        assert!(lets_in(&by_old) && lets_in(&by_new));
        door.tokens.replace(secrets(["new", "newer"]));
        assert_eq!((lets_in(&by_old), lets_in(&by_new)), (false, true));
        assert!(!door.opens("old") && door.opens("newer"));
    }

    #[test]
    fn the_token_opens_and_nothing_else() {
        for (shown, may) in [("one", true), ("two", false), ("", false), ("one ", false)] {
            assert_eq!(door("one").opens(shown), may, "{shown}");
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
