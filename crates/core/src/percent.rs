//! Percent-encoding (RFC 3986), for the server, the client and the addresses of stores alike.
//!
//! Decoding is strict: a `%` that begins no escape is an error. The library would accept it, and a caller that forgot
//! to encode a name would get the answer for another name.

use std::borrow::Cow;
use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All characters except RFC 3986's unreserved ones and `:` and `*`: names are full of these two, and they have no
/// meaning in a path or a query.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'*');

/// The text as a segment of a path, or as a value of a query.
pub fn encoded(text: &str) -> impl Display {
    utf8_percent_encode(text, ESCAPED)
}

/// The reason why a text is not percent-encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadEscape {
    /// A `%` is not followed by two hexadecimal digits.
    Digits,
    /// The decoded bytes are not UTF-8.
    Utf8,
}

/// The text before it was encoded. A `+` stays a `+`.
pub fn decoded(text: &str) -> Result<Cow<'_, str>, BadEscape> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(BadEscape::Digits);
    }
    percent_decode_str(text).decode_utf8().map_err(|_| BadEscape::Utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_once_and_strictly() {
        for (text, is) in [
            ("crawl", Ok("crawl")),
            ("site:%2A", Ok("site:*")),
            ("gr%C3%B6%c3%9fe%20b", Ok("größe b")),
            ("größe", Ok("größe")),
            ("a%2Fb", Ok("a/b")),
            ("a%252Fb", Ok("a%2Fb")),
            ("a+b", Ok("a+b")),
            ("%ff", Err(BadEscape::Utf8)),
            ("%C3", Err(BadEscape::Utf8)),
            ("%", Err(BadEscape::Digits)),
            ("%4", Err(BadEscape::Digits)),
            ("%+1", Err(BadEscape::Digits)),
            ("%zz", Err(BadEscape::Digits)),
            ("%%41", Err(BadEscape::Digits)),
            ("%é", Err(BadEscape::Digits)),
        ] {
            assert_eq!(decoded(text).as_deref(), is.as_deref(), "{text}");
        }
    }

    #[test]
    fn only_what_would_mean_something_in_an_address_is_encoded() {
        for (text, is) in [
            ("site:*", "site:*"),
            ("a-b._~9Z", "a-b._~9Z"),
            ("a/b?c&d=e f+%", "a%2Fb%3Fc%26d%3De%20f%2B%25"),
            ("ö", "%C3%B6"),
        ] {
            assert_eq!(encoded(text).to_string(), is);
            assert_eq!(decoded(is).as_deref(), Ok(text));
        }
    }
}
