//! As much of Redis's protocol as the fixtures need: one command in plain words, one reply.
//!
//! It blocks, knows no cluster and no TLS, and is not for production.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a server may take to answer one command.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The reply of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A status or a value; bytes that are not UTF-8 are replaced.
    Text(String),
    Int(i64),
    Nil,
    List(Vec<Reply>),
    /// It refused: the code and the message of the server.
    Refused(String),
}

impl Reply {
    /// The text, or the number in digits; empty for every other reply.
    pub fn text(&self) -> String {
        match self {
            Reply::Text(text) => text.clone(),
            Reply::Int(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The replies in it; empty if it is not a list.
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(list) => list,
            _ => &[],
        }
    }

    /// The value after `name` in a list of names and values; empty if the name is missing.
    pub fn field(&self, name: &str) -> String {
        let pair = self.list().chunks_exact(2).find(|pair| pair[0].text() == name);
        pair.map(|pair| pair[1].text()).unwrap_or_default()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Text(text) | Reply::Refused(text) => f.write_str(text),
            Reply::Int(number) => write!(f, "{number}"),
            Reply::Nil => f.write_str("(nil)"),
            Reply::List(list) => f.debug_list().entries(list.iter().map(Reply::to_string)).finish(),
        }
    }
}

/// A connection to a server, with its last reply.
pub struct Wire {
    stream: BufReader<TcpStream>,
    /// The last reply, byte for byte.
    pub raw: Vec<u8>,
}

impl Wire {
    /// Connects to a port of this machine.
    pub fn to(port: u16) -> io::Result<Wire> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        Ok(Wire { stream: BufReader::new(stream), raw: Vec::new() })
    }

    /// Sends one command and waits for its reply. A refusal is a reply.
    pub fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.raw.clear();
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let begin = self.raw.len();
        self.stream.read_until(b'\n', &mut self.raw)?;
        let line = String::from_utf8_lossy(&self.raw[begin..]).into_owned();
        let Some(line) = line.strip_suffix("\r\n") else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server hung up"));
        };
        let mut chars = line.chars();
        let (kind, rest) = (chars.next(), chars.as_str());
        match kind {
            Some('+') => Ok(Reply::Text(rest.to_owned())),
            Some('-') => Ok(Reply::Refused(rest.to_owned())),
            Some(':') => Ok(Reply::Int(number(rest)?)),
            Some('$') => self.bytes(number(rest)?),
            Some('*') => {
                let Ok(items) = u64::try_from(number(rest)?) else { return Ok(Reply::Nil) };
                (0..items).map(|_| self.reply()).collect::<io::Result<_>>().map(Reply::List)
            }
            _ => Err(strange(line)),
        }
    }

    fn bytes(&mut self, length: i64) -> io::Result<Reply> {
        let Ok(length) = u64::try_from(length) else { return Ok(Reply::Nil) };
        let begin = self.raw.len();
        let read = (&mut self.stream).take(length + 2).read_to_end(&mut self.raw)?;
        let Some(value) = self.raw[begin..].strip_suffix(b"\r\n").filter(|_| read > 1) else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server hung up"));
        };
        Ok(Reply::Text(String::from_utf8_lossy(value).into_owned()))
    }
}

fn number(digits: &str) -> io::Result<i64> {
    digits.parse().map_err(|_| strange(digits))
}

fn strange(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply of RESP 2: {line:?}"))
}
