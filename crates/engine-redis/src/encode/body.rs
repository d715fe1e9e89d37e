//! The body of a job: what no rule looks at (its kind, its payload, its labels, its trace) as one text, made and
//! read here and nowhere else.
//!
//! A first line of lengths, then the texts without anything between them: nothing is escaped, and a
//! payload of any size is copied once. It is text because the server's MessagePack takes no bytes.

use std::fmt::Write as _;

use tenure_core::job::Labels;
use tenure_core::secret::Json;
use tenure_core::trace::TraceParent;

/// What a body is made of, and what is read out of one.
#[derive(Default)]
pub(crate) struct JobBody {
    pub kind: String,
    pub payload: Json,
    pub labels: Labels,
    pub traceparent: Option<TraceParent>,
}

/// The body of a job. The lengths of labels stand in pairs, so a last one without a partner is that of the trace.
pub(crate) fn body_of(
    kind: &str,
    payload: &Json,
    labels: &Labels,
    traceparent: Option<&TraceParent>,
) -> String {
    let payload = payload.text();
    let trace = traceparent.map_or("", TraceParent::as_str);
    let all: usize = labels.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    let mut body = String::with_capacity(20 + kind.len() + payload.len() + all + trace.len());
    // Writing into a text cannot fail.
    let _ = write!(body, "{} {}", kind.len(), payload.len());
    for (key, value) in labels {
        let _ = write!(body, " {} {}", key.len(), value.len());
    }
    if !trace.is_empty() {
        let _ = write!(body, " {}", trace.len());
    }
    body.push('\n');
    body.push_str(kind);
    body.push_str(payload);
    for (key, value) in labels {
        body.push_str(key);
        body.push_str(value);
    }
    body.push_str(trace);
    body
}

/// What a body says; `None` if it is none.
pub(crate) fn read_body(body: &[u8]) -> Option<JobBody> {
    let body = std::str::from_utf8(body).ok()?;
    let (lengths, mut rest) = body.split_once('\n')?;
    let mut lengths = lengths.split(' ');
    let mut next = || -> Option<Option<&str>> {
        let Some(length) = lengths.next() else { return Some(None) };
        let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
        rest = after;
        Some(Some(text))
    };
    let (kind, payload) = (next()??.to_owned(), Json::parse(next()??)?);
    let (mut labels, mut traceparent) = (Labels::new(), None);
    while let Some(key) = next()? {
        match next()? {
            Some(value) => drop(labels.insert(key.to_owned(), value.to_owned())),
            None => traceparent = Some(TraceParent::parse(key).ok()?),
        }
    }
    Some(JobBody { kind, payload, labels, traceparent })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_body_is_read_as_it_was_made() {
        let none: &[(&str, &str)] = &[];
        for (kind, payload, labels) in [
            ("", "null", none),
            ("fetch", r#"{"url":"http://a/b?c=1 2\n"}"#, none),
            ("größe", "\"ü\"", &[("a", "1"), ("schlüssel", ""), ("z z", "9 9\n")]),
        ] {
            let labels: Labels =
                labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
            for traceparent in [None, TraceParent::parse(TRACE).ok()] {
                let payload = Json::parse(payload).unwrap();
                let body = body_of(kind, &payload, &labels, traceparent.as_ref());
                let read = read_body(body.as_bytes()).unwrap();
                assert_eq!((read.kind.as_str(), &read.payload), (kind, &payload), "{body}");
                assert_eq!((&read.labels, read.traceparent), (&labels, traceparent), "{body}");
            }
        }
    }

    #[test]
    fn what_is_no_body_is_not_read() {
        for text in
            ["", "0 4", "0 4\nnul", "0\n", "0 0\n", "x 4\nnull", "9 4\nnull", "0 4 3\nnullabc"]
        {
            assert!(read_body(text.as_bytes()).is_none(), "{text}");
        }
        assert!(read_body(b"0 4\n\xff\xff\xff\xff").is_none());
    }
}
