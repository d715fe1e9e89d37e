//! Client side: whom it trusts, how it identifies itself, and what to do when a handshake fails.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, InconsistentKeys, InvalidMessage,
    RootCertStore,
};

use crate::pem_files::{self, PemFileError};

/// The protocol offered to a server over HTTP: calls in flight become one, and need no other way to share a connection.
const HTTP_1: &[&[u8]] = &[b"http/1.1"];

/// Why TLS cannot be set up. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of trusted authorities cannot be used.
    #[error("{why}; \"ca\" names a PEM file of certificates")]
    Certificates {
        /// The fault in that file.
        #[source]
        why: PemFileError,
    },
    /// The certificate or key of the client cannot be used.
    #[error(transparent)]
    Identity(PemFileError),
    /// The client's key and certificate do not fit each other.
    #[error("the key in \"{}\" does not fit the client certificate in \"{}\"; name the key that it was made with", .0.key.display(), .0.certificate.display())]
    Mismatch(Identity),
    /// The host of the address is not a name that a certificate can carry.
    #[error(
        "\"{0}\" is no name that a certificate can carry; use the name in the server's certificate"
    )]
    Name(String),
    /// The cryptography and the protocol versions do not go together: a bug of this build.
    #[error("TLS cannot be set up: {0}")]
    Versions(#[from] rustls::Error),
}

/// The certificate and key of a client, for a server that asks for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its certificate, in PEM, followed by those between it and the authority.
    pub certificate: PathBuf,
    /// The key that the certificate was made with, in PEM.
    pub key: PathBuf,
}

/// The authorities that a client trusts, and its own certificate.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Trust {
    /// A PEM file with the authorities of the server's certificate; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate for a server that asks for one.
    pub identity: Option<Identity>,
}

/// A TLS client: trusted roots and offered protocols. Clones share it.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Reads the roots once: those of the file `ca`, or the system's (`SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// name other ones). `protocols` are offered to the other side (ALPN); Redis has none.
    pub fn new(ca: Option<&Path>, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let trust = Trust { ca: ca.map(Path::to_owned), identity: None };
        Tls::trusting(&trust, protocols)
    }

    /// The same for a client that may have a certificate of its own.
    pub fn trusting(trust: &Trust, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let roots = match &trust.ca {
            Some(file) => pem_files::roots(file).map_err(|why| TlsError::Certificates { why })?,
            None => roots_of_the_system(),
        };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &trust.identity {
            None => config.with_no_client_auth(),
            Some(own) => {
                let chain =
                    pem_files::certificates(&own.certificate).map_err(TlsError::Identity)?;
                let key = pem_files::key(&own.key).map_err(TlsError::Identity)?;
                config.with_client_auth_cert(chain, key).map_err(|why| match why {
                    rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                        TlsError::Mismatch(own.clone())
                    }
                    why => TlsError::Versions(why),
                })?
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Shakes hands over `stream` with a server whose certificate carries this name.
    pub async fn connect<S>(&self, host: HostName, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.connector.connect(host.0, stream).await
    }
}

/// A TLS client for HTTP/1.1 with a host, and the name that its certificate must carry.
///
/// # Errors
/// A file cannot be used, or a certificate cannot carry that name.
pub fn for_http_trusting(trust: &Trust, host: &str) -> Result<(Tls, HostName), TlsError> {
    Ok((Tls::trusting(trust, HTTP_1)?, HostName::parse(host)?))
}

/// A TLS client for HTTP with a host: by the system's roots, which are read once in the life of the process, and the
/// name that its certificate must carry. The error is a text: it is kept for all later calls.
pub fn for_http(host: &str) -> Result<(Tls, HostName), String> {
    static TRUSTED: OnceLock<Result<Tls, String>> = OnceLock::new();
    let tls = TRUSTED.get_or_init(|| Tls::new(None, HTTP_1).map_err(|why| why.to_string()));
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

fn roots_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// What to tell the user if `host` ended the connection because it rejects the certificate of this client, or requires
/// one. With TLS 1.3 a client learns that after it has sent a request, which the server has then not read.
pub fn refusal(failed: &(dyn Error + 'static), host: &str) -> Option<String> {
    use AlertDescription as A;
    match cause(failed)? {
        rustls::Error::AlertReceived(A::CertificateRequired) => Some(format!(
            "{host} asks callers for a certificate; name yours and its key (--client-cert and --client-key, \
             TENURE_CLIENT_CERT and TENURE_CLIENT_KEY)"
        )),
        rustls::Error::AlertReceived(
            A::UnknownCA
            | A::BadCertificate
            | A::DecryptError
            | A::CertificateExpired
            | A::CertificateUnknown,
        ) => Some(format!(
            "{host} does not take the certificate of this client; show one that is valid and of the authority that the \
             server asks for"
        )),
        _ => None,
    }
}

/// What to tell the user if TLS prevented or ended a connection to `host`; `None` if TLS is not the reason.
pub fn advice(failed: &(dyn Error + 'static), host: &str) -> Option<String> {
    use CertificateError as C;
    if let Some(refusal) = refusal(failed, host) {
        return Some(refusal);
    }
    let advice = match cause(failed)? {
        rustls::Error::InvalidCertificate(why) => match why {
            C::UnknownIssuer => format!(
                "the certificate of {host} is of an authority that is not trusted here; name the authority's certificate \
                 (--ca, TENURE_CA, or \"ca\" of a library)"
            ),
            C::NotValidForName => format!(
                "the certificate of {host} is for another name; use the name that is in it, or give the server one with this name"
            ),
            C::NotValidForNameContext { presented, .. } => format!(
                "the certificate of {host} is for {}; use such a name in the address, or give the server a certificate with \
                 the name {host}",
                names(presented)
            ),
            C::Expired | C::ExpiredContext { .. } => format!(
                "the certificate of {host} has expired; renew it at the server, which takes a new one while it runs"
            ),
            C::NotValidYet | C::NotValidYetContext { .. } => format!(
                "the certificate of {host} is not valid yet; compare the clocks of this machine and of the one that made it"
            ),
            why => format!(
                "the certificate of {host} cannot be used: {why}; give the server another one"
            ),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            format!(
                "{host} does not speak TLS on this port; write http:// if it is to be called in clear"
            )
        }
        why => format!("TLS with {host} failed: {why}"),
    };
    Some(advice)
}

/// The error of TLS, however deep it lies below the errors of the layers above.
fn cause<'e>(failed: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut here = Some(failed);
    while let Some(error) = here {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An I/O error names the cause of its cause, not its content.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        here = match held {
            Some(held) => Some(held as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// The first names of a certificate.
fn names(presented: &[String]) -> String {
    const SHOWN: usize = 5;
    let plain = |name: &String| match name.split_once('(') {
        // In the form of its library: DnsName("localhost"), IpAddress(127.0.0.1).
        Some((_, name)) => name.trim_end_matches(')').trim_matches('"').to_owned(),
        None => name.clone(),
    };
    let shown: Vec<String> = presented.iter().take(SHOWN).map(plain).collect();
    match (shown.is_empty(), presented.len() > SHOWN) {
        (true, _) => "no name".to_owned(),
        (false, false) => shown.join(", "),
        (false, true) => format!("{} and others", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_says_why_and_what_to_name() {
        let Err(no) = Tls::new(Some(Path::new("/there/is/no.pem")), &[]) else {
            panic!("a file that is not there was used")
        };
        assert!(no.to_string().starts_with("cannot read \"/there/is/no.pem\""), "{no}");
        assert!(no.to_string().ends_with("; \"ca\" names a PEM file of certificates"), "{no}");
        assert!(no.source().is_some(), "{no:?}");
        let Err(no) = Tls::new(Some(Path::new(env!("CARGO_MANIFEST_PATH"))), &[]) else {
            panic!("a file without certificates was used")
        };
        assert!(no.to_string().contains("there is no certificate in"), "{no}");
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
