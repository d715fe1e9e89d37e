//! A store that is a Redis: the engine for an address, which says of what is away where that is.
//!
//! Nothing here shows more of an address than its hosts, and nothing decides what a fault means.

use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_engine::{AroundEngine, CallError, CallFuture, Engine, Fault};
use tenure_engine_redis::link::{Address, LinkError, OpenError, TlsError};
use tenure_engine_redis::{Options, RedisEngine};

use crate::exit::{BUG, DENIED, Failure, UNAVAILABLE, USAGE};

/// A process that ends takes so long at most to take back what it left in the Redis.
pub const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Begins to connect; the servers need not be there. Must be called inside of a runtime.
pub fn open(address: &Address) -> Result<RedisEngine, Failure> {
    open_with(Options::new(address.clone()))
}

/// As [`open`], with more than an address.
pub fn open_with(options: Options) -> Result<RedisEngine, Failure> {
    RedisEngine::open(options).map_err(|why| {
        let text = why.to_string();
        let code = match why {
            OpenError::NoRuntime => BUG,
            OpenError::Tls(TlsError::Certificates { .. }) => USAGE,
            OpenError::Random(_) | OpenError::Tls(_) => UNAVAILABLE,
        };
        match text.split_once("; ") {
            Some((sentence, hint)) => Failure::new(code, sentence).hint(hint),
            None => Failure::new(code, text),
        }
    })
}

/// How a command ends that asks a Redis itself, and not by way of the engine.
pub fn unreachable(why: LinkError) -> Failure {
    match why.code() {
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => Failure::new(DENIED, why.to_string())
            .hint("name the user and the password in the address, and set it as TENURE_URL"),
        Some("ERR") => Failure::new(USAGE, why.to_string())
            .hint("look at the user, the password and the database in the address"),
        _ => Failure::new(UNAVAILABLE, why.to_string())
            .hint("is it running, and is its address right?"),
    }
}

/// The engine, for people: what it cannot reach is named by its address.
pub struct AddressedRedis {
    engine: RedisEngine,
    /// Without a password.
    shown: String,
}

impl AddressedRedis {
    /// Opens it as [`open`] does.
    pub fn open(address: &Address) -> Result<Self, Failure> {
        Ok(AddressedRedis { engine: open(address)?, shown: address.to_string() })
    }

    /// Leaves nobody waiting in the Redis, as far as that goes within a moment.
    pub async fn close(&self) {
        self.engine.close(CLOSED_WITHIN).await;
    }
}

impl AroundEngine for AddressedRedis {
    fn inner(&self) -> &dyn Engine {
        &self.engine
    }
    fn call_around(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let (call, shown) = (self.engine.call(namespace, request), self.shown.clone());
        Box::pin(async move { call.await.map_err(|why| named(&shown, why)) })
    }
}

fn named(shown: &str, why: CallError) -> CallError {
    let CallError::Fault(Fault::Unavailable(why)) = why else { return why };
    // Of a single server the link says the host too, and the system the number of its error.
    let single = |host: &str| shown.contains(host) && !shown.contains(',');
    let host = why.split_once(": ").filter(|(host, _)| single(host));
    let why = host.map_or(why.as_str(), |(_, why)| why);
    let why = why.split(" (os error").next().unwrap_or(why);
    Fault::Unavailable(format!("{shown}: {why}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_away_is_named_once() {
        for (shown, why, said) in [
            (
                "redis://127.0.0.1:6379",
                "127.0.0.1:6379: Connection refused (os error 111)",
                "redis://127.0.0.1:6379: Connection refused",
            ),
            (
                "redis://•••@[::1]:6379/1",
                "[::1]:6379: the connection was closed",
                "redis://•••@[::1]:6379/1: the connection was closed",
            ),
            (
                "redis-sentinel://a:1,b:2/main",
                "no sentinel has answered yet",
                "redis-sentinel://a:1,b:2/main: no sentinel has answered yet",
            ),
            (
                "redis-cluster://a:1,b:2",
                "c:3: the connection was closed",
                "redis-cluster://a:1,b:2: c:3: the connection was closed",
            ),
        ] {
            let away = CallError::Fault(Fault::Unavailable(why.to_owned()));
            assert_eq!(named(shown, away), Fault::Unavailable(said.to_owned()).into());
        }
        let unknown = CallError::Fault(Fault::Unknown("x".to_owned()));
        assert_eq!(named("redis://a:1", unknown.clone()), unknown);
    }
}
