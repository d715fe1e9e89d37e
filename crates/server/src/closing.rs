//! Closes connections: with a reason if there is one, and in such a way that the caller can still read it.

use std::io;
use std::time::Duration;

use hyper::StatusCode;
use tenure_core::refusal::Refusal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::io::Stream;
use crate::problem;

/// Sends the reason for the end. The caller may still be sending, so its bytes are read for a moment, and it sees the
/// answer.
pub(crate) async fn last(mut stream: Stream, no: &Refusal, linger: Duration) {
    let (body, status) = (problem::json(no), no.code.status());
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        reason.unwrap_or_default(),
        body.len()
    );
    let said = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        end(&mut stream).await
    };
    let _ = timeout(linger, said).await;
}

/// Ends our side, and reads until the other side ends too.
pub(crate) async fn end(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    stream.shutdown().await?;
    let mut sink = [0; 4096];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}
