//! The handshake of TLS: limited in time, and with an answer for callers that speak HTTP in clear.

use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::Seldom;
use tenure_tls::ServerTls;
use tokio::time::timeout;

use crate::closing::{end, last};
use crate::config::Config;
use crate::io::{Socket, Stream};

/// The first byte of every handshake.
const HANDSHAKE: u8 = 0x16;

/// Failed handshakes, logged at most once a minute.
#[derive(Debug, Default)]
pub(crate) struct FailedHandshakes {
    in_clear: Mutex<Seldom>,
    failed: Mutex<Seldom>,
}

/// Shakes hands; `None`: there is no connection. A handshake that takes longer than a head may take
/// is ended.
pub(crate) async fn shake(
    tls: &ServerTls,
    socket: Socket,
    config: &Config,
    failed: &FailedHandshakes,
    peer: Option<IpAddr>,
) -> Option<Stream> {
    let shaking = async {
        let mut first = [0];
        // A port scan sends nothing, and is not worth a line.
        if !matches!(socket.stream.peek(&mut first).await, Ok(1)) {
            return None;
        }
        Some(match first[0] {
            HANDSHAKE => match tls.accept(socket).await {
                Ok(stream) => Ok(stream),
                Err((why, mut socket)) => {
                    // The caller may have sent a request already, and sees no answer unless that is
                    // read.
                    let _ = timeout(config.linger, end(&mut socket)).await;
                    Err(Some(why))
                }
            },
            _ => {
                last(Stream::Clear(socket), &ServerRefusal::InClear.into(), config.linger).await;
                Err(None)
            }
        })
    };
    let why = match timeout(config.head_max, shaking).await {
        Ok(None) => return None,
        Ok(Some(Ok(stream))) => return Some(Stream::Tls(Box::new(stream))),
        Ok(Some(Err(why))) => why,
        Err(_) => Some(io::Error::new(io::ErrorKind::TimedOut, "it was not done in time")),
    };
    failed.tell(why, peer);
    None
}

impl FailedHandshakes {
    /// `why` is `None` for a caller that spoke HTTP in clear.
    fn tell(&self, why: Option<io::Error>, peer: Option<IpAddr>) {
        let lines = if why.is_some() { &self.failed } else { &self.in_clear };
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.happened(1);
        let Some(times) = lines.due(Instant::now()) else { return };
        let peer = peer.map(tracing::field::display);
        match why {
            Some(why) => {
                tracing::warn!(peer, times, %why, "callers came to no TLS connection; the last one is named");
            }
            None => {
                tracing::warn!(
                    peer,
                    times,
                    "callers spoke HTTP in clear, and this server speaks HTTPS; the last one is named"
                );
            }
        }
    }
}
