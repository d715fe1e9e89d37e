//! Reads certificates and keys from PEM files.
//!
//! A key never reaches a message: an error names a file by its path alone.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, RootCertStore};

/// No file of certificates is longer: the roots of a whole system have a quarter of this.
const BYTES_MAX: u64 = 1 << 20;

/// Why a file of certificates or of a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemFileError {
    /// It cannot be read.
    #[error("cannot read \"{}\": {why}", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        why: io::Error,
    },
    /// The file has no certificate.
    #[error("there is no certificate in \"{}\"; it must be a PEM file, with \"-----BEGIN CERTIFICATE-----\"", .0.display())]
    NoCertificate(PathBuf),
    /// The file has no key.
    #[error("there is no private key in \"{}\"; it must be a PEM file, with \"-----BEGIN PRIVATE KEY-----\"", .0.display())]
    NoKey(PathBuf),
    /// Its key is locked by a passphrase.
    #[error("the key in \"{}\" has a passphrase, which nobody could type; write it without one: openssl pkey -in LOCKED -out KEY", .0.display())]
    Locked(PathBuf),
    /// It begins as PEM and then breaks off.
    #[error("\"{}\" is damaged: {why}; write it again", file.display())]
    Damaged {
        file: PathBuf,
        /// The place where it breaks off.
        #[source]
        why: pem::Error,
    },
    /// A certificate in it cannot be a root.
    #[error("a certificate in \"{}\" is not one of an authority: {why}; name the certificate that signed the others", file.display())]
    NoRoot {
        file: PathBuf,
        /// The fault in that certificate.
        #[source]
        why: rustls::Error,
    },
}

impl PemFileError {
    /// The file and the system's error, if it could not be read at all.
    pub fn unreadable(&self) -> Option<(&Path, &io::Error)> {
        match self {
            PemFileError::Unreadable { file, why } => Some((file, why)),
            _ => None,
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, PemFileError> {
    let text = File::open(file).and_then(|open| {
        let mut text = Vec::new();
        open.take(BYTES_MAX).read_to_end(&mut text)?;
        Ok(text)
    });
    text.map_err(|why| PemFileError::Unreadable { file: file.to_owned(), why })
}

/// All certificates of a file, in its order; at least one.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PemFileError> {
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|why| PemFileError::Damaged { file: file.to_owned(), why })?;
    if found.is_empty() { Err(PemFileError::NoCertificate(file.to_owned())) } else { Ok(found) }
}

/// The first key of a file.
pub(crate) fn key(file: &Path) -> Result<PrivateKeyDer<'static>, PemFileError> {
    const LOCKED: &[u8] = b"ENCRYPTED";
    let text = read(file)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|why| match why {
        pem::Error::NoItemsFound if text.windows(LOCKED.len()).any(|part| part == LOCKED) => {
            PemFileError::Locked(file.to_owned())
        }
        pem::Error::NoItemsFound => PemFileError::NoKey(file.to_owned()),
        why => PemFileError::Damaged { file: file.to_owned(), why },
    })
}

/// The authorities of a file.
pub(crate) fn roots(file: &Path) -> Result<RootCertStore, PemFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|why| PemFileError::NoRoot { file: file.to_owned(), why })?;
    }
    Ok(roots)
}
