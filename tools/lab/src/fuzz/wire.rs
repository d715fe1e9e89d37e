//! Sends raw bytes, and reads one answer.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::request::{Framing, Sent};

/// A longer answer is not read to its end; no page of the contract is longer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// An answer, split into its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FuzzHeard {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its chunks.
    pub body: Vec<u8>,
}

impl FuzzHeard {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }
}

/// Why an answer is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Silence {
    /// The connection failed: no process listens there.
    NotThere(String),
    /// Not within the time.
    Late,
    /// The connection was closed before the answer was whole.
    Closed,
    /// It is not HTTP.
    NotHttp(String),
}

/// One request on a connection of its own.
pub async fn send(host: &str, sent: &Sent, most: Duration) -> Result<FuzzHeard, Silence> {
    timeout(most, exchange(host, sent)).await.unwrap_or(Err(Silence::Late))
}

async fn exchange(host: &str, sent: &Sent) -> Result<FuzzHeard, Silence> {
    let stream = TcpStream::connect(host).await;
    let stream = stream.map_err(|why| Silence::NotThere(why.to_string()))?;
    let (mut read, mut write) = stream.into_split();
    let writing = async {
        // A server may answer and close before it has read all; then this fails, and the answer counts.
        let _ = write.write_all(&sent.bytes).await;
        if sent.framing == Framing::Cut {
            let _ = write.shutdown().await;
        }
        // Kept open until the answer is here: a closed connection means that the caller is gone.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = writing => Err(Silence::Closed),
        heard = answer(&mut read, sent.method == "HEAD") => heard,
    }
}

async fn answer(
    read: &mut tokio::net::tcp::OwnedReadHalf,
    is_head: bool,
) -> Result<FuzzHeard, Silence> {
    let mut bytes = Vec::new();
    loop {
        if let Some(heard) = parse(&bytes, is_head)? {
            // An answer 100 comes before the final one.
            match heard {
                (100..=199, rest) => {
                    bytes.drain(..rest.body.len());
                    continue;
                }
                (_, heard) => return Ok(heard),
            }
        }
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(Silence::NotHttp(format!("more than {ANSWER_BYTES_MAX} bytes")));
        }
        match read.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(Silence::Closed),
            Ok(_) => {}
        }
    }
}

/// The answer in these bytes, once it is complete. The body of an interim answer is the rest of the bytes, which are
/// skipped.
fn parse(bytes: &[u8], is_head: bool) -> Result<Option<(u16, FuzzHeard)>, Silence> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let not = |what: &str| Silence::NotHttp(what.to_owned());
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| not("a head that is not text"))?;
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or_else(|| not("no status"))?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Option<Vec<_>> = lines.map(header).collect();
    let headers = headers.ok_or_else(|| not("a header without a colon"))?;
    let mut heard = FuzzHeard { status, headers, body: Vec::new() };
    let rest = &bytes[end + 4..];
    if (100..200).contains(&status) {
        heard.body = bytes[..end + 4].to_vec();
        return Ok(Some((status, heard)));
    }
    if is_head || status == 204 {
        return Ok(Some((status, heard)));
    }
    if heard.header("transfer-encoding") == Some("chunked") {
        return Ok(unchunked(rest).map(|body| (status, FuzzHeard { body, ..heard })));
    }
    let length = heard.header("content-length").and_then(|text| text.parse::<usize>().ok());
    let length = length.ok_or_else(|| not("neither a length nor chunks"))?;
    Ok(rest.get(..length).map(|body| (status, FuzzHeard { body: body.to_vec(), ..heard })))
}

/// The body of a chunked answer, once the last chunk is here.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        let chunk = rest.get(line + 2..line + 2 + size)?;
        body.extend_from_slice(chunk);
        rest = rest.get(line + 4 + size..)?;
        if size == 0 {
            return Some(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end], false), Ok(None), "{end}");
        }
        let (status, heard) = parse(whole, false).unwrap().unwrap();
        assert_eq!((status, heard.body.as_slice()), (200, b"{}".as_slice()));
        let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        assert_eq!(parse(chunks, false).unwrap().unwrap().1.body, b"{}");
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n", false).is_err());
        assert!(parse(b"HTTP/1.1 204 No\r\n\r\n", false).unwrap().is_some());
        assert!(parse(b"nonsense\r\n\r\n", false).is_err());
    }
}
