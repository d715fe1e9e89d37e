//! CSV, read strictly: a quote that is never closed, a line break in a cell or a row with another number of cells is
//! refused with its line and its column, and never guessed at.
//!
//! A lenient reader takes everything after a lost quote for one cell: the rest of the file is missing in the set, and
//! what is missing in a set is retired. Nothing here shows the content of a cell.

use std::borrow::Cow;

use tenure_core::count::counted;

/// A cell that was read, or where and why the file is refused.
type CsvRead<T> = Result<T, BadCsv>;

/// A row, which has as many cells as the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvRow<'a> {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Its cells, without their quotes.
    pub cells: Vec<Cow<'a, str>>,
}

/// Whether a cell in quotes may go on in the next line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineBreaks {
    /// A cell may have several lines.
    Taken,
    /// A cell has one line: a lost quote is far more frequent than a cell of several lines.
    Refused,
}

impl LineBreaks {
    /// As `--multiline` says it.
    pub fn said(multiline: bool) -> Self {
        if multiline { LineBreaks::Taken } else { LineBreaks::Refused }
    }
}

/// Why a file is not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCsv {
    /// The line, from 1, and its error.
    pub sentence: String,
    /// The remedy; empty if the sentence has it.
    pub hint: &'static str,
}

/// Reads all rows, the header first. Empty lines do not count.
pub fn rows(bytes: &[u8], breaks: LineBreaks) -> CsvRead<Vec<CsvRow<'_>>> {
    let mut reader = CsvReader { text: text(bytes)?, at: 0, line: 1, breaks, names: Vec::new() };
    let mut rows = Vec::new();
    while let Some(row) = reader.row()? {
        match reader.names.len() {
            0 => reader.names = row.cells.iter().map(|name| name.trim().to_owned()).collect(),
            columns if columns != row.cells.len() => return Err(reader.other_columns(&row)),
            _ => {}
        }
        rows.push(row);
    }
    Ok(rows)
}

fn text(bytes: &[u8]) -> CsvRead<&str> {
    std::str::from_utf8(bytes).map_err(|bad| {
        let read = &bytes[..bad.valid_up_to()];
        let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
        let hint = "save the file as UTF-8";
        BadCsv { sentence: format!("line {line}: it is not UTF-8"), hint }
    })
}

struct CsvReader<'a> {
    text: &'a str,
    /// How many bytes were read.
    at: usize,
    /// The line of the next byte.
    line: usize,
    breaks: LineBreaks,
    /// The names of the header; none before it was read.
    names: Vec<String>,
}

impl<'a> CsvReader<'a> {
    fn row(&mut self) -> CsvRead<Option<CsvRow<'a>>> {
        while self.line_break() {}
        if self.at == self.text.len() {
            return Ok(None);
        }
        let (line, mut cells) = (self.line, Vec::new());
        loop {
            cells.push(self.cell(cells.len())?);
            match self.next() {
                Some(b',') => self.at += 1,
                _ => {
                    self.line_break();
                    return Ok(Some(CsvRow { line, cells }));
                }
            }
        }
    }

    /// A cell, up to the comma, the line break or the end behind it; `column` counts from 0.
    fn cell(&mut self, column: usize) -> CsvRead<Cow<'a, str>> {
        if self.next() == Some(b'"') {
            return self.quoted(column);
        }
        let rest = &self.text[self.at..];
        let length = rest.find([',', '\n', '\r']).unwrap_or(rest.len());
        let cell = &rest[..length];
        if cell.contains('"') {
            let why = "a quote is inside a cell that does not begin with one";
            let hint =
                "put the whole cell into quotes, and write a quote in it twice: \"5\"\" wide\"";
            return Err(self.refused(self.line, column, why, hint));
        }
        self.at += length;
        Ok(Cow::Borrowed(cell))
    }

    fn quoted(&mut self, column: usize) -> CsvRead<Cow<'a, str>> {
        let opened = self.line;
        let never_closed = |reader: &Self| {
            let why = "the quote that opens here is never closed";
            reader.refused(opened, column, why, "close it, or remove it")
        };
        self.at += 1;
        let begin = self.at;
        let end = loop {
            let rest = &self.text[self.at..];
            let quote = rest.find('"').ok_or_else(|| never_closed(self))?;
            self.at += quote + 1;
            // A quote that appears twice is one in the cell.
            match self.next() {
                Some(b'"') => self.at += 1,
                _ => break self.at - 1,
            }
        };
        let cell = &self.text[begin..end];
        let lines = cell.bytes().filter(|byte| *byte == b'\n').count();
        if self.breaks == LineBreaks::Refused && cell.contains(['\n', '\r']) {
            let why = "the quote that opens here is closed in a later line";
            let hint =
                "look for a missing quote, or add --multiline if cells may have several lines";
            return Err(self.refused(opened, column, why, hint));
        }
        self.line += lines;
        if !matches!(self.next(), None | Some(b',' | b'\n' | b'\r')) {
            let why = "something follows the quote that closes the cell";
            let hint = "write a quote within a cell twice: \"5\"\" wide\"";
            return Err(self.refused(self.line, column, why, hint));
        }
        Ok(if cell.contains('"') {
            Cow::Owned(cell.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(cell)
        })
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes beyond a line break, if there is one here.
    fn line_break(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let length = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => return false,
        };
        self.at += length;
        self.line += 1;
        true
    }

    fn refused(&self, line: usize, column: usize, why: &str, hint: &'static str) -> BadCsv {
        let name = self.names.get(column).map(|name| format!(" ('{name}')")).unwrap_or_default();
        let sentence = format!("line {line}, column {}{name}: {why}", column + 1);
        BadCsv { sentence, hint }
    }

    fn other_columns(&self, row: &CsvRow<'_>) -> BadCsv {
        let columns = |n: usize| counted(n as u64, "column", "columns");
        let (has, header) = (row.cells.len(), self.names.len());
        let sentence =
            format!("line {}: it has {}, and the header has {header}", row.line, columns(has));
        let hint = if has < header {
            "give the row all its cells; an empty one is an empty text between commas"
        } else {
            "put a cell that contains a comma into quotes"
        };
        BadCsv { sentence, hint }
    }
}

#[cfg(test)]
mod tests;
