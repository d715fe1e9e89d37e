//! Server side: its certificate and key, reloaded while it serves, and the client certificates that it asks for.
//!
//! Open connections keep the certificate that they began with. A pair that cannot be used changes nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::{NoClientAuth, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
pub use tokio_rustls::server::TlsStream as AcceptedStream;

use crate::pem_files::{self, PemFileError};

/// The name of HTTP/2 in a handshake.
const H2: &[u8] = b"h2";

/// The files that identify a server, and those by which it identifies clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerFiles {
    /// Its certificate, followed by those between it and the authority.
    pub certificate: PathBuf,
    /// The key that the certificate was made with.
    pub key: PathBuf,
    /// The authorities of clients: if given, a connection without a certificate of one of them is refused.
    pub client_ca: Option<PathBuf>,
}

/// Why the files of a server cannot be used. No message contains any part of a key.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// One of the files cannot be used.
    #[error(transparent)]
    File(#[from] PemFileError),
    /// Certificate and key are each good, but do not belong together.
    #[error("the key in \"{}\" does not fit the certificate in \"{}\"; name the key that the certificate was made with", key.display(), certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The key or certificate is of an unknown kind, or damaged within.
    #[error("the certificate in \"{}\" with the key in \"{}\" cannot be used: {why}; ECDSA, Ed25519 and RSA are known", certificate.display(), key.display())]
    Unusable {
        certificate: PathBuf,
        key: PathBuf,
        /// The reason from the TLS library.
        #[source]
        why: rustls::Error,
    },
    /// The cryptography and the protocol versions do not go together: a bug of this build.
    #[error("TLS cannot be set up: {0}")]
    SetUp(String),
}

impl ServerTlsError {
    /// The file and the system's error, if one could not be read at all.
    pub fn unreadable(&self) -> Option<(&Path, &io::Error)> {
        match self {
            ServerTlsError::File(why) => why.unreadable(),
            _ => None,
        }
    }
}

impl ServerFiles {
    fn read(&self) -> Result<Arc<ServerConfig>, ServerTlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = pem_files::certificates(&self.certificate)?;
        let key = pem_files::key(&self.key)?;
        let pair = CertifiedKey::from_der(chain, key, &provider).map_err(|why| {
            let (certificate, key) = (self.certificate.clone(), self.key.clone());
            match why {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    ServerTlsError::Mismatch { certificate, key }
                }
                why => ServerTlsError::Unusable { certificate, key, why },
            }
        })?;
        let set_up = |why: &dyn fmt::Display| ServerTlsError::SetUp(why.to_string());
        let clients = match &self.client_ca {
            None => Arc::new(NoClientAuth) as _,
            Some(file) => {
                let roots = Arc::new(pem_files::roots(file)?);
                WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
                    .build()
                    .map_err(|why| set_up(&why))?
            }
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| set_up(&why))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The present certificate and key of a server. Clones share it.
#[derive(Clone)]
pub struct ServerTls {
    files: Arc<ServerFiles>,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerTls").field(&self.files).finish()
    }
}

impl ServerTls {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// [`ServerTlsError`]: one of them cannot be used, or they do not go together.
    pub fn read(files: ServerFiles) -> Result<Self, ServerTlsError> {
        let current = Arc::new(RwLock::new(files.read()?));
        Ok(ServerTls { files: Arc::new(files), current })
    }

    pub fn files(&self) -> &ServerFiles {
        &self.files
    }

    /// Reads the files again, for connections that come from now on.
    ///
    /// # Errors
    /// As [`ServerTls::read`]; then everything stays as it is.
    pub fn reload(&self) -> Result<(), ServerTlsError> {
        let new = self.files.read()?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Shakes hands with a caller.
    ///
    /// # Errors
    /// The caller speaks no TLS, shares no protocol, or shows no certificate although one is required; or it went away.
    /// The stream comes back with the error; the caller has been notified on it.
    pub async fn accept<S>(&self, stream: S) -> Result<AcceptedStream<S>, (io::Error, S)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(current).accept(stream).into_fallible().await
    }
}

/// Whether the handshake chose HTTP/2.
pub fn is_http2<S>(stream: &AcceptedStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}
