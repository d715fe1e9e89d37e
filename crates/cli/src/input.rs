//! Files that people write, and stdin, read as bytes without a byte order mark.
//!
//! Editors and spreadsheets of some systems put a mark in front of UTF-8, and some shells write UTF-16: the first is
//! taken everywhere, the second is refused in words, instead of as a wrong character of JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tenure_core::bounds::BODY_BYTES_MAX;

use crate::exit::Failure;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// The longest mark that is looked for.
const MARK_BYTES_MAX: usize = 3;

/// A file or stdin that is open, behind its byte order mark.
pub struct Input {
    /// For sentences: `stdin`, or the path in quotes.
    pub name: String,
    /// Everything behind the mark.
    pub read: Box<dyn Read + Send>,
    /// The size of a file; unknown of a pipe.
    pub bytes: Option<u64>,
}

/// The byte order mark at the beginning of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// Nothing special, or too little to say.
    None,
    /// The mark of UTF-8.
    Utf8,
    /// The mark of UTF-16 or UTF-32.
    Wide,
}

fn mark(begin: &[u8]) -> Mark {
    match begin {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Mark::Wide,
        begin if begin.starts_with(UTF8_MARK) => Mark::Utf8,
        _ => Mark::None,
    }
}

fn wide(name: &str) -> Failure {
    Failure::usage(format!("{name} is UTF-16, not UTF-8")).hint(
        "save it as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8; in PowerShell: \
         Out-File -Encoding utf8",
    )
}

impl Input {
    /// Opens a file, or stdin (`-`). It waits for the first bytes.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Self::behind_mark("stdin".to_owned(), Box::new(io::stdin()), None);
        }
        let name = format!("'{}'", path.display());
        let failed = |error| Failure::file(format!("cannot read {name}"), &error);
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(Failure::usage(format!("{name} is a folder")));
        }
        let bytes = Some(meta.len()).filter(|_| meta.is_file());
        Self::behind_mark(name, Box::new(file), bytes)
    }

    fn behind_mark(
        name: String,
        mut read: Box<dyn Read + Send>,
        bytes: Option<u64>,
    ) -> Result<Self, Failure> {
        let mut begin = Vec::new();
        // Byte by byte, and no further than a mark could go on: a read from a pipe must not wait in vain.
        while begin.len() < MARK_BYTES_MAX && may_go_on(&begin) {
            let more = (&mut read).take(1).read_to_end(&mut begin);
            let more = more.map_err(|e| Failure::file(format!("cannot read {name}"), &e))?;
            if more == 0 {
                break;
            }
        }
        match mark(&begin) {
            Mark::Wide => return Err(wide(&name)),
            Mark::Utf8 => begin.clear(),
            Mark::None => {}
        }
        Ok(Input { name, read: Box::new(io::Cursor::new(begin).chain(read)), bytes })
    }
}

/// Whether these bytes may be the beginning of a mark that is not whole.
fn may_go_on(begin: &[u8]) -> bool {
    mark(begin) == Mark::None
        && [UTF8_MARK, b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| mark.starts_with(begin))
}

/// All of a file, or of stdin (`-`), behind its mark; at most `most` bytes and a little, so that no mistaken file
/// fills the memory before the store refuses it.
pub fn read_all(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    // White space around a payload does not count; a body's size of it is enough.
    let most = most.saturating_add(BODY_BYTES_MAX) as u64;
    let Input { name, read, .. } = Input::open(path)?;
    let mut bytes = Vec::new();
    match read.take(most + 1).read_to_end(&mut bytes) {
        Ok(read) if read as u64 > most => {
            Err(Failure::usage(format!("{name} is larger than {most} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::file(format!("cannot read {name}"), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::USAGE;

    fn read(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let input = Input::behind_mark("x".into(), Box::new(io::Cursor::new(bytes.to_vec())), None);
        let mut all = Vec::new();
        input?.read.read_to_end(&mut all).unwrap();
        Ok(all)
    }

    #[test]
    fn a_mark_of_utf8_is_left_out_and_nothing_else() {
        for (bytes, want) in [
            (&b"\xef\xbb\xbf{}"[..], &b"{}"[..]),
            (b"\xef\xbb\xbf", b""),
            (b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb\xbf"),
            (b"\xef\xbbx", b"\xef\xbbx"),
            (b"\xef", b"\xef"),
            (b"\xff", b"\xff"),
            (b"", b""),
            (b"{\xef\xbb\xbf}", b"{\xef\xbb\xbf}"),
        ] {
            assert_eq!(read(bytes).unwrap(), want, "{bytes:?}");
        }
    }

    #[test]
    fn utf16_is_refused_in_words() {
        for bytes in [&b"\xff\xfe{\0}\0"[..], b"\xfe\xff\0{\0}", b"\xff\xfe\0\0{\0\0\0"] {
            let failure = read(bytes).unwrap_err();
            assert_eq!(
                (failure.code, failure.sentence.as_deref()),
                (USAGE, Some("x is UTF-16, not UTF-8"))
            );
        }
    }

    /// Gives one byte, and would wait for ever for the next.
    struct Slow(bool);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(!std::mem::replace(&mut self.0, true), "it waits for what no mark has");
            buffer[0] = b'{';
            Ok(1)
        }
    }

    #[test]
    fn a_pipe_is_read_no_further_than_a_mark_could_go() {
        assert!(Input::behind_mark("x".into(), Box::new(Slow(false)), None).is_ok());
    }
}
