//! A connection whose replies are counted: as many come as requests went out, each of them whole.
//!
//! Replies are told apart by their order alone, so one reply too many gives every later caller the
//! answer of the one before. The client library drops a reply that nothing asked for if it comes while
//! nobody waits, and shifts all others if it comes a moment later. Here the first byte that is no part
//! of a reply that was asked for ends the connection. What a reply says is not looked at here: that a
//! reply is the caller's own is proven by its nonce (`nonce.rs`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest text of one part, in bytes: what Redis itself allows by default.
const BULK_MAX: u64 = 512 << 20;
/// Most elements of one array.
const ARRAY_MAX: u64 = 1 << 24;
/// Deepest nesting of arrays.
const DEPTH_MAX: usize = 32;
/// Longest line that is a number.
const NUMBER_BYTES_MAX: usize = 24;
/// Longest line that is a text: a status or an error.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What the next byte belongs to.
#[derive(Debug)]
enum At {
    /// The first byte of a value.
    Kind,
    /// A line: its first byte, how long it is so far, the number that it says so far, and whether a CR
    /// was its last byte.
    Line { kind: u8, bytes: usize, number: Number, cr: bool },
    /// A text of which so many bytes are still to come.
    Bulk(u64),
    /// What ends a text: CR if `false`, then LF.
    End(bool),
}

/// The number of a line that is read digit by digit.
#[derive(Clone, Copy, Debug)]
struct Number {
    negative: bool,
    value: u64,
}

/// What is no part of the protocol.
#[derive(Debug, PartialEq, Eq)]
struct NoFrame;

/// Counts values of the protocol (RESP2) in a stream of bytes. It keeps none of them.
#[derive(Debug)]
struct Frames {
    at: At,
    /// Of each open array, how many elements are still to come.
    open: Vec<u64>,
}

impl Frames {
    fn new() -> Self {
        Frames { at: At::Kind, open: Vec::new() }
    }

    /// Reads on from where it is, up to the end of one whole value; answers how many bytes it took and
    /// whether that value has ended with them.
    fn next(&mut self, bytes: &[u8]) -> Result<(usize, bool), NoFrame> {
        let mut taken = 0;
        while taken < bytes.len() {
            let ended = match &mut self.at {
                At::Bulk(left) => {
                    let some =
                        (bytes.len() - taken).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    taken += some;
                    *left -= some as u64;
                    if *left == 0 {
                        self.at = At::End(false);
                    }
                    false
                }
                _ => {
                    taken += 1;
                    self.byte(bytes[taken - 1])?
                }
            };
            if ended && self.closes() {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    /// Takes one byte outside of a text; whether a value ended that holds no other.
    fn byte(&mut self, byte: u8) -> Result<bool, NoFrame> {
        match &mut self.at {
            At::Kind if matches!(byte, b'+' | b'-' | b':' | b'$' | b'*') => {
                let number = Number { negative: false, value: 0 };
                self.at = At::Line { kind: byte, bytes: 0, number, cr: false };
                Ok(false)
            }
            At::Line { kind, bytes, number, cr } => {
                if *cr {
                    let (kind, number, bytes) = (*kind, *number, *bytes);
                    return if byte == b'\n' {
                        self.line(kind, number, bytes)
                    } else {
                        Err(NoFrame)
                    };
                }
                let is_text = matches!(kind, b'+' | b'-');
                match byte {
                    b'\r' => *cr = true,
                    b'\n' => return Err(NoFrame),
                    b'-' if !is_text && *bytes == 0 => number.negative = true,
                    b'0'..=b'9' if !is_text => {
                        let digit = u64::from(byte - b'0');
                        number.value = number.value.saturating_mul(10).saturating_add(digit);
                    }
                    _ if is_text => {}
                    _ => return Err(NoFrame),
                }
                *bytes += 1;
                let most = if is_text { LINE_BYTES_MAX } else { NUMBER_BYTES_MAX };
                if *bytes > most { Err(NoFrame) } else { Ok(false) }
            }
            At::End(false) if byte == b'\r' => {
                self.at = At::End(true);
                Ok(false)
            }
            At::End(true) if byte == b'\n' => {
                self.at = At::Kind;
                Ok(true)
            }
            _ => Err(NoFrame),
        }
    }

    /// A line has ended.
    fn line(&mut self, kind: u8, number: Number, bytes: usize) -> Result<bool, NoFrame> {
        self.at = At::Kind;
        let Number { negative, value } = number;
        let is_text = matches!(kind, b'+' | b'-');
        // The CR was counted: a number has a digit beside it, and beside its sign.
        if !is_text && bytes < 2 + usize::from(negative) {
            return Err(NoFrame);
        }
        match kind {
            b'$' | b'*' if negative => (value == 1).then_some(true).ok_or(NoFrame),
            b'$' if value > BULK_MAX => Err(NoFrame),
            b'$' => {
                self.at = if value == 0 { At::End(false) } else { At::Bulk(value) };
                Ok(false)
            }
            b'*' if value > ARRAY_MAX || self.open.len() >= DEPTH_MAX => Err(NoFrame),
            b'*' if value > 0 => {
                self.open.push(value);
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// A value ended; whether none is open that it is a part of.
    fn closes(&mut self) -> bool {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }
}

/// A connection that ends with the first byte that is no part of a reply that was asked for.
pub(crate) struct Counted<S> {
    inner: S,
    sent: Frames,
    come: Frames,
    /// Requests that went out whole, less the replies that came.
    unanswered: u64,
    /// Something was written: before, nothing is read, since a server that is full says so unasked.
    begun: bool,
    reader: Option<Waker>,
    /// What came did not fit: there is nothing more to read.
    misfit: bool,
}

impl<S> Counted<S> {
    pub fn new(inner: S) -> Self {
        let (sent, come) = (Frames::new(), Frames::new());
        Counted { inner, sent, come, unanswered: 0, begun: false, reader: None, misfit: false }
    }

    /// Counts what was sent. Our own requests are always whole values.
    fn count_sent(&mut self, mut bytes: &[u8]) -> Result<(), NoFrame> {
        while !bytes.is_empty() {
            let (taken, ended) = self.sent.next(bytes)?;
            self.unanswered += u64::from(ended);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Counts what came; answers how much of it may be read. What comes behind a misfit may not, nor the
    /// beginning of a reply that the misfit broke.
    fn count_come(&mut self, bytes: &[u8]) -> usize {
        let (mut seen, mut whole) = (0, 0);
        while seen < bytes.len() {
            let fits = self.unanswered > 0;
            match self.come.next(&bytes[seen..]) {
                Ok((taken, ended)) if fits => {
                    seen += taken;
                    if ended {
                        self.unanswered -= 1;
                        whole = seen;
                    }
                }
                _ => {
                    self.misfit = true;
                    return whole;
                }
            }
        }
        seen
    }
}

fn misfit() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "a reply came that does not fit")
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.misfit {
            return Poll::Ready(Err(misfit()));
        }
        if !this.begun {
            this.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = into.filled().len();
        match Pin::new(&mut this.inner).poll_read(cx, into) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        let good = this.count_come(&into.filled()[before..]);
        into.set_filled(before + good);
        if this.misfit && good == 0 {
            return Poll::Ready(Err(misfit()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = match Pin::new(&mut this.inner).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => written,
            other => return other,
        };
        if this.count_sent(&bytes[..written]).is_err() {
            return Poll::Ready(Err(io::Error::other("a request is no value of the protocol")));
        }
        this.begun |= written > 0;
        if let Some(reader) = this.reader.take_if(|_| this.begun) {
            reader.wake();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// How many whole values there are, read `step` bytes at a time; `None` if it is no protocol.
    fn count(text: &[u8], step: usize) -> Option<(u64, bool)> {
        let (mut frames, mut n) = (Frames::new(), 0);
        for mut bytes in text.chunks(step) {
            while !bytes.is_empty() {
                let (taken, ended) = frames.next(bytes).ok()?;
                n += u64::from(ended);
                bytes = &bytes[taken..];
            }
        }
        let between = matches!(frames.at, At::Kind) && frames.open.is_empty();
        Some((n, between))
    }

    #[test]
    fn values_are_counted_however_they_are_cut() {
        type Row = (&'static [u8], Option<(u64, bool)>);
        let table: [Row; 20] = [
            (b"+OK\r\n", Some((1, true))),
            (b"-ERR no\r\n:12\r\n:-3\r\n", Some((3, true))),
            (b"$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n", Some((4, true))),
            (b"$5\r\na\r\nb\n\r\n", Some((1, true))),
            (b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n+x\r\n", Some((2, true))),
            (b"*2\r\n$1\r\na\r\n", Some((0, false))),
            (b"$5\r\nabc", Some((0, false))),
            (b"+O", Some((0, false))),
            (b"$3\r\nabcd\r\n", None),
            (b"$3\r\nab\r\n+OK\r\n", None),
            (b"$x\r\n", None),
            (b"$\r\n", None),
            (b"$-\r\n", None),
            (b"$-2\r\n", None),
            (b":\r\n", None),
            (b"+a\nb\r\n", None),
            (b"$99999999999999999999\r\n", None),
            (b"*99999999999\r\n", None),
            (b"HTTP/1.1 200 OK\r\n", None),
            // A push message of the newer protocol, which we never asked for.
            (b">2\r\n+message\r\n+x\r\n", None),
        ];
        for (text, expected) in table {
            for step in [1, 2, 3, 7, text.len()] {
                let shown = String::from_utf8_lossy(text);
                assert_eq!(count(text, step), expected, "{shown:?} in steps of {step}");
            }
        }
        assert_eq!(count(&b"*1\r\n".repeat(DEPTH_MAX + 1), 64), None, "too deep");
    }

    /// What can be read, and whether the connection ended with a misfit, after `requests` PINGs.
    async fn read(requests: usize, come: &[u8]) -> (Vec<u8>, bool) {
        let (mut server, ours) = duplex(1 << 16);
        let mut ours = Counted::new(ours);
        for _ in 0..requests {
            ours.write_all(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
        }
        server.write_all(come).await.unwrap();
        drop(server);
        let mut all = Vec::new();
        let misfit = ours.read_to_end(&mut all).await.is_err();
        (all, misfit)
    }

    #[tokio::test]
    async fn one_reply_comes_for_each_request_and_not_a_byte_more() {
        assert_eq!(read(2, b"+A\r\n+B\r\n").await, (b"+A\r\n+B\r\n".to_vec(), false));
        assert_eq!(read(1, b"+A\r\n+B\r\n").await, (b"+A\r\n".to_vec(), true));
        assert_eq!(read(2, b"+A\r\nB\r\n").await, (b"+A\r\n".to_vec(), true));
        assert_eq!(read(1, b"+A\r\n$").await, (b"+A\r\n".to_vec(), true));
        assert_eq!(read(1, b"HTTP").await, (Vec::new(), true));
        // A message as RESP2 brings it is a reply like any other; its caller finds that it is not his.
        let message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n";
        assert_eq!(read(1, message).await, (message.to_vec(), false));
    }

    #[tokio::test]
    async fn what_a_server_says_unasked_at_the_beginning_answers_the_first_request() {
        let (mut server, ours) = duplex(1 << 10);
        let mut ours = Counted::new(ours);
        server.write_all(b"-ERR max number of clients reached\r\n").await.unwrap();
        let mut some = [0; 64];
        let early = std::future::poll_fn(|cx| {
            let mut into = ReadBuf::new(&mut some);
            Poll::Ready(Pin::new(&mut ours).poll_read(cx, &mut into).is_pending())
        });
        assert!(early.await);
        ours.write_all(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
        let read = ours.read(&mut some).await.unwrap();
        assert!(some[..read].starts_with(b"-ERR max"));
    }
}
