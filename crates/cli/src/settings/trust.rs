//! The authorities that a client trusts, and the certificate that it shows, over `https://`: flags, then variables,
//! then the profile.

use std::path::PathBuf;
use std::sync::OnceLock;

use tenure::remote::{Identity, Trust};

use crate::args::Global;
use crate::exit::Failure;

/// Set once, when the command line of this process is read.
static CHOSEN: OnceLock<Trust> = OnceLock::new();

/// The trust of this process; the system's authorities before its command line is read.
pub fn trust() -> Trust {
    CHOSEN.get().cloned().unwrap_or_default()
}

/// The keys of a profile that are about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileTrust {
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Decides it, before a store is opened.
///
/// # Errors
/// A certificate is named without its key, or a key without its certificate.
pub fn choose(global: &Global, profile: ProfileTrust) -> Result<(), Failure> {
    let named = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    let certificate = named(&global.client_cert).or(profile.certificate);
    let key = named(&global.client_key).or(profile.key);
    let identity = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (certificate, _) => {
            let (one, other) = match certificate {
                Some(_) => ("certificate", "key"),
                None => ("key", "certificate"),
            };
            return Err(Failure::usage(format!("a client {one} is named, and its {other} is not"))
                .hint("name both: --client-cert and --client-key, or their variables"));
        }
    };
    let _ = CHOSEN.set(Trust { ca: named(&global.ca).or(profile.ca), identity });
    Ok(())
}
