//! Path and query of a request, percent-decoded.

use std::borrow::Cow;

use tenure_core::refusal::{Code, Refusal};

/// Decodes `%XX`; `None` if a `%` begins none, or what comes out is not UTF-8.
fn decoded(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    let plain = |c: u8| c != b'%' && (c != b'+' || !plus_is_space);
    if text.bytes().all(plain) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let (high, low) = (*tail.first()?, *tail.get(1)?);
                bytes.push((hex(high)? << 4) | hex(low)?);
                rest = tail.get(2..)?;
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|n| u8::try_from(n).ok())
}

/// A part of a path; `name` is what the route calls it.
pub(crate) fn part<'t>(text: &'t str, name: &str) -> Result<Cow<'t, str>, Refusal> {
    decoded(text, false).ok_or_else(|| {
        Refusal::new(
            Code::InvalidField,
            format!("{name:?} in the path is not percent-encoded UTF-8"),
            "write every byte that is not a letter, a digit or one of -._~ as %XX, in UTF-8",
        )
        .at(format!("/path/{name}"))
    })
}

/// Query parameters, decoded: their names and values.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The parameters of a query, in their order.
pub(crate) fn query(text: Option<&str>) -> Result<Pairs<'_>, Refusal> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let refuse = |name: &str| {
        let detail = format!("the query parameter {name:?} is not percent-encoded UTF-8");
        let hint = "write every byte that is not a letter, a digit or one of -._~ as %XX, in UTF-8";
        let name = name.replace('~', "~0").replace('/', "~1");
        Refusal::new(Code::InvalidField, detail, hint).at(format!("/query/{name}"))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name, true).ok_or_else(|| refuse(name))?;
            let value = decoded(value, true).ok_or_else(|| refuse(&name))?;
            Ok((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_decoded_once() {
        for (text, is) in [
            ("crawl", Some("crawl")),
            ("site:%2A", Some("site:*")),
            ("gr%C3%B6%c3%9fe%20b", Some("größe b")),
            ("a%2Fb", Some("a/b")),
            ("a%252Fb", Some("a%2Fb")),
            ("a+b", Some("a+b")),
            ("%ff", None),
            ("%C3", None),
            ("%", None),
            ("%4", None),
            ("%+1", None),
            ("%zz", None),
        ] {
            assert_eq!(part(text, "name").ok().as_deref(), is, "{text}");
        }
        assert_eq!(part("%", "id").unwrap_err().pointer.as_deref(), Some("/path/id"));
    }

    #[test]
    fn a_query_is_pairs() {
        let pairs = query(Some("a=1&&b=x%26y+z&c&d==")).unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x&y z"), ("c", ""), ("d", "=")]);
        assert!(query(None).unwrap().is_empty());
        assert_eq!(query(Some("a=%FF")).unwrap_err().pointer.as_deref(), Some("/query/a"));
    }
}
