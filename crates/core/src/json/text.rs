//! Strings and numbers of JSON, byte by byte. Only [`unescape`] allocates.

/// With `HIGH`, finds the end of a run of plain characters in a string.
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The index of the next `"`, `\` or control character from `at` on, or the end.
///
/// Eight bytes at a time: strings are most of the input, and byte by byte this loop would dominate
/// the cost of a push.
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // The lowest set bit is exact: a borrow affects only bytes above a true hit.
    let zeroes = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let controls = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
        let quotes = zeroes(word ^ (LOW * b'"' as u64));
        let slashes = zeroes(word ^ (LOW * b'\\' as u64));
        let hits = controls | quotes | slashes;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(c) = bytes.get(at) {
        if *c < 0x20 || matches!(c, b'"' | b'\\') {
            break;
        }
        at += 1;
    }
    at
}

/// Reads the escape whose `\` is at `at`. Returns its end, or the error with its place.
pub(super) fn escape_end(bytes: &[u8], at: usize) -> Result<usize, (&'static str, usize)> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let unit = hex4(bytes, at + 2)?;
            match unit {
                0xD800..=0xDBFF => {
                    let lone = "a high surrogate without its low one stands in a string";
                    if bytes.get(at + 6..at + 8) != Some(b"\\u") {
                        return Err((lone, at));
                    }
                    match hex4(bytes, at + 8)? {
                        0xDC00..=0xDFFF => Ok(at + 12),
                        _ => Err((lone, at)),
                    }
                }
                0xDC00..=0xDFFF => {
                    Err(("a low surrogate without its high one stands in a string", at))
                }
                _ => Ok(at + 6),
            }
        }
        None => Err(("an escape is expected", at + 1)),
        Some(_) => Err(("there is no such escape in a string", at)),
    }
}

fn hex4(bytes: &[u8], at: usize) -> Result<u32, (&'static str, usize)> {
    let mut unit = 0;
    for i in at..at + 4 {
        let digit = bytes.get(i).and_then(|c| (*c as char).to_digit(16));
        unit = unit * 16 + digit.ok_or(("four hexadecimal digits are expected", i))?;
    }
    Ok(unit)
}

/// The meaning of the inside of a well-formed string.
pub(super) fn unescape(inner: &str) -> String {
    let mut said = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        said.push_str(plain);
        let mut length = 1;
        said.push(match escape.as_bytes().first() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let (c, used) = code_point(escape);
                length = used;
                c
            }
            Some(c) => *c as char,
            None => break,
        });
        rest = escape.get(length..).unwrap_or_default();
    }
    said.push_str(rest);
    said
}

/// The character of `uXXXX` or `uXXXX\uXXXX`, and the length of that text.
fn code_point(escape: &str) -> (char, usize) {
    let unit = |at| hex4(escape.as_bytes(), at).unwrap_or_default();
    let (code, length) = match unit(1) {
        high @ 0xD800..=0xDBFF => {
            (0x10000 + ((high - 0xD800) << 10) + (unit(7).wrapping_sub(0xDC00) & 0x3FF), 11)
        }
        code => (code, 5),
    };
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), length)
}

/// Reads the number that begins at `at`. Returns its end, or the error with its place.
pub(super) fn number_end(bytes: &[u8], at: usize) -> Result<usize, (&'static str, usize)> {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = at + usize::from(bytes.get(at) == Some(&b'-'));
    match bytes.get(end) {
        Some(b'0') => {
            end += 1;
            if bytes.get(end).is_some_and(u8::is_ascii_digit) {
                return Err(("a number begins with 0", at));
            }
        }
        Some(b'1'..=b'9') => end = digits(end),
        _ => return Err(("a digit is expected", end)),
    }
    if bytes.get(end) == Some(&b'.') {
        let from = end + 1;
        end = digits(from);
        if end == from {
            return Err(("a digit is expected", end));
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        let from = end + 1 + usize::from(signed);
        end = digits(from);
        if end == from {
            return Err(("a digit is expected", end));
        }
    }
    Ok(end)
}
