//! A caller that speaks HTTP/2: many calls on one connection, and it can reset each one alone.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Answer, PATIENCE};
use crate::description::Description;

pub struct Http2 {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    at: SocketAddr,
    scheme: &'static str,
}

/// A call that was sent; dropping it resets it.
pub struct Sent(JoinHandle<Response<Incoming>>);

impl Drop for Sent {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Http2 {
    /// In clear. The server may send this many bytes of an answer before any is read.
    pub fn clear(at: SocketAddr, window: u32) -> Self {
        let runtime = runtime();
        let stream = runtime.block_on(TcpStream::connect(at)).unwrap();
        Http2::over(runtime, stream, at, "http", window)
    }

    pub fn over<S>(
        runtime: Runtime,
        stream: S,
        at: SocketAddr,
        scheme: &'static str,
        window: u32,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(stream));
        let (sender, driver) = runtime.block_on(shaken).unwrap();
        runtime.spawn(async move {
            let _ = driver.await;
        });
        Http2 { runtime, sender, at, scheme }
    }

    /// Whether the server has closed.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Sent {
        let mut request =
            Request::builder().method(method).uri(format!("{}://{}{path}", self.scheme, self.at));
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let mut sender = self.sender.clone();
        Sent(self.runtime.spawn(async move {
            sender.ready().await.unwrap();
            sender.send_request(request).await.unwrap()
        }))
    }

    /// Waits for the head of an answer.
    pub fn head(&self, mut sent: Sent) -> Response<Incoming> {
        self.runtime.block_on(async { timeout(PATIENCE, &mut sent.0).await }).unwrap().unwrap()
    }

    /// The same; `None`: the call was reset.
    pub fn try_head(&self, sent: Sent) -> Option<Response<Incoming>> {
        let mut sent = sent;
        let ended = self.runtime.block_on(async { timeout(PATIENCE, &mut sent.0).await }).unwrap();
        ended.ok()
    }

    /// The next piece of a body; `None` at its end.
    pub fn piece(&self, response: &mut Response<Incoming>) -> Option<Bytes> {
        let frame = async { timeout(PATIENCE, response.frame()).await.unwrap() };
        let frame = self.runtime.block_on(frame)?;
        Some(frame.unwrap().into_data().unwrap())
    }

    /// Sends a call and reads its answer to the end.
    pub fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call_with(method, path, &[], body)
    }

    pub fn call_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let sent = self.ask(method, path, headers, body);
        let answer = self.answer(self.head(sent));
        Description::of_this_build().check(method, path, &answer);
        answer
    }

    pub fn answer(&self, response: Response<Incoming>) -> Answer {
        let (head, body) = response.into_parts();
        let text = |value: &hyper::header::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let body = self.runtime.block_on(async { timeout(PATIENCE, body.collect()).await });
        Answer {
            status: head.status.as_u16(),
            headers: headers.collect(),
            body: body.unwrap().unwrap().to_bytes().to_vec(),
        }
    }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
