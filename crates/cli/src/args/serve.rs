//! `serve`: what a server is started with. Each option is a setting with a variable and a key: see `settings::layers`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure_core::bounds::{
    BODY_BYTES_MAX, NAMESPACES_MAX_DEFAULT, PAGE_BYTES_MAX, TRAIL_BYTES_MIN,
};
use tenure_core::time::{Moment, Span};

use crate::args::config::ConfigArg;
use crate::args::value::{moment, positive, span};
use crate::logging::{LogFormat, LogLevel};
use crate::settings::effective::Settings;

/// A body and an answer of the largest size, within the three quarters that ordinary calls may use.
const IN_FLIGHT_BYTES_MIN: u64 = 32 << 20;
const _: () = assert!(IN_FLIGHT_BYTES_MIN / 4 * 3 >= (BODY_BYTES_MAX + PAGE_BYTES_MAX) as u64);

/// The arguments of `tenure serve`.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    /// The address to listen on; beyond loopback a token of at least 32 characters is required.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7171")]
    pub listen: String,
    /// The store: file:PATH (created if it does not exist), memory:, or the address of a Redis or Valkey (redis://
    /// and the like). Several servers may share a store on Redis: one of them leads the store, the others forward
    /// calls to it. Put an address with a password into TENURE_STORE, where other users of this machine cannot see
    /// it.
    #[arg(long, value_name = "STORE", default_value = "file:./tenure-data")]
    pub store: String,
    /// The address at which other servers and clients reach this one, for a store on Redis that several servers
    /// share. If not given, the address of --listen; if others cannot reach that, a guess, with a warning. If the
    /// other servers speak HTTPS, TENURE_CA names the authority of their certificates.
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// A file with the token, or several, one per line: each is valid, and clients send the first. Read again when
    /// it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A shell command that prints the token, such as "pass show tenure".
    #[arg(long, value_name = "CMD")]
    pub token_command: Option<String>,
    /// A file of tokens with scopes, of which it has the hashes: see `tenure token`. Read again like the file of
    /// --token-file, whose tokens have all rights.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Seal payloads, results, errors, progress, schedules and the data of resources with the first key of this file, so
    /// that folder, Redis and backups hold no clear ones; all keys of it open. Each line is 32 bytes in base64: openssl
    /// rand -base64 32. All servers of a store need the file.
    #[arg(long, value_name = "FILE")]
    pub seal_key_file: Option<PathBuf>,
    /// Speak HTTPS with the certificate in this PEM file, followed by the intermediate certificates. Read again
    /// when it changes, and on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM and without a passphrase.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Accept only clients with a certificate of an authority in this PEM file, for health checks too.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// When writes are synced to the disk: before each answer (always), or every second, so that a power loss can
    /// lose the last second (everysec). On Redis, `appendfsync` decides this.
    #[arg(long, value_enum, default_value_t = DurabilityArg::Always)]
    pub durability: DurabilityArg,
    /// Space for finished jobs: a number of bytes, or with KiB, MiB, GiB, TiB; 1GiB if not given. A store on Redis
    /// takes it when it is created; `tenure store set` changes it.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub retain_bytes: Option<u64>,
    /// Space for the events of each namespace, where the oldest are dropped first; 0 keeps none, 16MiB if not
    /// given. On Redis as --retain-bytes.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub events_bytes: Option<u64>,
    /// Maximum size of the folder of a file: store. Before it or the disk is full, pushes are refused as
    /// `store_full`; settles, cancels and deletes are always accepted.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_bytes: Option<u64>,
    /// Maximum number of namespaces; a call that would create another one is refused as `namespaces_full`. Existing
    /// namespaces stay.
    #[arg(long, value_name = "N", default_value_t = NAMESPACES_MAX_DEFAULT as u32, value_parser = positive)]
    pub namespaces_max: u32,
    /// Maximum bytes of request bodies and unread answers at once, over all connections. Beyond it calls are
    /// answered 503 `overloaded`, heartbeats and settles last. At least 32MiB; if not given, an eighth of the
    /// memory of the machine or of its control group.
    #[arg(long, value_name = "SIZE", value_parser = in_flight)]
    pub max_in_flight_bytes: Option<u64>,
    /// After SIGTERM the server ends when all running calls are answered and no heartbeat or settle has come for
    /// half a second, at the latest after this time.
    #[arg(long, value_name = "D", default_value = "25s", value_parser = span)]
    pub drain_timeout: Span,
    /// A job that has been blocked for this long reserves its needs; 10s if not given. On Redis as --retain-bytes.
    #[arg(long, value_name = "D", value_parser = span)]
    pub patience: Option<Span>,
    /// The log level on stderr: error, warn, info, debug (a line for each request) or trace; TARGET=LEVEL sets it
    /// for a part of Tenure, several separated by commas.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = LogLevel::parse)]
    pub log_level: LogLevel,
    /// The format of the log; if not given, text on a terminal and json elsewhere.
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,
    /// Hosts that a gauge may query although their addresses are link-local (169.254.0.0/16, fe80::/10): names or
    /// addresses, separated by commas.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub gauge_allow: Vec<String>,
    /// Serve only the API, without the dashboard at /.
    #[arg(long)]
    pub no_dashboard: bool,
    /// A separate address for /metrics, which serves nothing else; beyond loopback it requires a token, the
    /// server's or the one for metrics.
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics_listen: Option<String>,
    /// A file with tokens for Prometheus, one per line: each can read /metrics and nothing else. Read again like
    /// the file of --token-file. TENURE_METRICS_TOKEN may hold the token itself.
    #[arg(long, value_name = "FILE")]
    pub metrics_token_file: Option<PathBuf>,
    /// The folder of the trail, which has a line for each change, login and refusal, or `-` for stderr. If not given,
    /// `trail` in the folder of a file: store, and none for other stores.
    #[arg(long, value_name = "DIR|-")]
    pub trail: Option<PathBuf>,
    /// Refuse changes (calls that need operate or admin) with 503 while the trail cannot be written; pushes and workers
    /// go on.
    #[arg(long)]
    pub trail_required: bool,
    /// Space for the trail, 1MiB or more, where the oldest file is deleted first; files older than 90 days are deleted
    /// in any case. 0 keeps no trail.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = trail_bytes)]
    pub trail_bytes: u64,
    /// An OpenTelemetry collector that receives traces and metrics over HTTP, such as http://127.0.0.1:4318.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// For tests of your own code, only with --store memory:. Time stands still, at MOMENT or now, until POST
    /// /v1/test/clock moves it.
    #[arg(long, value_name = "MOMENT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "now", value_parser = test_clock)]
    pub test_clock: Option<TestClock>,
    /// Where its settings are; /etc/tenure/tenure.toml if it is there and no other is named.
    #[command(flatten)]
    pub config: ConfigArg,
    /// Print the effective settings and their origins as a settings file, and exit.
    #[arg(long)]
    pub print_config: bool,
    /// The settings with their sources, after all layers were read.
    #[arg(skip)]
    pub settings: Settings,
}

impl ServeArgs {
    /// How long a drain may take.
    pub fn drain_max(&self) -> Duration {
        self.drain_timeout.std()
    }
}

/// Where the clock of a test stands at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestClock {
    /// At the time of the start.
    Now,
    /// At a time that the option names.
    At(Moment),
}

fn test_clock(text: &str) -> Result<TestClock, String> {
    match text {
        "now" => Ok(TestClock::Now),
        text => moment(text).map(TestClock::At),
    }
}

/// The values of `--durability`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DurabilityArg {
    /// Every answer was synced.
    Always,
    /// The disk is synced once a second.
    Everysec,
}

/// Space for a trail, or 0 for none.
fn trail_bytes(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes @ 1..TRAIL_BYTES_MIN => {
            Err(format!("{bytes} bytes are too few: write \"1MiB\" or more, or 0 for no trail"))
        }
        bytes => Ok(bytes),
    }
}

/// A size within which the largest call fits.
fn in_flight(text: &str) -> Result<u64, String> {
    let size = size(text)?;
    if size < IN_FLIGHT_BYTES_MIN {
        return Err("a single call may need 32MiB: write \"32MiB\" or more".to_owned());
    }
    Ok(size)
}

/// A size: `1GiB`, `500MB`, `4096`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write a size as \"512MiB\", \"1GiB\" or a number of bytes".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let unit: u64 = match text[end..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" | "k" => 1 << 10,
        "mib" | "m" => 1 << 20,
        "gib" | "g" => 1 << 30,
        "tib" | "t" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// A size as [`size`] takes it, in the largest unit that divides it.
pub fn size_text(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(bits, _): &(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << bits);
    match units.into_iter().find(fits) {
        Some((bits, unit)) => format!("{}{unit}", bytes >> bits),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::bounds::TRAIL_BYTES_DEFAULT;

    use super::*;

    #[test]
    fn the_space_of_a_trail_is_none_or_a_mebibyte_and_more() {
        assert_eq!(trail_bytes("1GiB"), Ok(TRAIL_BYTES_DEFAULT));
        assert_eq!(trail_bytes("0"), Ok(0));
        assert_eq!(trail_bytes("1MiB"), Ok(TRAIL_BYTES_MIN));
        assert!(trail_bytes("512KiB").is_err() && trail_bytes("much").is_err());
    }

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        for (text, is) in [
            ("1GiB", Some(1 << 30)),
            ("1 gib", Some(1 << 30)),
            ("512MiB", Some(512 << 20)),
            ("10MB", Some(10_000_000)),
            ("4096", Some(4096)),
            ("0", Some(0)),
            ("", None),
            ("GiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("1XiB", None),
            ("99999999TiB", None),
        ] {
            assert_eq!(size(text).ok(), is, "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_as_it_may_be_written() {
        for (bytes, text) in [(0, "0"), (4095, "4095"), (4096, "4KiB"), (3 << 30, "3GiB")] {
            assert_eq!(size_text(bytes), text);
            assert_eq!(size(text), Ok(bytes));
        }
    }
}
