//! TLS of a server, by its settings.

use tenure_tls::{ServerFiles, ServerTls, ServerTlsError};

use super::renewal::Renewal;
use crate::args::serve::ServeArgs;
use crate::exit::Failure;
use crate::settings::file::readable_by_others;

/// The certificate and key of the server; `None`: it speaks HTTP in clear.
///
/// # Errors
/// Half of it is named, or a file cannot be used.
pub fn of(args: &ServeArgs, renewal: &mut Renewal) -> Result<Option<ServerTls>, Failure> {
    let ServeArgs { tls_cert, tls_key, tls_client_ca, .. } = args;
    let (certificate, key) = match (tls_cert, tls_key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) if tls_client_ca.is_none() => return Ok(None),
        (Some(_), None) => return Err(missing("--tls-cert", "its key", "--tls-key")),
        (None, Some(_)) => return Err(missing("--tls-key", "its certificate", "--tls-cert")),
        (None, None) => {
            let rest = "a certificate of the server";
            return Err(missing("--tls-client-ca", rest, "--tls-cert and --tls-key"));
        }
    };
    if let Some(warning) = readable_by_others(key, "the key of the server") {
        tracing::warn!("{warning}");
    }
    let files = ServerFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_ca: tls_client_ca.clone(),
    };
    let all = [certificate, key].into_iter().chain(tls_client_ca).cloned().collect();
    let tls = renewal.first(all, || ServerTls::read(files));
    tls.map(Some).map_err(|why| failure(&why))
}

fn missing(given: &str, what: &str, option: &str) -> Failure {
    Failure::usage(format!("{given} is given, and {what} is not"))
        .hint(format!("name {what} with {option}, or leave {given} out"))
}

fn failure(why: &ServerTlsError) -> Failure {
    if let Some((file, why)) = why.unreadable() {
        return Failure::file(format!("cannot read '{}'", file.display()), why);
    }
    let text = why.to_string();
    match text.split_once("; ") {
        Some((sentence, hint)) => Failure::usage(sentence).hint(hint),
        None => Failure::usage(text),
    }
}
