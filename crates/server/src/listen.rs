//! Where a server may listen: without a token on loopback only, beyond it with a good one.

use std::fmt;
use std::net::SocketAddr;

use tenure_core::secret::Secret;

/// A token that is given to others than this machine has at least so many bytes.
pub const TOKEN_BYTES_MIN: usize = 32;

/// Whether a token is too short to be given to others than this machine has.
pub fn is_short(token: &Secret) -> bool {
    token.reveal().chars().count() < TOKEN_BYTES_MIN
}

/// Why a server does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenRefused {
    /// Everybody on the network could call.
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

/// Whether a server with these tokens may listen there: each of them opens it.
///
/// # Errors
/// [`ListenRefused`] if the address is not loopback and there is no token, or a short one.
pub fn may_listen(at: SocketAddr, tokens: &[Secret]) -> Result<(), ListenRefused> {
    if at.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    match tokens {
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
        for (at, tokens, may) in [
            ("127.0.0.1:7171", &none, true),
            ("127.9.9.9:0", &none, true),
            ("[::1]:7171", &none, true),
            ("[::ffff:127.0.0.1]:1", &none, true),
            ("127.0.0.1:7171", &short, true),
            ("0.0.0.0:7171", &none, false),
            ("[::]:7171", &none, false),
            ("192.168.1.5:7171", &none, false),
            ("0.0.0.0:7171", &short, false),
            ("0.0.0.0:7171", &long_and_short, false),
            ("0.0.0.0:7171", &long, true),
        ] {
            let at: SocketAddr = at.parse().unwrap();
            assert_eq!(may_listen(at, tokens).is_ok(), may, "{at}");
        }
    }
}
