//! Makes the executor of jobs from the options of `work --http` and `work --scrapyd`. Secrets come from files and from
//! the environment, never from an argument.

use std::path::PathBuf;

use tenure::Client;
use tenure_core::time::Span;

use crate::exchange::Destination;
use crate::exit::Failure;
use crate::input::read_all;
use crate::json_args::address;
use crate::scrapyd::follow::ScrapydSpiders;
use crate::service::http_service::HttpService;
use crate::service::signature::SigningSecrets;

/// The variable of the secret if no file is named.
const SECRET: &str = "TENURE_HTTP_SECRET";
/// Longest file of secrets, in bytes.
const SECRET_BYTES_MAX: usize = 4 * 1024;

/// The service to which jobs are posted.
pub fn service(
    option: &str,
    secret_file: Option<PathBuf>,
    request_timeout: Span,
) -> Result<HttpService, Failure> {
    let destination = destination("--http", option)?;
    let secrets = match secret_file {
        Some(path) => {
            let bytes = read_all(&path, SECRET_BYTES_MAX)?;
            let what = format!("--secret-file '{}'", path.display());
            Some(secrets(&what, &String::from_utf8_lossy(&bytes))?)
        }
        None => match std::env::var_os(SECRET) {
            Some(text) => Some(secrets(SECRET, &text.to_string_lossy())?),
            None => None,
        },
    };
    Ok(HttpService::new(destination, secrets, request_timeout.std()))
}

/// The scrapyd that runs jobs.
pub fn spiders(client: &Client, text: &str, poll_every: Span) -> Result<ScrapydSpiders, Failure> {
    let destination = destination("--scrapyd", text)?;
    Ok(ScrapydSpiders::new(client.clone(), destination, poll_every.std()))
}

fn destination(option: &str, option_text: &str) -> Result<Destination, Failure> {
    let text = address(option_text)?;
    Destination::parse(&text).map_err(|bad| Failure::usage(format!("{option}: {bad}")))
}

fn secrets(what: &str, text: &str) -> Result<SigningSecrets, Failure> {
    SigningSecrets::parse(text).map_err(|bad| Failure::usage(format!("{what}: {bad}")))
}
