//! `--metrics-listen`: the metrics at a port of their own, so that a firewall or a network policy can let a Prometheus reach
//! them and nothing else.

use std::convert::Infallible;
use std::future::pending;

use tenure_server::{Deps, run_metrics};
use tokio::net::TcpListener;

use super::listener::{ListenTokens, addresses, bind};
use crate::exit::Failure;

/// The option that names the port.
pub const OPTION: &str = "--metrics-listen";

/// The port, if there is to be one.
pub struct MetricsPort(Option<TcpListener>);

impl MetricsPort {
    /// Listens. If there are `tokens`, a reader must show one of them.
    ///
    /// # Errors
    /// As those of [`addresses`] and [`bind`].
    pub fn of(listen: Option<&str>, tokens: ListenTokens<'_>) -> Result<Self, Failure> {
        let Some(listen) = listen else { return Ok(MetricsPort(None)) };
        Ok(MetricsPort(Some(bind(OPTION, listen, &addresses(OPTION, listen, tokens)?)?)))
    }

    /// Answers there until it is dropped, also while the server drains.
    pub async fn serve(self, deps: Deps) -> Infallible {
        match self.0 {
            Some(listener) => {
                if let Ok(at) = listener.local_addr() {
                    tracing::info!(address = %at, "metrics are served on a port of their own");
                }
                run_metrics(listener, deps).await
            }
            None => pending().await,
        }
    }
}
