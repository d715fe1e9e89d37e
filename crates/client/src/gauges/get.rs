//! One GET of an address, and its possible failures. A redirect is not followed: it would carry the login to another
//! host, and bypass the check of the address.

use std::io;

use bytes::Bytes;
use data_encoding::BASE64;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderValue, USER_AGENT};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper_util::rt::TokioIo;
use tenure_core::bounds::{GAUGE_BODY_BYTES_MAX, GAUGE_GET_US};
use tenure_core::gauge::{GaugeAddress, GaugeHosts};
use tenure_core::time::Span;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("tenure/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Why a gauge could not be read. It shows nothing of the address.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadFailed {
    /// The address comes from an earlier release, which accepted it.
    #[error("the address cannot be asked; set the gauge again")]
    Address,
    #[error(
        "the address is link-local or that of a cloud's metadata; only --gauge-allow HOST lets a gauge ask there"
    )]
    LinkLocal,
    #[error("could not connect: {0}")]
    Connect(#[source] io::Error),
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("no whole answer within {}", Span::from_us(GAUGE_GET_US))]
    Late,
    #[error("the connection broke: {0}")]
    Broken(#[source] hyper::Error),
    #[error("http status {0}")]
    Status(u16),
    #[error("the answer is longer than {GAUGE_BODY_BYTES_MAX} bytes")]
    TooLong,
    #[error("the answer breaks off")]
    BreaksOff,
    #[error("the answer is not JSON")]
    NotJson,
    #[error("there is no whole number of 0 or more at {0:?}")]
    NoNumber(String),
    #[error("there is no list of ids at {0:?}")]
    NoIds(&'static str),
    #[error("scrapyd says {0:?}, not \"ok\"; before 1.5 it needs a \"project\"")]
    NotOk(String),
}

/// Requests a path of an address, and reads the whole body of an answer 200.
pub(super) async fn get(
    address: &GaugeAddress,
    path_and_query: PathAndQuery,
    hosts: &GaugeHosts,
) -> Result<Bytes, ReadFailed> {
    let uri: Uri = address.without_login().parse().map_err(|_| ReadFailed::Address)?;
    let host = uri.host().ok_or(ReadFailed::Address)?;
    let request = request(&uri, address, path_and_query).ok_or(ReadFailed::Address)?;
    let tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    // A host of numbers has brackets in an address, and none everywhere else.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let asking = async {
        let tcp = connected(host, port, hosts).await?;
        if tls {
            let (tls, name) = tenure_tls::for_http(host).map_err(ReadFailed::Tls)?;
            let stream = tls.connect(name, tcp).await;
            let told = |why: io::Error| {
                ReadFailed::Tls(tenure_tls::advice(&why, host).unwrap_or_else(|| why.to_string()))
            };
            hear(stream.map_err(told)?, request).await
        } else {
            hear(tcp, request).await
        }
    };
    timeout(Span::from_us(GAUGE_GET_US).std(), asking).await.map_err(|_| ReadFailed::Late)?
}

/// A connection to the first of the host's permitted addresses that accepts one. Names are looked up once, and the
/// checked address is the one connected: a name that changes a moment later gains nothing.
async fn connected(host: &str, port: u16, hosts: &GaugeHosts) -> Result<TcpStream, ReadFailed> {
    let found = lookup_host((host, port)).await.map_err(ReadFailed::Connect)?;
    let mut failed = None;
    let mut refused = false;
    for at in found {
        if !hosts.let_ask(host, at.ip()) {
            refused = true;
            continue;
        }
        match TcpStream::connect(at).await {
            Ok(tcp) => {
                let there = tcp.peer_addr().map_err(ReadFailed::Connect)?;
                return if hosts.let_ask(host, there.ip()) {
                    Ok(tcp)
                } else {
                    Err(ReadFailed::LinkLocal)
                };
            }
            Err(why) => failed = Some(why),
        }
    }
    Err(match failed {
        Some(why) => ReadFailed::Connect(why),
        None if refused => ReadFailed::LinkLocal,
        None => ReadFailed::Connect(io::ErrorKind::NotFound.into()),
    })
}

/// `None`: a part of the address cannot be written in a request.
fn request(
    uri: &Uri,
    address: &GaugeAddress,
    path_and_query: PathAndQuery,
) -> Option<Request<Empty<Bytes>>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = Uri::from(path_and_query);
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(uri.authority()?.as_str()).ok()?);
    headers.insert(USER_AGENT, AGENT);
    headers.insert(ACCEPT, JSON);
    headers.insert(CONNECTION, CLOSE);
    if let Some(login) = address.login() {
        let pair = format!("{}:{}", login.user, login.password.reveal());
        let basic = format!("Basic {}", BASE64.encode(pair.as_bytes()));
        let mut basic = HeaderValue::from_str(&basic).ok()?;
        basic.set_sensitive(true);
        headers.insert(AUTHORIZATION, basic);
    }
    Some(request)
}

async fn hear<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<Bytes, ReadFailed>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(ReadFailed::Broken)?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(ReadFailed::Broken)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(ReadFailed::Status(status));
        }
        let body = Limited::new(response.into_body(), GAUGE_BODY_BYTES_MAX).collect().await;
        body.map(|body| body.to_bytes()).map_err(|why| {
            if why.is::<LengthLimitError>() { ReadFailed::TooLong } else { ReadFailed::BreaksOff }
        })
    };
    let mut connection = std::pin::pin!(connection);
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        biased;
        heard = &mut asking => heard,
        // The request itself reports how the connection ended.
        _ = &mut connection => asking.await,
    }
}
