//! Permits addresses to listen on: loopback without a token, all others with a good one.

use std::fmt;
use std::net::SocketAddr;

use tenure_core::secret::Secret;

/// The least length of a token for callers on other machines.
pub const TOKEN_BYTES_MIN: usize = 32;

/// Whether a token is too short for callers on other machines.
pub fn is_short(token: &Secret) -> bool {
    token.reveal().chars().count() < TOKEN_BYTES_MIN
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenRefused {
    /// Without a token everybody on the network could call.
    NoToken(SocketAddr),
    /// The token can be guessed.
    ShortToken(SocketAddr),
}

impl fmt::Display for ListenRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, why) = match self {
            ListenRefused::NoToken(at) => (at, "there is no token"),
            ListenRefused::ShortToken(at) => (at, "the token is too short"),
        };
        write!(
            f,
            "{why}, and {at} can be reached from other machines; set TENURE_TOKEN to a random \
             text of at least {TOKEN_BYTES_MIN} characters, or listen on 127.0.0.1"
        )
    }
}
impl std::error::Error for ListenRefused {}

/// Checks that a server with these tokens with all rights may listen at this address. A caller needs
/// only one of them, so each must be good. `has_listed`: the server also has hashes of tokens, whose length
/// it cannot check; tokens that Tenure makes are long.
///
/// # Errors
/// [`ListenRefused`] if the address is not loopback and there is no token, or a short one.
pub fn may_listen(
    at: SocketAddr,
    tokens: &[Secret],
    has_listed: bool,
) -> Result<(), ListenRefused> {
    if at.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    match tokens {
        [] if has_listed => Ok(()),
        [] => Err(ListenRefused::NoToken(at)),
        tokens if tokens.iter().any(is_short) => Err(ListenRefused::ShortToken(at)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_token_opens_a_server_to_others() {
        let long = Secret::new("x".repeat(TOKEN_BYTES_MIN));
        let short = Secret::new("x".repeat(TOKEN_BYTES_MIN - 1));
        let (none, long_and_short) = (vec![], vec![long.clone(), short.clone()]);
        let (long, short) = (vec![long.clone(), long], vec![short]);
        for (at, tokens, has_listed, may) in [
            ("127.0.0.1:7171", &none, false, true),
            ("127.9.9.9:0", &none, false, true),
            ("[::1]:7171", &none, false, true),
            ("[::ffff:127.0.0.1]:1", &none, false, true),
            ("127.0.0.1:7171", &short, false, true),
            ("0.0.0.0:7171", &none, false, false),
            ("[::]:7171", &none, false, false),
            ("192.168.1.5:7171", &none, false, false),
            ("0.0.0.0:7171", &none, true, true),
            ("0.0.0.0:7171", &short, false, false),
            ("0.0.0.0:7171", &short, true, false),
            ("0.0.0.0:7171", &long_and_short, false, false),
            ("0.0.0.0:7171", &long, false, true),
        ] {
            let at: SocketAddr = at.parse().unwrap();
            assert_eq!(may_listen(at, tokens, has_listed).is_ok(), may, "{at}");
        }
    }
}
