//! Lines of NDJSON from chunks of any size. A line that is too long is not kept: at most one line of 512 KiB is in
//! memory, whatever a caller sends.

use crate::bounds::LINE_BYTES_MAX;
use crate::refusal::Refusal;
use crate::sentences::BodyRefusal;

/// A line that is not blank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineRead<'a> {
    /// The line, without its end.
    Whole(&'a [u8]),
    /// A line of more than 512 KiB. Its bytes are dropped, and it is reported as soon as its length is known.
    TooLong,
}

/// The refusal of a line that is too long; the caller adds its number.
pub fn line_too_long() -> Refusal {
    BodyRefusal::LineTooLong { most: LINE_BYTES_MAX }.into()
}

/// Reads one line; a refusal has its number, also if the line is too long.
pub(super) fn read_line<T>(
    (number, line): (usize, LineRead<'_>),
    read: impl FnOnce(usize, &[u8]) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let read = match line {
        LineRead::Whole(line) => read(number, line),
        LineRead::TooLong => Err(line_too_long()),
    };
    read.map_err(|no| no.on_line(number))
}

/// Reads all lines of a whole body, up to the first refused one. Blank lines are counted and skipped.
pub(super) fn read_lines<T>(
    body: &[u8],
    mut read: impl FnMut((usize, LineRead<'_>)) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    let (mut lines, mut rest, mut all) = (Lines::default(), body, Vec::new());
    while let Some(line) = lines.next(&mut rest) {
        all.push(read(line)?);
    }
    if let Some(line) = lines.finish() {
        all.push(read(line)?);
    }
    Ok(all)
}

/// Splits chunks into lines and counts these from 1. Blank lines are counted and not returned.
#[derive(Debug)]
pub struct Lines {
    /// The beginning of a line whose end has not arrived.
    held: Vec<u8>,
    /// The number of the present line.
    number: usize,
    /// The present line was reported as too long: the rest of it is dropped.
    dropping: bool,
    /// `held` was returned by the call before, so the next call clears it.
    told: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { held: Vec::new(), number: 1, dropping: false, told: false }
    }
}

impl Lines {
    /// Takes the next line from the front of `chunk`, with its number. `None`: the chunk is used
    /// up, and the rest of it is held; go on with the next chunk.
    pub fn next<'a, 'c: 'a>(&'a mut self, chunk: &mut &'c [u8]) -> Option<(usize, LineRead<'a>)> {
        self.forget_told();
        loop {
            if chunk.is_empty() {
                return None;
            }
            let end = chunk.iter().position(|c| *c == b'\n');
            let (piece, rest) = match end {
                Some(at) => (&chunk[..at], &chunk[at + 1..]),
                None => (*chunk, &[][..]),
            };
            *chunk = rest;
            let number = self.number;
            self.number += usize::from(end.is_some());
            if self.dropping {
                self.dropping = end.is_none();
                continue;
            }
            // One more byte is allowed for the carriage return of a line end.
            let length = self.held.len() + piece.len();
            let returns = usize::from(piece.ends_with(b"\r"));
            if length - returns > LINE_BYTES_MAX {
                self.held = Vec::new();
                self.dropping = end.is_none();
                return Some((number, LineRead::TooLong));
            }
            if end.is_none() {
                self.held.extend_from_slice(piece);
                continue;
            }
            if self.held.is_empty() {
                let line = without_return(piece);
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Some((number, LineRead::Whole(line)));
            }
            self.held.extend_from_slice(piece);
            if self.held.trim_ascii().is_empty() {
                self.held.clear();
                continue;
            }
            self.told = true;
            return Some((number, LineRead::Whole(without_return(&self.held))));
        }
    }

    /// The last line, if the text did not end with a line end.
    pub fn finish(&mut self) -> Option<(usize, LineRead<'_>)> {
        self.forget_told();
        if self.dropping || self.held.trim_ascii().is_empty() {
            return None;
        }
        self.told = true;
        Some((self.number, LineRead::Whole(without_return(&self.held))))
    }

    /// The number of lines that have ended, blank ones included.
    pub fn ended(&self) -> usize {
        self.number - 1
    }

    fn forget_told(&mut self) {
        if std::mem::take(&mut self.told) {
            self.held.clear();
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    /// The lines of `text` when it arrives in chunks of `size` bytes. `None` is a line that is too long.
    fn told(text: &[u8], size: usize) -> Vec<(usize, Option<Vec<u8>>)> {
        let mut lines = Lines::default();
        let mut all = Vec::new();
        let keep = |(number, line): (usize, LineRead<'_>)| match line {
            LineRead::Whole(line) => (number, Some(line.to_vec())),
            LineRead::TooLong => (number, None),
        };
        for mut chunk in text.chunks(size) {
            while let Some(line) = lines.next(&mut chunk) {
                all.push(keep(line));
            }
            assert!(lines.held.capacity() <= 4 * LINE_BYTES_MAX);
        }
        all.extend(lines.finish().map(keep));
        assert_eq!(lines.finish(), None);
        all
    }

    #[test]
    fn lines_are_the_same_in_chunks_of_any_size() {
        let whole = |number, text: &str| (number, Some(text.as_bytes().to_vec()));
        for (text, lines) in [
            ("", vec![]),
            ("\n\n", vec![]),
            ("a", vec![whole(1, "a")]),
            ("a\nb\n", vec![whole(1, "a"), whole(2, "b")]),
            ("a\r\n\r\n \t\nb\r", vec![whole(1, "a"), whole(4, "b")]),
            ("\n\n{\"a\": 1}\n\n{}", vec![whole(3, "{\"a\": 1}"), whole(5, "{}")]),
        ] {
            for size in 1..=text.len().max(1) {
                assert_eq!(told(text.as_bytes(), size), lines, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_line_too_long_is_told_once_and_the_others_go_on() {
        let fits = vec![b'x'; LINE_BYTES_MAX];
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let text =
            [&b"a\n"[..], &long, b"\n", &fits, b"\r\n", &long, &long, b"\nb\n", &long].concat();
        for size in [1_000, 4_096, 65_536, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, text.len()] {
            let told = told(&text, size);
            let numbers: Vec<(usize, Option<usize>)> =
                told.iter().map(|(n, line)| (*n, line.as_ref().map(Vec::len))).collect();
            assert_eq!(
                numbers,
                [
                    (1, Some(1)),
                    (2, None),
                    (3, Some(LINE_BYTES_MAX)),
                    (4, None),
                    (5, Some(1)),
                    (6, None)
                ],
                "by {size}"
            );
        }
        assert_eq!(line_too_long().code, Code::TooLarge);
    }
}
