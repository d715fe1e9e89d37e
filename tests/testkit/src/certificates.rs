//! Certificates of test authorities, as PEM.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// An authority that is trusted only if a test names it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as PEM.
    pub pem: String,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyedCertificate {
    pub certificate: String,
    pub key: String,
}

/// The paths of a certificate and its key.
#[derive(Clone)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    /// The key, readable by its owner alone.
    pub key: PathBuf,
}

impl Authority {
    /// A new authority with this name.
    pub fn named(name: &str) -> Self {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let pem = params.self_signed(&key).expect("an authority signs itself").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes its certificate into the folder.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("{name}.pem"));
        fs::write(&path, &self.pem).expect("a certificate can be written");
        path
    }

    /// A certificate for these names or addresses of a server.
    pub fn signs(&self, names: &[&str]) -> KeyedCertificate {
        self.signed(params(names))
    }

    /// A certificate for a client.
    pub fn signs_client(&self) -> KeyedCertificate {
        let mut params = params(&["client"]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed(params)
    }

    /// A certificate that expired long ago.
    pub fn signed_once(&self, names: &[&str]) -> KeyedCertificate {
        let mut params = params(names);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        self.signed(params)
    }

    fn signed(&self, params: CertificateParams) -> KeyedCertificate {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs");
        KeyedCertificate { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("a test's names are good")
}

impl KeyedCertificate {
    /// Writes both into the folder, over earlier ones; each file is complete at any time.
    pub fn write(&self, folder: &Path, name: &str) -> CertificateFiles {
        let put = |suffix: &str, text: &str| {
            let path = folder.join(format!("{name}{suffix}"));
            let new = path.with_extension("new");
            fs::write(&new, text).expect("a file can be written");
            fs::set_permissions(&new, Permissions::from_mode(0o600)).expect("it is ours");
            fs::rename(&new, &path).expect("it can take the place");
            path
        };
        CertificateFiles {
            certificate: put(".crt", &self.certificate),
            key: put(".key", &self.key),
        }
    }
}
