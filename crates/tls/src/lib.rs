//! TLS, of both sides: how a client trusts a server, and how a server shows who it is.
//!
//! A client trusts the certificates that its settings name, otherwise the system's roots, otherwise the ones that
//! browsers carry. There is no way to switch the check off. A server over HTTP and a Redis are reached by this one
//! set-up, so what is trusted for one of them is trusted for the other.

mod client;
mod pem_files;
mod server;

pub use client::{
    HostName, Identity, Tls, TlsError, Trust, advice, for_http, for_http_trusting, refusal,
};
pub use pem_files::PemFileError;
pub use server::{AcceptedStream, ServerFiles, ServerTls, ServerTlsError, is_http2};
