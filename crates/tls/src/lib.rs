//! TLS of both sides: how a client trusts a server, and how a server identifies itself.
//!
//! A client trusts the certificates that its settings name, otherwise the system's roots, otherwise the ones that
//! browsers carry. The check cannot be switched off. A server over HTTP and a Redis use this same set-up, so an
//! authority that is trusted for one of them is trusted for the other.

mod client;
mod pem_files;
mod server;

pub use client::{
    HostName, Identity, Tls, TlsError, Trust, advice, for_http, for_http_trusting, refusal,
};
pub use pem_files::PemFileError;
pub use server::{AcceptedStream, ServerFiles, ServerTls, ServerTlsError, is_http2};
