//! Tells people when the store goes away and when it is back: once for each absence and then once a minute, however
//! often calls fail meanwhile. An absence of less than half a second is not reported. A token that has used up its
//! bounds is reported once a minute, too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure::Client;
use tenure::token_bounds::wait_after;
use tenure::url::StoreUrl;
use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::Request;
use tenure_core::time::Span;
use tenure_engine_api::{AroundEngine, CallError, CallFuture, Engine, Fault};

use crate::output::tell;

/// Shorter absences are not reported: a server that starts again, a connection that was closed.
const NEWS: Duration = Duration::from_millis(500);
/// An absence that goes on is reported again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// An absence that was reported.
struct Absence {
    began: Instant,
    told: Instant,
}

/// Reports the absences of one store.
pub struct Contact {
    /// The address, without a password.
    store: String,
    absence: Mutex<Option<Absence>>,
    /// When it was last reported that the token must wait; `None`: never.
    slowed: Mutex<Option<Instant>>,
}

impl Contact {
    /// With the store at this address.
    pub fn with(url: &str) -> Self {
        let store = url.parse::<StoreUrl>().map_or("the store".to_owned(), |url| url.to_string());
        Contact { store, absence: Mutex::default(), slowed: Mutex::default() }
    }

    /// A call failed and is made again; nothing has answered for `away`.
    pub fn lost(&self, error: &CallError, away: Duration) {
        if let CallError::Refused(no) = error
            && wait_after(no).is_some()
        {
            if self.is_news_that_it_waits(Instant::now()) {
                tell(&waits(no));
            }
            return;
        }
        let now = Instant::now();
        let mut absence = self.absence.lock().unwrap_or_else(PoisonError::into_inner);
        let long = match &mut *absence {
            Some(absence) if now - absence.told < AGAIN => return,
            Some(absence) => {
                absence.told = now;
                Some(now - absence.began)
            }
            None if away < NEWS => return,
            none => {
                *none = Some(Absence { began: now.checked_sub(away).unwrap_or(now), told: now });
                None
            }
        };
        tell(&lost(&self.store, error, long));
    }

    fn is_news_that_it_waits(&self, now: Instant) -> bool {
        let mut last = self.slowed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = last.is_none_or(|at| now - at >= AGAIN);
        if is_news {
            *last = Some(now);
        }
        is_news
    }

    /// The store answers again.
    pub fn found(&self) {
        let absence = self.absence.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(absence) = absence {
            tell(&format!("reached {} again after {}", self.store, long(absence.began.elapsed())));
        }
    }
}

/// A client whose waits report that the store is away: for a command that makes no other calls, and goes on with them.
pub fn telling(client: &Client, url: &str) -> Client {
    let state = Told { contact: Contact::with(url), failing_since: Mutex::default() };
    let engine = Telling { engine: client.engine().clone(), told: Arc::new(state) };
    Client::new(Arc::new(engine), client.namespace().clone())
}

struct Told {
    contact: Contact,
    failing_since: Mutex<Option<Instant>>,
}

/// An engine whose failed calls are reported.
struct Telling {
    engine: Arc<dyn Engine>,
    told: Arc<Told>,
}

impl AroundEngine for Telling {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        let call = self.engine.call_by(by, namespace, request);
        let state = self.told.clone();
        Box::pin(async move {
            let answer = call.await;
            let mut failing = state.failing_since.lock().unwrap_or_else(PoisonError::into_inner);
            match &answer {
                Err(
                    error @ CallError::Fault(
                        Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_),
                    ),
                ) => {
                    let since = *failing.get_or_insert_with(Instant::now);
                    state.contact.lost(error, since.elapsed());
                }
                Err(error @ CallError::Refused(no)) if wait_after(no).is_some() => {
                    state.contact.lost(error, Duration::ZERO);
                }
                Ok(_) | Err(_) => {
                    *failing = None;
                    state.contact.found();
                }
            }
            drop(failing);
            answer
        })
    }
}

/// The sentence on a token that has used up its bounds.
fn waits(no: &Refusal) -> String {
    format!("{}; waiting as long as the server says", no.detail)
}

/// The sentence on an absence, which has lasted for `since`, if it was reported before.
fn lost(store: &str, error: &CallError, since: Option<Duration>) -> String {
    let since = since.map_or(String::new(), |since| format!(" for {}", long(since)));
    let (head, why) = match error {
        CallError::Fault(Fault::Unavailable(why) | Fault::Unknown(why)) => ("cannot reach", why),
        CallError::Fault(Fault::StoreAway(why) | Fault::Broken(why)) => ("no service of", why),
        CallError::Fault(Fault::Denied(no)) | CallError::Refused(no) => {
            ("no service of", &no.detail)
        }
    };
    // `store` has the address already.
    let address = store.split_once("://").map_or(store, |(_, address)| address);
    let why = why.strip_prefix(address).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
    let why = why.split(" (os error").next().unwrap_or(why);
    format!("{head} {store}{since}: {why}; trying again until it answers")
}

/// In tenths of a second.
fn long(span: Duration) -> String {
    let tenths = u64::try_from(span.as_millis() / 100).unwrap_or(u64::MAX / 100);
    Span::from_ms(tenths.saturating_mul(100)).to_string()
}

#[cfg(test)]
mod tests {
    use tenure_core::sentences::AccessRefusal;

    use super::*;

    #[test]
    fn an_absence_names_the_store_and_what_is_wrong() {
        let refused = CallError::Fault(Fault::Unavailable(
            "h:1: Connection refused (os error 111)".to_owned(),
        ));
        let store = Contact::with("tenure://h:1").store;
        assert_eq!(
            lost(&store, &refused, None),
            "cannot reach http://h:1: Connection refused; trying again until it answers"
        );
        let minute = Some(Duration::from_millis(61_250));
        assert_eq!(
            lost(&store, &refused, minute),
            "cannot reach http://h:1 for 1m1s200ms: Connection refused; trying again until it answers"
        );
    }

    #[test]
    fn a_token_that_must_wait_is_reported_once_a_minute() {
        let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
        let no = Refusal::from(AccessRefusal::TooManyCalls { caller, calls, wait_s: 1 });
        assert_eq!(
            waits(&no),
            "the token \"crawler\" may make 2/1s calls, and has made them; waiting as long as the server says"
        );
        let (contact, begun) = (Contact::with("http://h:1"), Instant::now());
        for (s, is_news) in [(0, true), (1, false), (59, false), (60, true), (61, false)] {
            let now = begun + Duration::from_secs(s);
            assert_eq!(contact.is_news_that_it_waits(now), is_news, "after {s} s");
        }
        // The store is there.
        contact.lost(&no.into(), NEWS * 2);
        assert!(contact.absence.lock().unwrap().is_none());
    }

    #[test]
    fn a_long_absence_is_reported_once_and_a_short_one_never() {
        let refused = CallError::Fault(Fault::Unavailable("refused".to_owned()));
        let contact = Contact::with("http://h:1");
        let told = || contact.absence.lock().unwrap().as_ref().map(|absence| absence.told);
        contact.lost(&refused, NEWS - Duration::from_millis(1));
        assert_eq!(told(), None);
        contact.lost(&refused, NEWS);
        let first = told();
        assert!(first.is_some());
        contact.lost(&refused, NEWS * 2);
        assert_eq!(told(), first);
        contact.found();
        assert_eq!(told(), None);
    }
}
