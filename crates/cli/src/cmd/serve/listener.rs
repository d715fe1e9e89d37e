//! Addresses at which a server listens, and the errors if it cannot.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use tenure_core::secret::Secret;
use tenure_server::may_listen;

use crate::exit::{DENIED, Failure, UNAVAILABLE};

/// The tokens of a server that is to listen.
#[derive(Clone, Copy)]
pub struct ListenTokens<'t> {
    /// Tokens with all rights. The server knows them, and so their length.
    pub whole: &'t [Secret],
    /// True if the server also has hashes of tokens, whose length it cannot check. `tenure token new` makes long ones.
    pub has_listed: bool,
}

/// The addresses that an option names. With these tokens the server may listen on each of them.
///
/// # Errors
/// It names none, or one that other machines reach without a good token.
pub fn addresses(
    option: &str,
    listen: &str,
    tokens: ListenTokens<'_>,
) -> Result<Vec<SocketAddr>, Failure> {
    let found: Vec<SocketAddr> = listen
        .to_socket_addrs()
        .map_err(|why| {
            Failure::usage(format!("{option}: '{listen}' is not an address: {why}"))
                .hint("write it as HOST:PORT, such as 127.0.0.1:7171")
        })?
        .collect();
    if found.is_empty() {
        return Err(Failure::usage(format!("{option}: '{listen}' names no address")));
    }
    for at in &found {
        may_listen(*at, tokens.whole, tokens.has_listed)
            .map_err(|no| Failure::usage(format!("{option}: {no}")))?;
    }
    Ok(found)
}

/// Listens. Calls that come before the store is open wait in the listener's line.
///
/// # Errors
/// The system has no such place to listen.
pub fn bind(
    option: &str,
    listen: &str,
    addresses: &[SocketAddr],
) -> Result<tokio::net::TcpListener, Failure> {
    let bound = || {
        let listener = TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    };
    bound().map_err(|why| match why.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::new(UNAVAILABLE, format!("another program listens on {listen}"))
                .hint(format!("stop it, or name another address with {option}"))
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(DENIED, format!("this user may not listen on {listen}"))
                .hint("use a port above 1023")
        }
        _ => Failure::new(UNAVAILABLE, format!("cannot listen on {listen}: {why}")),
    })
}
