//! Redis's protocol, RESP 2: commands to bytes, bytes to replies. It knows no command.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest text of one part, in bytes: the limit of Redis itself by default.
const BULK_MAX: u64 = 512 << 20;
/// Most elements of one array.
const ARRAY_MAX: u64 = 1 << 24;
/// Deepest nesting of arrays.
const DEPTH_MAX: u32 = 8;
/// Longest line, in bytes: a status, an error or a number.
const LINE_MAX: u64 = 64 << 10;

/// A reply of Redis, of any type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RespValue {
    /// A status, or bytes.
    Text(Vec<u8>),
    Int(i64),
    /// A null: there is no such value.
    Nil,
    List(Vec<RespValue>),
    /// An error of the server: its code and its message.
    Refused(String),
}

impl RespValue {
    /// The text; `None` for another type, or if it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            RespValue::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The bytes; `None` for another type.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            RespValue::Text(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements; `None` for another type.
    pub fn list(&self) -> Option<&[RespValue]> {
        match self {
            RespValue::List(list) => Some(list),
            _ => None,
        }
    }
}

/// The words of a command in bytes, while their number may still grow.
#[derive(Clone, Default)]
pub(crate) struct Words {
    bytes: Vec<u8>,
    count: usize,
}

impl Words {
    pub fn of(words: &[&str]) -> Words {
        words.iter().fold(Words::default(), |all, word| all.and(word))
    }

    /// Adds one more word.
    pub fn and(mut self, word: impl AsRef<[u8]>) -> Words {
        let word = word.as_ref();
        self.bytes.reserve(word.len() + 16);
        self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
        self.count += 1;
        self
    }

    /// Writes one command from all these words.
    pub fn write(all: &[&Words], out: &mut Vec<u8>) {
        let count: usize = all.iter().map(|words| words.count).sum();
        out.extend_from_slice(format!("*{count}\r\n").as_bytes());
        all.iter().for_each(|words| out.extend_from_slice(&words.bytes));
    }
}

fn bad(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("it says something that is no reply: {why}"))
}

/// Reads one reply.
///
/// # Errors
/// The connection has ended, or its bytes are not a reply.
pub(crate) async fn read<R: AsyncBufRead + Unpin + Send>(from: &mut R) -> Result<RespValue> {
    value(from, DEPTH_MAX).await
}

fn value<'a, R: AsyncBufRead + Unpin + Send>(
    from: &'a mut R,
    depth: u32,
) -> Pin<Box<dyn Future<Output = Result<RespValue>> + Send + 'a>> {
    Box::pin(async move {
        let mut line = Vec::new();
        (&mut *from).take(LINE_MAX).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(Error::new(ErrorKind::UnexpectedEof, "it closed the connection"));
        }
        let text = line.strip_suffix(b"\r\n").ok_or_else(|| bad("a line without an end"))?;
        let (kind, text) = text.split_first().ok_or_else(|| bad("an empty line"))?;
        let number = || {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(|| bad("no number"))
        };
        let count = |most| match number()? {
            -1 => Ok(None),
            count => match u64::try_from(count) {
                Ok(count) if count <= most => Ok(Some(count as usize)),
                _ => Err(bad("a length out of range")),
            },
        };
        match kind {
            b'+' => Ok(RespValue::Text(text.to_vec())),
            b'-' => Ok(RespValue::Refused(String::from_utf8_lossy(text).into_owned())),
            b':' => Ok(RespValue::Int(number()?)),
            b'$' => {
                let Some(length) = count(BULK_MAX)? else { return Ok(RespValue::Nil) };
                let mut bytes = vec![0; length + 2];
                from.read_exact(&mut bytes).await?;
                if !bytes.ends_with(b"\r\n") {
                    return Err(bad("a text without an end"));
                }
                bytes.truncate(length);
                Ok(RespValue::Text(bytes))
            }
            b'*' => {
                let Some(length) = count(ARRAY_MAX)? else { return Ok(RespValue::Nil) };
                let depth = depth.checked_sub(1).ok_or_else(|| bad("too deep"))?;
                let mut list = Vec::new();
                for _ in 0..length {
                    list.push(value(from, depth).await?);
                }
                Ok(RespValue::List(list))
            }
            _ => Err(bad("an unknown kind")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &[u8]) -> std::result::Result<RespValue, ErrorKind> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut from = bytes;
        runtime.block_on(read(&mut from)).map_err(|why| why.kind())
    }

    #[test]
    fn replies_are_read_and_what_is_none_is_refused() {
        let text = |text: &str| RespValue::Text(text.as_bytes().to_vec());
        for (bytes, value) in [
            (&b"+OK\r\n"[..], Ok(text("OK"))),
            (b"-ERR no\r\n", Ok(RespValue::Refused("ERR no".to_owned()))),
            (b":-7\r\n", Ok(RespValue::Int(-7))),
            (b"$-1\r\n", Ok(RespValue::Nil)),
            (b"*-1\r\n", Ok(RespValue::Nil)),
            (b"$4\r\na\r\nb\r\n", Ok(text("a\r\nb"))),
            (
                b"*2\r\n$1\r\nx\r\n*0\r\n",
                Ok(RespValue::List(vec![text("x"), RespValue::List(vec![])])),
            ),
            (b"", Err(ErrorKind::UnexpectedEof)),
            (b"$4\r\nab", Err(ErrorKind::UnexpectedEof)),
            (b"$1\r\nabc", Err(ErrorKind::InvalidData)),
            (b"$-2\r\n", Err(ErrorKind::InvalidData)),
            (b"$999999999999\r\n", Err(ErrorKind::InvalidData)),
            (b"?1\r\n", Err(ErrorKind::InvalidData)),
            (&b"*1\r\n".repeat(9), Err(ErrorKind::InvalidData)),
        ] {
            assert_eq!(reply(bytes), value, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn words_go_out_as_bytes_whatever_they_hold() {
        let mut out = Vec::new();
        Words::write(&[&Words::of(&["SET", ""]), &Words::default().and(b"\r\n\0\xff")], &mut out);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\0\xff\r\n");
    }
}
