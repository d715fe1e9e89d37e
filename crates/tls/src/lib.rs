//! How the other side of a TLS connection is trusted: by the certificates that an address names, otherwise
//! by the system's roots, otherwise by the ones that browsers carry. There is no way to switch the check off.
//!
//! A server over HTTP and a Redis are reached by this one set-up, so what is trusted for one of them is
//! trusted for the other.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why TLS cannot be set up. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates that the address names cannot be used.
    #[error("the certificates in {file:?} cannot be used: {why}; name a PEM file after \"ca=\"")]
    Certificates {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        why: BadCertificates,
    },
    /// The host of the address is no name that a certificate can carry.
    #[error(
        "\"{0}\" is no name that a certificate can carry; use the name in the server's certificate"
    )]
    Name(String),
    /// The cryptography and the protocol versions do not go together: a bug of this build.
    #[error("TLS cannot be set up: {0}")]
    Versions(#[from] rustls::Error),
}

/// What is wrong with a file of certificates.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificates {
    /// It cannot be read, or is not in PEM.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// A certificate of it can be no root.
    #[error(transparent)]
    Root(#[from] rustls::Error),
    /// It holds no certificate.
    #[error("there is none in it")]
    Empty,
}

/// What is trusted, and how it is spoken to. Clones share it.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Reads the roots once: those of the file `ca`, or the system's (`SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// name other ones). `protocols` are offered to the other side (ALPN); Redis has none.
    pub fn new(ca: Option<&Path>, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let roots = match ca {
            Some(file) => roots_in(file)
                .map_err(|why| TlsError::Certificates { file: file.to_owned(), why })?,
            None => roots_of_the_system(),
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Shakes hands over `stream` with a side whose certificate carries this name.
    pub async fn connect<S>(&self, host: HostName, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.connector.connect(host.0, stream).await
    }
}

/// What speaks HTTP over TLS with a host: by the usual roots, which are read once in the life of the process, and the name that its
/// certificate must carry. The error is a sentence: it is kept for all who ask later.
pub fn for_http(host: &str) -> Result<(Tls, HostName), String> {
    static TRUSTED: OnceLock<Result<Tls, String>> = OnceLock::new();
    let tls = TRUSTED.get_or_init(|| Tls::new(None, &[b"http/1.1"]).map_err(|why| why.to_string()));
    let name = HostName::parse(host).map_err(|why| why.to_string())?;
    Ok((tls.clone()?, name))
}

/// The name that a certificate must carry.
#[derive(Clone, Debug)]
pub struct HostName(ServerName<'static>);

impl HostName {
    /// The name or address of a host.
    pub fn parse(host: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        name.map(HostName).map_err(|_| TlsError::Name(host.to_owned()))
    }
}

fn roots_in(file: &Path) -> Result<RootCertStore, BadCertificates> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        return Err(BadCertificates::Empty);
    }
    Ok(roots)
}

fn roots_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_says_why_and_what_to_name() {
        let Err(no) = Tls::new(Some(Path::new("/there/is/no.pem")), &[]) else {
            panic!("a file that is not there was used")
        };
        assert!(no.to_string().starts_with("the certificates in \"/there/is/no.pem\""), "{no}");
        assert!(no.to_string().ends_with("; name a PEM file after \"ca=\""), "{no}");
        assert!(no.source().is_some(), "{no:?}");
        let Err(no) = Tls::new(Some(Path::new(env!("CARGO_MANIFEST_PATH"))), &[]) else {
            panic!("a file without certificates was used")
        };
        assert!(no.to_string().contains("there is none in it"), "{no}");
    }

    #[test]
    fn a_certificate_carries_names_and_addresses() {
        for host in ["localhost", "redis.example.com", "127.0.0.1", "::1"] {
            assert!(HostName::parse(host).is_ok(), "{host}");
        }
        for host in ["", "a b", "höst"] {
            assert!(HostName::parse(host).is_err(), "{host}");
        }
    }
}
