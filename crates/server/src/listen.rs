//! Where a server may listen: without a token on loopback only, beyond it with a good one.

use std::fmt;
use std::net::SocketAddr;

use tenure_core::secret::Secret;

/// A token that is given to others than this machine has at least so many bytes.
pub const TOKEN_BYTES_MIN: usize = 32;

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

/// Whether a server with this token may listen there.
///
/// # Errors
/// [`ListenRefused`] if the address is not loopback and the token is missing or short.
pub fn may_listen(at: SocketAddr, token: Option<&Secret>) -> Result<(), ListenRefused> {
    if at.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    match token {
        None => Err(ListenRefused::NoToken(at)),
        Some(token) if token.reveal().chars().count() < TOKEN_BYTES_MIN => {
            Err(ListenRefused::ShortToken(at))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_token_opens_a_server_to_others() {
        let long = Secret::new("x".repeat(TOKEN_BYTES_MIN));
        let short = Secret::new("x".repeat(TOKEN_BYTES_MIN - 1));
        for (at, token, may) in [
            ("127.0.0.1:7171", None, true),
            ("127.9.9.9:0", None, true),
            ("[::1]:7171", None, true),
            ("[::ffff:127.0.0.1]:1", None, true),
            ("127.0.0.1:7171", Some(&short), true),
            ("0.0.0.0:7171", None, false),
            ("[::]:7171", None, false),
            ("192.168.1.5:7171", None, false),
            ("0.0.0.0:7171", Some(&short), false),
            ("0.0.0.0:7171", Some(&long), true),
        ] {
            let at: SocketAddr = at.parse().unwrap();
            assert_eq!(may_listen(at, token).is_ok(), may, "{at}");
        }
    }
}
