//! How a server is trusted: by the certificates that the address names, else by the system's roots,
//! else by the ones that browsers carry. There is no way to switch the check off.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::OpenError;

/// Reads the roots once. `SSL_CERT_FILE` and `SSL_CERT_DIR` name other ones of the system.
pub fn connector(ca: Option<&Path>) -> Result<TlsConnector, OpenError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(file) => {
            let wrong = |why: String| OpenError::Certificates { file: file.to_owned(), why };
            let found =
                CertificateDer::pem_file_iter(file).map_err(|why| wrong(why.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|why| wrong(why.to_string()))?;
                roots.add(certificate).map_err(|why| wrong(why.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is none in it".to_owned()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| OpenError::Tls(why.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
