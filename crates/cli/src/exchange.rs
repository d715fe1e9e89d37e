//! One request to an address that a user gave, and its answer: for jobs that a program over HTTP executes.
//!
//! A connection serves one request: a connection that was kept could be closed by the other side in the moment in which
//! a job is sent, and nobody could tell whether the job was read. A redirect is answered like any other status. Dropping
//! the future closes the connection at once. Nothing here shows the login or the query of an address.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use data_encoding::BASE64;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, USER_AGENT,
};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tenure_core::gauge::GaugeAddress;
use tenure_core::secret::HIDDEN;
use tenure_core::time::Span;
use tenure_tls::Trust;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("tenure/", env!("CARGO_PKG_VERSION")));
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// A host that takes no connection within this time is not there.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Where requests go: an `http` or `https` address, with a login if it has one.
pub struct Destination {
    address: GaugeAddress,
    /// Without brackets around an IPv6 address.
    host: String,
    port: u16,
    tls: bool,
    authority: HeaderValue,
    target: PathAndQuery,
    login: Option<HeaderValue>,
    /// The login as its header has it, which no sentence may show.
    encoded: Option<String>,
    /// The authorities that it trusts instead of those of the system.
    trust: Option<Trust>,
}

/// Why a text is no [`Destination`]. It shows nothing of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the address {0}")]
pub struct BadDestination(&'static str);

/// Why there is no answer. It shows nothing of the address.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error("could not connect: {0}")]
    Connect(#[source] io::Error),
    #[error("could not connect within {}", Span::from_us(CONNECT_MAX.as_micros() as u64))]
    Unreachable,
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("no whole answer within {0}; the request may have been read")]
    Late(Span),
    #[error("the connection was cut before an answer came ({0}); the request may have been read")]
    Cut(#[source] hyper::Error),
}

impl ExchangeError {
    /// Whether the other side cannot have seen anything of the request.
    pub fn nothing_was_sent(&self) -> bool {
        matches!(
            self,
            ExchangeError::Connect(_) | ExchangeError::Unreachable | ExchangeError::Tls(_)
        )
    }
}

/// The part of a body that is kept.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    /// All of it, if it has at most this many bytes.
    Whole(usize),
    /// The first bytes; the rest is not awaited.
    Head(usize),
    /// The last bytes, however long it is.
    Tail(usize),
}

/// Why a body is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyFault {
    /// The connection was cut before its end.
    BreaksOff,
    /// It is longer than the limit.
    TooLong,
}

/// An answer, with the part of its body that was kept.
pub struct Received {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// How long the whole body was, as far as it was read.
    pub length: u64,
    /// Why the body is not whole; `None` if everything to be kept has arrived.
    pub fault: Option<BodyFault>,
}

impl Destination {
    /// Understands an `http://` or `https://` address of at most 2 KiB.
    ///
    /// # Errors
    /// [`BadDestination`].
    pub fn parse(text: &str) -> Result<Self, BadDestination> {
        const NO_REQUEST: BadDestination = BadDestination("cannot be sent in a request");
        let address = GaugeAddress::parse(text).map_err(|bad| BadDestination(bad.0))?;
        let uri: Uri = address.without_login().parse().map_err(|_| NO_REQUEST)?;
        let (Some(authority), Some(host)) = (uri.authority(), uri.host()) else {
            return Err(NO_REQUEST);
        };
        let tls = uri.scheme_str() == Some("https");
        let (mut login, mut encoded) = (None, None);
        if let Some(credentials) = address.login() {
            let pair = format!("{}:{}", credentials.user, credentials.password.reveal());
            let text = BASE64.encode(pair.as_bytes());
            let header = HeaderValue::from_str(&format!("Basic {text}"));
            let mut header = header.map_err(|_| NO_REQUEST)?;
            header.set_sensitive(true);
            (login, encoded) = (Some(header), Some(text));
        }
        Ok(Destination {
            // A host of numbers stands in brackets in an address, and without them everywhere else.
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| NO_REQUEST)?,
            target: uri.path_and_query().cloned().ok_or(NO_REQUEST)?,
            login,
            encoded,
            address,
            trust: None,
        })
    }

    /// The same with this trust, and with its client certificate.
    pub fn trusting(self, trust: Trust) -> Self {
        Destination { trust: Some(trust), ..self }
    }

    /// The path and query of the address itself.
    pub fn target(&self) -> Uri {
        Uri::from(self.target.clone())
    }

    /// A path below that of the address; `None` if it cannot be sent in a request. A query of the address stays in
    /// front.
    pub fn below(&self, path: &str, query: &str) -> Option<Uri> {
        let base = self.target.path().trim_end_matches('/');
        let queries = [self.target.query().unwrap_or_default(), query];
        let queries: Vec<&str> = queries.into_iter().filter(|part| !part.is_empty()).collect();
        let text = if queries.is_empty() {
            format!("{base}{path}")
        } else {
            format!("{base}{path}?{}", queries.join("&"))
        };
        text.parse().ok()
    }

    /// A text of the other side without the secret parts of the address, should it echo them.
    pub fn redact(&self, text: &str) -> String {
        let text = self.address.hidden_in(text);
        self.encoded.iter().fold(text, |text, encoded| text.replace(encoded, HIDDEN))
    }

    /// Sends a request, whose URI is a path, and reads the answer; `keep` decides by its status which part of the body
    /// is kept.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        keep: impl FnOnce(u16) -> Keep,
        within: Duration,
    ) -> Result<Received, ExchangeError> {
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.clone());
        headers.insert(USER_AGENT, AGENT);
        headers.insert(CONNECTION, CLOSE);
        if let Some(login) = &self.login {
            headers.insert(AUTHORIZATION, login.clone());
        }
        let exchanging = async {
            let dial = TcpStream::connect((self.host.as_str(), self.port));
            let tcp = timeout(CONNECT_MAX, dial).await.map_err(|_| ExchangeError::Unreachable)?;
            let tcp = tcp.map_err(ExchangeError::Connect)?;
            if self.tls {
                let tls_error = |why: std::io::Error| {
                    let advice = tenure_tls::advice(&why, &self.host);
                    ExchangeError::Tls(advice.unwrap_or_else(|| why.to_string()))
                };
                let (tls, name) = match &self.trust {
                    None => tenure_tls::for_http(&self.host),
                    Some(trust) => tenure_tls::for_http_trusting(trust, &self.host)
                        .map_err(|why| why.to_string()),
                }
                .map_err(ExchangeError::Tls)?;
                let stream = tls.connect(name, tcp).await.map_err(tls_error)?;
                hear(stream, request, keep).await
            } else {
                hear(tcp, request, keep).await
            }
        };
        let late = |_| ExchangeError::Late(Span::from_us(within.as_micros() as u64));
        timeout(within, exchanging).await.map_err(late)?
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

async fn hear<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    keep: impl FnOnce(u16) -> Keep,
) -> Result<Received, ExchangeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(ExchangeError::Cut)?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(ExchangeError::Cut)?;
        let keep = keep(response.status().as_u16());
        Ok(receive(response, keep).await)
    };
    let mut connection = std::pin::pin!(connection);
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        biased;
        heard = &mut asking => heard,
        // The request learns how its connection ended.
        _ = &mut connection => asking.await,
    }
}

async fn receive(response: Response<Incoming>, keep: Keep) -> Received {
    let (head, mut body) = response.into_parts();
    let (mut kept, mut length, mut fault) = (BytesMut::new(), 0u64, None);
    let announced = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if let Keep::Whole(most) = keep
        && announced > most as u64
    {
        fault = Some(BodyFault::TooLong);
    }
    while fault.is_none() {
        let data = match body.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => {
                fault = Some(BodyFault::BreaksOff);
                break;
            }
            None => break,
        };
        length += data.len() as u64;
        kept.extend_from_slice(&data);
        match keep {
            Keep::Whole(most) if kept.len() > most => fault = Some(BodyFault::TooLong),
            Keep::Head(most) if kept.len() >= most => {
                kept.truncate(most);
                break;
            }
            // Not for each frame: the cut at the front is copied once in a while.
            Keep::Tail(most) if kept.len() > 2 * most + 64 * 1024 => {
                kept = BytesMut::from(&kept[kept.len() - most..]);
            }
            _ => {}
        }
    }
    if let Keep::Tail(most) = keep
        && kept.len() > most
    {
        kept = BytesMut::from(&kept[kept.len() - most..]);
    }
    let (status, headers) = (head.status.as_u16(), head.headers);
    Received { status, headers, body: kept.freeze(), length, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_login_and_so_is_its_echo() {
        let there = Destination::parse("http://me:geheim@host:81/jobs?token=heimlich").unwrap();
        assert_eq!(there.to_string(), "http://•••@host:81/jobs?•••");
        assert_eq!(there.target().to_string(), "/jobs?token=heimlich");
        let echo = there.redact("who is bWU6Z2VoZWlt, or me:geheim, in POST /jobs?token=heimlich?");
        assert_eq!(echo, "who is •••, or me:•••, in POST /jobs?•••?");
        let Err(bad) = Destination::parse("ftp://me:geheim@host") else { panic!("it is no http") };
        assert!(bad.to_string().contains("write http://"), "{bad}");
        assert!(!bad.to_string().contains("geheim"), "{bad}");
    }

    #[test]
    fn paths_below_an_address_keep_its_prefix_and_query() {
        for (address, query, path) in [
            ("http://host", "", "/listjobs.json"),
            ("http://host/", "project=a", "/listjobs.json?project=a"),
            ("http://host/crawler/", "project=a", "/crawler/listjobs.json?project=a"),
            ("http://host/c?key=1", "project=a", "/c/listjobs.json?key=1&project=a"),
        ] {
            let there = Destination::parse(address).unwrap();
            assert_eq!(there.below("/listjobs.json", query).unwrap().to_string(), path);
        }
    }
}
