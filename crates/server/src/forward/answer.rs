//! Streams the answer of the leader to the caller, so that only a small part of a long one is ever in memory. An answer
//! that may grant something is read whole, since a grant that does not reach its caller must be undone.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use serde::Deserialize;
use tenure::remote::wire::{UsedConnection, Wire};
use tenure_core::refusal::Code;

use super::sent_body::{RestRefused, SentBody};
use crate::budget::HeldBytes;
use crate::problem;

/// Why an answer ends before its last byte.
pub(crate) enum Cut {
    /// The answer has no end of its own: the caller comes back and continues.
    Ends,
    /// A part of the answer is missing, and the caller must see that.
    Breaks,
}

/// Ends when the rest of an answer is no longer worth a wait.
pub(crate) type Cutting = Pin<Box<dyn Future<Output = Cut> + Send>>;

/// The connection to the leader. It is kept for the next call if the body was read to its end, and closed otherwise.
pub(crate) struct Link {
    pub wire: Arc<Wire<SentBody>>,
    pub used: UsedConnection<SentBody>,
}

impl Link {
    fn keep(self) {
        self.wire.keep(self.used);
    }
}

/// The body of a forwarded answer.
pub(crate) struct ForwardedAnswer {
    body: Incoming,
    link: Option<Link>,
    cutting: Cutting,
    /// The last thing that the caller reads: why the rest of its lines was not accepted.
    rest: RestRefused,
    /// For the bytes that stay in memory while the caller does not read.
    _held: HeldBytes,
}

impl ForwardedAnswer {
    pub(crate) fn new(
        body: Incoming,
        link: Link,
        cutting: Cutting,
        rest: RestRefused,
        held: HeldBytes,
    ) -> Self {
        let mut answer = ForwardedAnswer { body, link: Some(link), cutting, rest, _held: held };
        answer.look_for_end();
        answer
    }

    /// Frees the connection with the last part: nothing that anybody needs may follow it.
    fn look_for_end(&mut self) {
        if self.body.is_end_stream() {
            self.link.take().into_iter().for_each(Link::keep);
        }
    }
}

impl Body for ForwardedAnswer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        while let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            match frame {
                None => {
                    self.link.take().into_iter().for_each(Link::keep);
                    let last = self.rest.take().map(|(line, no)| {
                        let mut text = problem::json(&no.on_line(line));
                        text.push(b'\n');
                        Ok(Frame::data(Bytes::from(text)))
                    });
                    return Poll::Ready(last);
                }
                Some(Err(why)) => return Poll::Ready(Some(Err(io::Error::other(why)))),
                Some(Ok(frame)) => {
                    // Nobody reads trailers.
                    if let Ok(data) = frame.into_data() {
                        self.look_for_end();
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
            }
        }
        self.cutting.as_mut().poll(cx).map(|cut| match cut {
            Cut::Ends => None,
            Cut::Breaks => Some(Err(io::Error::from(io::ErrorKind::ConnectionAborted))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a whole answer.
pub(crate) async fn whole(mut body: Incoming, link: Link) -> Result<Bytes, hyper::Error> {
    let mut bytes = BytesMut::new();
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if first.is_empty() && bytes.is_empty() {
            first = data;
            continue;
        }
        if bytes.is_empty() {
            bytes.extend_from_slice(&first);
        }
        bytes.extend_from_slice(&data);
    }
    link.keep();
    Ok(if bytes.is_empty() { first } else { bytes.freeze() })
}

/// The code of a problem; `None` for anything else, and for an unknown code.
pub(crate) fn code(body: &[u8]) -> Option<Code> {
    #[derive(Deserialize)]
    struct Coded {
        code: String,
    }
    serde_json::from_slice::<Coded>(body).ok()?.code.parse().ok()
}

/// The leases that an answer grants.
pub(crate) fn leases(body: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Granted {
        lease: Option<String>,
    }
    #[derive(Deserialize)]
    struct Grants {
        #[serde(default)]
        leases: Vec<Granted>,
    }
    let grants = serde_json::from_slice(body).unwrap_or(Grants { leases: Vec::new() });
    grants.leases.into_iter().filter_map(|granted| granted.lease).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_what_it_grants() {
        for (body, granted) in [
            (r#"{"leases":[],"next_at":null}"#, &[][..]),
            (r#"{"leases":[{"lease":"a","fence":1},{"lease":"b"}],"next_at":null}"#, &["a", "b"]),
            (r#"{"settled":[{"lease":"s","ok":true}],"leases":[{"lease":"c"}]}"#, &["c"]),
            (r#"{"settled":[{"lease":"s","ok":true}]}"#, &[]),
            (r#"{"leases":[{"lease":null,"fence":3}]}"#, &[]),
            ("nonsense", &[]),
        ] {
            assert_eq!(leases(body.as_bytes()), granted, "{body}");
        }
        assert_eq!(code(br#"{"code":"not_owner","status":503}"#), Some(Code::NotOwner));
        assert_eq!((code(br#"{"code":"later"}"#), code(b"<html>")), (None, None));
    }
}
