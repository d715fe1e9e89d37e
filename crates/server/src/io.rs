//! A connection's stream, which reports traffic to its `ConnectionTraffic`. It changes one thing: the parser answers
//! bytes that are not HTTP without a body, so that answer is held back, and a problem is written instead.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tenure_tls::{AcceptedStream, is_http2};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::control_frames::ControlFrames;
use crate::traffic::ConnectionTraffic;

/// The socket of a connection, below TLS if there is any: it reports each write that the other side takes or holds up.
#[derive(Debug)]
pub(crate) struct Socket {
    pub stream: TcpStream,
    pub line: Arc<ConnectionTraffic>,
}

impl Socket {
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.line.wrote(written.is_ready());
        written
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(written)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(written)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The transport of HTTP. One type for both, so that the HTTP library is compiled once.
#[derive(Debug)]
pub(crate) enum Stream {
    Clear(Socket),
    Tls(Box<AcceptedStream<Socket>>),
}

impl Stream {
    /// Whether both sides agreed on HTTP/2 before its first byte.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            Stream::Clear(_) => false,
            Stream::Tls(stream) => is_http2(stream),
        }
    }
}

/// The same call on either stream.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Clear($inner) => $call,
            Stream::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write(cx, buf))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(cx, bufs))
    }
    fn is_write_vectored(&self) -> bool {
        either!(self, inner => inner.is_write_vectored())
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(cx))
    }
}

/// A stream whose traffic is reported, and whose parser answers are held back.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: Stream,
    line: Arc<ConnectionTraffic>,
    /// Bytes that one parser has read and the next one must read first; empty except where HTTP/2 begins in clear.
    again: Bytes,
    /// The status of the answer that was held back; nothing is written after it.
    bare: Option<u16>,
    /// Initially `None`; set where the connection speaks HTTP/2.
    frames: Option<ControlFrames>,
    /// Too many frames came that are no part of a request: nothing more is read.
    is_flooded: bool,
}

/// The status of an error without a body: none of our own answers looks like it.
fn bare(text: &[u8]) -> Option<u16> {
    let rest = text.strip_prefix(b"HTTP/1.1 4")?;
    let end = text.windows(4).position(|four| four == b"\r\n\r\n")?;
    let is_empty = text[..end + 2].windows(19).any(|part| part == b"content-length: 0\r\n");
    let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
    is_empty.then(|| Some(400 + digits.parse::<u16>().ok()?)).flatten()
}

impl Watched {
    pub(crate) fn new(stream: Stream, line: Arc<ConnectionTraffic>) -> Self {
        Watched { stream, line, again: Bytes::new(), bare: None, frames: None, is_flooded: false }
    }

    /// The stream speaks HTTP/2 from its first byte on.
    pub(crate) fn counts_frames(mut self) -> Self {
        self.frames = Some(ControlFrames::new(Instant::now()));
        self
    }

    /// Counts frames in bytes that go to the parser.
    fn count(&mut self, bytes: &[u8]) {
        let Some(frames) = &mut self.frames else { return };
        if !frames.come(bytes, self.line.is_of_a_stranger(), Instant::now()) {
            self.is_flooded = true;
            self.line.flooded().notify_one();
        }
    }

    /// Reads these bytes again, for another parser.
    pub(crate) fn rewound(mut self, again: Bytes) -> Self {
        self.again = again;
        self
    }

    /// The status of the parser's answer that was held back.
    pub(crate) fn held_back(&self) -> Option<u16> {
        self.bare
    }

    /// Takes an answer that is held back: all of its bytes count as written.
    fn holds_back(&mut self, text: &[u8]) -> bool {
        self.bare = self.bare.or_else(|| bare(text));
        self.bare.is_some()
    }

    /// Gives the stream back.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_flooded {
            // Nothing wakes this task: the connection ends in a moment.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        if !self.again.is_empty() {
            let count = self.again.len().min(buf.remaining());
            buf.put_slice(&self.again[..count]);
            self.again.advance(count);
            self.count(&buf.filled()[before..]);
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.line.heard();
            self.count(&buf.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.holds_back(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.holds_back(bufs.first().map_or(&[], |buf| buf)) {
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    /// Runs when the system has taken everything before.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.line.flushed();
        }
        flushed
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.bare.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_parsers_own_answers_are_bare() {
        let answer = |status: &str, length: usize| {
            format!(
                "HTTP/1.1 {status} Any\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
            )
        };
        for (text, is) in [
            (answer("400", 0), Some(400)),
            (answer("431", 0), Some(431)),
            (answer("400", 10), None),
            (answer("204", 0), None),
            ("HTTP/1.1 400 Any\r\n".to_owned(), None),
        ] {
            assert_eq!(bare(text.as_bytes()), is, "{text}");
        }
    }
}
