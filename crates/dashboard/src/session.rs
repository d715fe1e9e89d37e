//! Who may see the pages: whoever has shown the server's token, by a cookie that is not the token.
//!
//! The cookie is an end and a signature of it, by a key that is made of the token: so it holds at every server with the same
//! token and over restarts, it ends when the token is changed, and nothing is kept here
//! (docs/decisions/088-a-signed-session.md).

use hmac::{Hmac, Mac};
use http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use sha2::Sha256;
use tenure_core::secret::Secret;
use tenure_core::time::{Moment, Span};

/// After this the token is asked for again.
const SESSION: Span = Span::from_s(12 * 60 * 60);
/// What the key is for: the token signs nothing else with this text.
const PURPOSE: &[u8] = b"tenure dashboard session 1";

/// The keeper of the door; `None` as its token lets everybody in, since the server then answers loopback names alone.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    token: Option<Secret>,
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
    pub(crate) fn new(token: Option<Secret>) -> Self {
        Door { token }
    }

    /// Whether there is a token to be shown.
    pub(crate) fn is_locked(&self) -> bool {
        self.token.is_some()
    }

    /// Whether this is the token. The comparison is one of two signatures, and takes as long whatever was shown.
    pub(crate) fn opens(&self, shown: &str) -> bool {
        let Some(token) = &self.token else { return true };
        let is = signed(token.reveal().as_bytes(), PURPOSE).finalize().into_bytes();
        signed(shown.as_bytes(), PURPOSE).verify(&is).is_ok()
    }

    /// Whether the cookie of a request lets it in.
    pub(crate) fn lets_in(&self, headers: &HeaderMap, now: Moment) -> bool {
        let Some(token) = &self.token else { return true };
        let name = cookie_name(headers);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut shown = cookies.flat_map(|all| all.split(';')).filter_map(|one| {
            let (key, value) = one.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        shown.any(|value| is_signed(token, value, now))
    }

    /// The header that begins a session.
    pub(crate) fn begins(&self, headers: &HeaderMap, now: Moment) -> String {
        let end = now.plus(SESSION).us().to_string();
        let signature = match &self.token {
            Some(token) => hex(&signature(token, &end).finalize().into_bytes()),
            None => String::new(),
        };
        set_cookie(headers, &format!("{end}.{signature}"), SESSION.us() / 1_000_000)
    }

    /// The header that ends it.
    pub(crate) fn ends(headers: &HeaderMap) -> String {
        set_cookie(headers, "", 0)
    }
}

fn signature(token: &Secret, end: &str) -> Hmac<Sha256> {
    let key = signed(token.reveal().as_bytes(), PURPOSE).finalize().into_bytes();
    signed(&key, end.as_bytes())
}

fn is_signed(token: &Secret, value: &str, now: Moment) -> bool {
    let Some((end, shown)) = value.split_once('.') else { return false };
    let lasts = end.parse().is_ok_and(|end| Moment::from_us(end) > now);
    let shown = unhex(shown).unwrap_or_default();
    lasts && signature(token, end).verify_slice(&shown).is_ok()
}

/// Browsers give a cookie to every port of a host: servers beside each other must not end each other's sessions.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| is_number(port));
    format!("tenure_{}", port.unwrap_or("web"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 5 && text.bytes().all(|c| c.is_ascii_digit())
}

fn set_cookie(headers: &HeaderMap, value: &str, seconds: u64) -> String {
    let name = cookie_name(headers);
    // Behind a proxy that speaks TLS the cookie never leaves by anything else. Whoever forges this header keeps the
    // cookie from himself.
    let https = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let secure = if https { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Whether a form was sent by a page of this server. A browser says so itself; one that does not names the origin.
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
        Door::new(Some(Secret::new(token)))
    }

    fn cookie(door: &Door) -> String {
        let set = door.begins(&headers(&[("host", "localhost:7171")]), NOW);
        set.split(';').next().unwrap().to_owned()
    }

    #[test]
    fn only_a_cookie_signed_by_this_token_lets_in_until_its_end() {
        let own = door("one");
        let good = cookie(&own);
        let (name, value) = good.split_once('=').unwrap();
        let (end, signature) = value.split_once('.').unwrap();
        let later = format!("{name}={}0.{signature}", end);
        for (shown, at, may) in [
            (good.as_str(), NOW, true),
            (&format!("a=b; {good}; c=d"), NOW, true),
            (&good, NOW.plus(SESSION), false),
            (&cookie(&door("two")), NOW, false),
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
        assert!(Door::new(None).lets_in(&HeaderMap::new(), NOW));
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
