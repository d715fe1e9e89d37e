//! Certificates of authorities that a test makes up, as PEM.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// An authority that nobody trusts who is not told to.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub pem: String,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// Where a certificate lies, and its key.
#[derive(Clone)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key, which its owner alone may read.
    pub key: PathBuf,
}

impl Authority {
    /// One of this name.
    pub fn named(name: &str) -> Self {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let pem = params.self_signed(&key).expect("an authority signs itself").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes its certificate there.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("{name}.pem"));
        fs::write(&path, &self.pem).expect("a certificate can be written");
        path
    }

    /// A certificate for these names or addresses of a server.
    pub fn signs(&self, names: &[&str]) -> KeyedCertificate {
        self.signed(params(names))
    }

    /// One of a client.
    pub fn signs_client(&self) -> KeyedCertificate {
        let mut params = params(&["client"]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed(params)
    }

    /// One that is over since long ago.
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
    /// Writes both there, in place of those before; each is whole at any moment.
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
