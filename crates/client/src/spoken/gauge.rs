//! The gauge of a limit, in plain text.

use std::time::Duration;

use tenure_core::time::Span;

use crate::spoken::Spoken;

/// An address that shows how much work others have started. That work counts like permits granted here. The server
/// reads it, or the workers if there is no server, for as long as the limit is in use.
///
/// ```
/// use std::time::Duration;
/// use tenure::Gauge;
///
/// // What is pending or running there, except what has a lease here under the same id.
/// let spiders = Gauge::scrapyd("http://127.0.0.1:6800").project("news");
/// // The sum of numbers in a JSON document. If it cannot be read for a minute, nothing is granted.
/// let builds = Gauge::count("https://ci.example.com/status", ["/running", "/queued"])
///     .every(Duration::from_secs(5))
///     .lag(Duration::from_secs(20))
///     .stale(Duration::from_secs(60))
///     .hold_when_stale();
/// ```
#[derive(Clone, Debug)]
pub struct Gauge(Spoken);

impl Gauge {
    /// The jobs that a scrapyd lists as pending or running. The address may contain a login; it is never shown.
    pub fn scrapyd(url: &str) -> Self {
        Gauge(Spoken::default().say("scrapyd", url))
    }
    /// The sum of the whole numbers at these JSON pointers (RFC 6901), 1 to 16, in the answer to a GET of the address.
    /// They count our own work too. The address may contain a login; it is never shown.
    pub fn count<P: Into<String>>(url: &str, pointers: impl IntoIterator<Item = P>) -> Self {
        let pointers: Vec<String> = pointers.into_iter().map(Into::into).collect();
        Gauge(Spoken::default().say("url", url).say("count", pointers))
    }

    /// Counts only this project of a scrapyd. A scrapyd before 1.5 needs it.
    pub fn project(self, name: &str) -> Self {
        Gauge(self.0.say("project", name))
    }
    /// How often it is read while the limit is in use: 500 ms to 1 h, 2 s by default.
    pub fn every(self, every: Duration) -> Self {
        Gauge(self.0.say("every", Span::from(every)))
    }
    /// How long it may take until the address shows a started job: at most 1 h, 10 s by default.
    pub fn lag(self, lag: Duration) -> Self {
        Gauge(self.0.say("lag", Span::from(lag)))
    }
    /// The age at which the last reading is too old: three times `every`, and at least 5 s, to 1 d; 30 s by default.
    pub fn stale(self, stale: Duration) -> Self {
        Gauge(self.0.say("stale", Span::from(stale)))
    }
    /// Grants nothing while the last reading is too old. By default its value still counts.
    pub fn hold_when_stale(self) -> Self {
        Gauge(self.0.say("on_stale", "hold"))
    }

    /// Adds it to the body of a limit.
    pub(crate) fn said_in(self, limit: Spoken) -> Spoken {
        limit.say("gauge", self.0)
    }
}
