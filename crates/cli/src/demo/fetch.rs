//! The client of the demo's site: one page, one connection. Dropping the future closes it.

use std::io;
use std::net::SocketAddr;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::witness::Fetch;

/// The answer of the site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    /// The page, with the number that the site gave to this fetch.
    Page(u64),
    /// The account is banned.
    Banned,
}

#[derive(Deserialize)]
struct FetchReply {
    fetch: u64,
}

/// Fetches one page from the site.
pub async fn fetch(site: SocketAddr, ask: &Fetch) -> io::Result<Fetched> {
    let mut stream = TcpStream::connect(site).await?;
    let path = ask.page.strip_prefix(&ask.host).unwrap_or(&ask.page);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAccount: {}\r\nWorker: {}\r\n\r\n",
        ask.host, ask.account, ask.worker
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let broken =
        || io::Error::new(io::ErrorKind::InvalidData, "the answer of the site is malformed");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    match head.split(' ').nth(1) {
        Some("200") => serde_json::from_str::<FetchReply>(body)
            .map(|body| Fetched::Page(body.fetch))
            .map_err(|_| broken()),
        Some("403") => Ok(Fetched::Banned),
        _ => Err(broken()),
    }
}
