//! How an `https://` server is trusted: the system's roots, or the ones that browsers carry where
//! the system has none. There is no way to switch the check off.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What a TLS connection needs.
pub struct Tls {
    /// Roots and protocol.
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must carry.
    pub name: ServerName<'static>,
}

impl Tls {
    /// For this host; reads the system's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others).
    pub fn for_host(host: &str) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("\"{host}\" is no name that a certificate can carry"))?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), name })
    }
}
