//! How a call to the server can end without its answer, and why an address cannot be used.
//!
//! No text here carries a password, an argument of a call or a payload.

use redis::{ErrorKind, RedisError, ServerError};
use tenure_engine::ids::NoRandomNumbers;
use tenure_tls::TlsError;

/// Why a call has no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// Nothing was sent, so nothing happened: there is no connection to the server now.
    #[error("redis cannot be reached: {0}")]
    Unavailable(String),
    /// It may have happened: the answer did not come in time, or the connection broke before it came.
    #[error("redis did not answer, the call may have happened: {0}")]
    Unknown(String),
    /// The server answered with an error. No call of ours writes before it is sure, so nothing
    /// happened.
    #[error("redis refused: {code} {message}")]
    Refused {
        /// The first word of the answer: `OOM`, `READONLY`, `NOPERM`, `LOADING`, `CLUSTERDOWN`,
        /// `TRYAGAIN`, `ERR`, or one of our own, `TENURE_…`.
        code: String,
        /// The rest of it.
        message: String,
    },
}

impl LinkError {
    /// The code, if the server answered.
    pub fn code(&self) -> Option<&str> {
        match self {
            LinkError::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether it is sure that the call did nothing.
    pub fn nothing_happened(&self) -> bool {
        !matches!(self, LinkError::Unknown(_))
    }

    pub(crate) fn refused(code: &str, message: impl Into<String>) -> Self {
        LinkError::Refused { code: code.to_owned(), message: message.into() }
    }
}

/// The server's own words, without what it repeats of a call: an unknown command is answered with the
/// first of its arguments.
impl From<&ServerError> for LinkError {
    fn from(said: &ServerError) -> Self {
        let message = said.details().unwrap_or_default();
        let message = message.split(", with args beginning with").next().unwrap_or_default();
        // Functions that would write are refused on a replica under another code by some versions.
        let replica = message.contains("readonly replica") || message.contains("read only replica");
        // A call in a slot that is given away needed a key that has gone, or was never there.
        let moving = message.contains("access a non local key");
        let code = match said.code() {
            _ if replica => "READONLY",
            _ if moving => crate::call::MOVING,
            code => code,
        };
        LinkError::refused(code, message.trim())
    }
}

/// What the client library says of a request that was handed to a connection.
pub(crate) fn after_sending(why: RedisError) -> LinkError {
    match ServerError::try_from(why) {
        Ok(said) => LinkError::from(&said),
        Err(why) => LinkError::Unknown(described(&why)),
    }
}

/// What the client library says, without details that might repeat an argument.
pub(crate) fn described(why: &RedisError) -> String {
    match why.kind() {
        ErrorKind::Io if why.is_timeout() => "it took too long".to_owned(),
        ErrorKind::Io => "the connection was closed".to_owned(),
        ErrorKind::Parse => "it does not speak the Redis protocol".to_owned(),
        _ => why.category().to_owned(),
    }
}

/// Why a link cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no async runtime to live in.
    #[error("a link to redis needs a tokio runtime; open it inside of one")]
    NoRuntime,
    /// The system has no random numbers for the name of this process.
    #[error("a link to redis cannot be opened: {0}")]
    Random(#[from] NoRandomNumbers),
    /// TLS cannot be set up, or the certificates that the address names cannot be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
