//! The body of a job: what no rule looks at (its kind, its payload, its labels) as one text, made and
//! read here and nowhere else.
//!
//! A first line of lengths, then the texts without anything between them: nothing is escaped, and a
//! payload of any size is copied once. It is text because the server's MessagePack takes no bytes.

use std::fmt::Write as _;

use tenure_core::job::Labels;
use tenure_core::secret::Json;

/// The body of a job.
pub(crate) fn body_of(kind: &str, payload: &Json, labels: &Labels) -> String {
    let payload = payload.text();
    let all: usize = labels.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    let mut body = String::with_capacity(16 + kind.len() + payload.len() + all);
    // Writing into a text cannot fail.
    let _ = write!(body, "{} {}", kind.len(), payload.len());
    for (key, value) in labels {
        let _ = write!(body, " {} {}", key.len(), value.len());
    }
    body.push('\n');
    body.push_str(kind);
    body.push_str(payload);
    for (key, value) in labels {
        body.push_str(key);
        body.push_str(value);
    }
    body
}

/// The kind, the payload and the labels of a body; `None` if it is none.
pub(crate) fn read_body(body: &[u8]) -> Option<(String, Json, Labels)> {
    let body = std::str::from_utf8(body).ok()?;
    let (lengths, mut rest) = body.split_once('\n')?;
    let mut lengths = lengths.split(' ');
    let mut next = || -> Option<Option<&str>> {
        let Some(length) = lengths.next() else { return Some(None) };
        let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
        rest = after;
        Some(Some(text))
    };
    let kind = next()??.to_owned();
    let payload = Json::parse(next()??)?;
    let mut labels = Labels::new();
    while let Some(key) = next()? {
        let value = next()??;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Some((kind, payload, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let body = body_of(kind, &Json::parse(payload).unwrap(), &labels);
            let (k, p, l) = read_body(body.as_bytes()).unwrap();
            assert_eq!((k.as_str(), p.text(), l), (kind, payload, labels), "{body}");
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
