//! A scratch part of a Redis that is in use: stores with names of their own, emptied when the command ends.
//!
//! `tenure demo` and `tenure-lab` write there and nowhere else, so that they may be shown on a Redis that is in use.
//! Only a SIGKILL of this process, or an unreachable Redis, leaves keys behind.

use std::time::Duration;

use tenure::url::StoreUrl;
use tenure_core::redis_address::Address;
use tenure_core::secret::Secret;
use tenure_redis::{PlainRedis, RespValue, StoreError};
use tokio::time::timeout;

use crate::exit::{DENIED, Failure, UNAVAILABLE, USAGE};

/// A random number: a seed, or a name that nothing else has.
pub fn any_number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Longest time that [`Scratch::clear`] may take.
const CLEAR_MAX: Duration = Duration::from_secs(10);
/// Keys of one `SCAN` call.
const KEYS_A_CALL: usize = 1_000;

/// A named part of a Redis, with stores of its own.
#[derive(Clone, Debug)]
pub struct Scratch {
    url: Secret,
    address: Address,
}

impl Scratch {
    /// A part at this address; `name` says which command it belongs to. No two parts are the same.
    pub fn of(store: &str, name: &str) -> Result<Self, Failure> {
        let wrong = |why: String| {
            Failure::usage(format!("--store: {why}")).hint("name a Redis: redis://HOST:6379")
        };
        match store.parse::<StoreUrl>() {
            Ok(StoreUrl::Redis(_)) => {
                let name = format!("{name}-{:016x}", any_number());
                Scratch::within(store, &name)
            }
            Ok(_) => Err(wrong("this is not the address of a Redis".to_owned())),
            Err(why) => Err(wrong(why.to_string())),
        }
    }

    /// A part of it; it is emptied with the whole.
    pub fn part(&self, name: &str) -> Result<Self, Failure> {
        Scratch::within(self.url.reveal(), name)
    }

    fn within(url: &str, name: &str) -> Result<Self, Failure> {
        let wrong = |why| Failure::usage(format!("--store: {why}"));
        let whole = Address::parse(url).map_err(wrong)?;
        let url = with_name(url, &format!("{}:{name}", whole.name()));
        let address = Address::parse(&url).map_err(wrong)?;
        Ok(Scratch { url: Secret::new(url), address })
    }

    /// Its address, as child processes are given it.
    pub fn url(&self) -> &Secret {
        &self.url
    }

    /// The parsed form of its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns when the Redis answers.
    pub async fn reach(&self) -> Result<(), Failure> {
        self.ask(&["PING"]).await.map(drop)
    }

    /// Sends one command to the primary.
    pub async fn ask(&self, words: &[&str]) -> Result<RespValue, Failure> {
        let mut redis = PlainRedis::connect(&self.address).await.map_err(unreachable)?;
        redis.ask(words).await.map_err(unreachable)
    }

    /// A section of the server's `INFO`.
    pub async fn info(&self, section: &str) -> Result<String, Failure> {
        let info = self.ask(&["INFO", section]).await?;
        let text = info.text().ok_or_else(|| Failure::bug("INFO is answered with a text"))?;
        Ok(text.to_owned())
    }

    /// Removes all its keys. The processes that wrote here must have ended before.
    pub async fn clear(&self) -> Result<(), Failure> {
        let cleared = async {
            for mut redis in PlainRedis::connect_to_all(&self.address).await? {
                // Writes in flight when their sender ended may arrive after a first pass.
                while self.pass(&mut redis).await? > 0 {}
            }
            Ok(())
        };
        match timeout(CLEAR_MAX, cleared).await {
            Ok(cleared) => cleared.map_err(unreachable),
            Err(_) => {
                let keys = self.pattern();
                let late = format!("the keys '{keys}' could not be removed in time");
                Err(Failure::new(UNAVAILABLE, late)
                    .hint("remove them with redis-cli: --scan --pattern finds them"))
            }
        }
    }

    /// The pattern of the keys of the scratch part and of all its parts.
    fn pattern(&self) -> String {
        format!("{{{}*", literally(self.address.name()))
    }

    /// Removes the keys of one server, and returns how many it found.
    async fn pass(&self, redis: &mut PlainRedis) -> Result<usize, StoreError> {
        let (pattern, count) = (self.pattern(), KEYS_A_CALL.to_string());
        let (mut cursor, mut found) = ("0".to_owned(), 0);
        loop {
            let scan = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", &count];
            let (next, keys) = scanned(&redis.ask(&scan).await?);
            // One by one: the keys of two parts may be in two slots of a cluster.
            for key in &keys {
                redis.ask(&[b"UNLINK", key.as_slice()]).await?;
            }
            found += keys.len();
            if next == "0" || next.is_empty() {
                return Ok(found);
            }
            cursor = next;
        }
    }
}

/// The failure of a command that cannot reach its Redis.
pub fn unreachable(why: StoreError) -> Failure {
    let said = why.to_string();
    let says = |codes: &[&str]| codes.iter().any(|code| said.contains(code));
    if says(&["NOAUTH ", "WRONGPASS ", "NOPERM "]) {
        return Failure::new(DENIED, said)
            .hint("name the user and the password in the address, and set it as TENURE_URL");
    }
    if says(&[" ERR "]) {
        return Failure::new(USAGE, said)
            .hint("check the user, the password and the database in the address");
    }
    Failure::new(UNAVAILABLE, said).hint("is it running, and is its address right?")
}

/// The end of a command that used a scratch part: its own failure is returned first, and a failure to clear the part is
/// at least reported.
pub fn left(ended: Result<(), Failure>, left: Result<(), Failure>) -> Result<(), Failure> {
    if let (Err(ended), Err(left)) = (&ended, &left)
        && ended != left
    {
        left.tell();
    }
    ended.and(left)
}

/// The next cursor, and keys.
fn scanned(answer: &RespValue) -> (String, Vec<Vec<u8>>) {
    let Some([cursor, keys]) = answer.list() else { return Default::default() };
    let keys = keys.list().unwrap_or_default().iter();
    let keys = keys.filter_map(|key| key.bytes().map(<[u8]>::to_vec));
    (cursor.text().unwrap_or_default().to_owned(), keys.collect())
}

/// The same address with another name of the store.
fn with_name(url: &str, name: &str) -> String {
    let (body, query) = url.split_once('?').unwrap_or((url, ""));
    let kept = query.split('&').filter(|one| !one.is_empty() && !one.starts_with("name="));
    let name: String = name
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let query: Vec<String> = kept.map(str::to_owned).chain([format!("name={name}")]).collect();
    format!("{body}?{}", query.join("&"))
}

/// A pattern that matches exactly this text.
fn literally(text: &str) -> String {
    let special = |c: char| "*?[]\\^".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corner_has_names_of_its_own_and_its_keys_are_found() {
        for (store, name) in [
            ("redis://h", "tenure:demo-"),
            ("redis://:geheim@h?name=a%2Bb%26&forgets=never", "a+b&:demo-"),
        ] {
            let scratch = Scratch::of(store, "demo").unwrap();
            assert!(scratch.address.name().starts_with(name), "{:?}", scratch.address.name());
            assert_eq!(scratch.address.forgets_never(), store.contains("forgets"));
            let part = scratch.part("1").unwrap();
            assert_eq!(part.address.name(), format!("{}:1", scratch.address.name()));
            assert!(!format!("{scratch:?}").contains("geheim"));
        }
        let name = |store| Scratch::of(store, "x").unwrap().address.name().to_owned();
        assert_ne!(name("redis://h"), name("redis://h"));
        assert!(Scratch::of("file:x", "x").is_err() && Scratch::of("redis://", "x").is_err());
        let odd = Scratch::of("redis://h?name=a*", "demo").unwrap();
        assert!(odd.pattern().starts_with(r"{a\*:demo-"), "{}", odd.pattern());
    }

    #[test]
    fn a_name_means_itself_in_a_pattern() {
        assert_eq!(literally("a*[b]:"), r"a\*\[b\]:");
    }
}
