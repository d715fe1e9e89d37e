//! A scratch part of a Redis that is in use: a prefix beneath its own, emptied when the command ends.
//!
//! `tenure demo` and `tenure-lab` write there and nowhere else, so that they may be shown on a Redis that is in
//! use. Only a SIGKILL of ours, or a Redis that is away, leaves it full.

use std::time::Duration;

use tenure::url::StoreUrl;
use tenure_core::names::Namespace;
use tenure_core::secret::Secret;
use tenure_engine_redis::link::{Address, Cmd, Link, LinkError, LinkOptions, Value, cmd};
use tokio::time::timeout;

use crate::exit::{Failure, UNAVAILABLE};
use crate::on_redis;

/// A number that nobody chose: a seed, or a name that nobody else has.
pub fn any_number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// How long leaving may take.
const CLEAR_MAX: Duration = Duration::from_secs(10);
/// Keys that are looked at with one call.
const KEYS_A_CALL: usize = 1_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Scratch {
    url: Secret,
    address: Address,
}

impl Scratch {
    /// Beneath what this address says; `name` says whose it is. Two are never the same.
    pub fn of(store: &str, name: &str) -> Result<Self, Failure> {
        let wrong = |why: String| {
            Failure::usage(format!("--store: {why}")).hint("name a Redis: redis://HOST:6379")
        };
        match store.parse::<StoreUrl>() {
            Ok(StoreUrl::Redis(_)) => {
                let name = format!("{name}-{:016x}", any_number());
                Scratch::within(store, &name)
            }
            Ok(_) => Err(wrong("this is the address of no Redis".to_owned())),
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
        let url = with_prefix(url, &format!("{}{name}:", whole.prefix()));
        let address = Address::parse(&url).map_err(wrong)?;
        Ok(Scratch { url: Secret::new(url), address })
    }

    /// Its address as a process of ours is given it.
    pub fn url(&self) -> &Secret {
        &self.url
    }

    /// Its address as it is understood.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Answers when the Redis does.
    pub async fn reach(&self) -> Result<(), Failure> {
        self.ask(&cmd("PING")).await.map(drop)
    }

    /// One command to the primary that has all of it.
    pub async fn ask(&self, command: &Cmd) -> Result<Value, Failure> {
        let answer = self.link()?.command(Namespace::main().as_str(), command).await;
        answer.map_err(on_redis::unreachable)
    }

    /// A section of the server's `INFO`.
    pub async fn info(&self, section: &str) -> Result<String, Failure> {
        let mut info = cmd("INFO");
        info.arg(section);
        match self.ask(&info).await? {
            Value::BulkString(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Value::VerbatimString { text, .. } => Ok(text),
            _ => Err(Failure::bug("INFO is answered with a text")),
        }
    }

    /// Removes all that is in it. Whoever wrote here has ended before.
    pub async fn clear(&self) -> Result<(), Failure> {
        let cleared = async {
            let link = self.link()?;
            // What was on its way when its sender ended may come after a first look.
            while self.pass(&link).await.map_err(on_redis::unreachable)? > 0 {}
            Ok(())
        };
        timeout(CLEAR_MAX, cleared).await.unwrap_or_else(|_| {
            let keys = format!("{}*", self.address.prefix());
            Err(Failure::new(
                UNAVAILABLE,
                format!("the keys '{keys}' could not be removed in time"),
            )
            .hint("remove them with redis-cli: --scan --pattern finds them"))
        })
    }

    fn link(&self) -> Result<Link, Failure> {
        let options = LinkOptions { connections: 1, ..LinkOptions::default() };
        Link::open(self.address.clone(), options)
            .map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))
    }

    /// How many keys were found, and are gone now. All are of one namespace, so on one primary.
    async fn pass(&self, link: &Link) -> Result<usize, LinkError> {
        let namespace = Namespace::main();
        let pattern = format!("{}*", literally(self.address.prefix()));
        let (mut cursor, mut found) = (b"0".to_vec(), 0);
        loop {
            let mut scan = Cmd::new();
            scan.arg("SCAN").arg(&cursor).arg("MATCH").arg(&pattern);
            scan.arg("COUNT").arg(KEYS_A_CALL);
            let (next, keys) = scanned(link.command(namespace.as_str(), &scan).await?);
            for some in keys.chunks(KEYS_A_CALL) {
                let mut unlink = cmd("UNLINK");
                unlink.arg(some);
                link.command(namespace.as_str(), &unlink).await?;
            }
            found += keys.len();
            if next == b"0" || next.is_empty() {
                return Ok(found);
            }
            cursor = next;
        }
    }
}

/// How a command ends that left its scratch part: what went wrong in it comes first, and what went wrong
/// with leaving is told at least.
pub fn left(ended: Result<(), Failure>, left: Result<(), Failure>) -> Result<(), Failure> {
    if let (Err(ended), Err(left)) = (&ended, &left)
        && ended != left
    {
        left.tell();
    }
    ended.and(left)
}

/// The next cursor, and keys.
fn scanned(answer: Value) -> (Vec<u8>, Vec<Vec<u8>>) {
    let bytes = |value| match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    };
    let Value::Array(parts) = answer else { return Default::default() };
    let mut parts = parts.into_iter();
    let cursor = parts.next().and_then(bytes).unwrap_or_default();
    match parts.next() {
        Some(Value::Array(keys)) => (cursor, keys.into_iter().filter_map(bytes).collect()),
        _ => (cursor, Vec::new()),
    }
}

/// The same address with another prefix.
fn with_prefix(url: &str, prefix: &str) -> String {
    let (body, query) = url.split_once('?').unwrap_or((url, ""));
    let kept = query.split('&').filter(|one| !one.is_empty() && !one.starts_with("prefix="));
    let prefix: String = prefix
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let query: Vec<String> = kept.map(str::to_owned).chain([format!("prefix={prefix}")]).collect();
    format!("{body}?{}", query.join("&"))
}

/// A pattern that means this text.
fn literally(text: &str) -> String {
    let special = |c: char| "*?[]\\^".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corner_lies_beneath_the_prefix_of_its_address() {
        for (store, prefix) in [
            ("redis://h", "tenure:demo-"),
            ("redis://h?prefix=", "demo-"),
            ("redis://:geheim@h?prefix=a%2Bb%26:&forgets=never", "a+b&:demo-"),
        ] {
            let scratch = Scratch::of(store, "demo").unwrap();
            assert!(scratch.address.prefix().starts_with(prefix), "{:?}", scratch.address.prefix());
            assert_eq!(scratch.address.forgets_never(), store.contains("forgets"));
            let part = scratch.part("1").unwrap();
            assert_eq!(part.address.prefix(), format!("{}1:", scratch.address.prefix()));
            assert!(!format!("{scratch:?}").contains("geheim"));
        }
        assert_ne!(
            Scratch::of("redis://h", "x").unwrap().address.prefix(),
            Scratch::of("redis://h", "x").unwrap().address.prefix()
        );
        assert!(Scratch::of("file:x", "x").is_err() && Scratch::of("redis://", "x").is_err());
    }

    #[test]
    fn a_prefix_means_itself_in_a_pattern() {
        assert_eq!(literally("a*[b]:"), r"a\*\[b\]:");
    }
}
