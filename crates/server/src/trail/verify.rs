//! `tenure trail verify`: reads all files of a trail and finds the first line that does not follow the one before.
//!
//! The hash of a line depends on all lines before it. A reader who knows the hash of the last line from elsewhere, such
//! as the log of the server, thereby also finds out that lines at the end are missing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Serialize;
use tenure_core::bounds::TRAIL_LINE_BYTES_MAX;

use super::chain::ChainEnd;
use super::day_file::files_in;

/// A trail without a fault.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct VerifiedTrail {
    pub files: u64,
    pub lines: u64,
    /// The number of the first line: above 0 if older files were deleted. `None`: there is no line.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
    /// The hash of the last line, in hex.
    pub last_hash: Option<String>,
    /// Bytes of an incomplete line at the end: a server is writing it, or died while it did.
    pub incomplete_bytes: u64,
    /// Whether one of the lines has the hash that was looked for; `None`: none was.
    pub has_anchor: Option<bool>,
}

/// The first line of a trail that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TrailBreak {
    /// The name of its file.
    pub file: String,
    /// Its number in the file, from 1.
    pub line: u64,
    pub why: String,
}

/// Verifies all files in a folder. `anchor`: the hash of a line that must be there, in hex.
///
/// # Errors
/// A file cannot be read.
pub fn verify_trail(
    folder: &Path,
    anchor: Option<&str>,
) -> io::Result<Result<VerifiedTrail, TrailBreak>> {
    let files = files_in(folder)?;
    let mut found = VerifiedTrail { files: files.len() as u64, ..VerifiedTrail::default() };
    found.has_anchor = anchor.map(|_| false);
    let mut end: Option<ChainEnd> = None;
    for (at, name) in files.iter().enumerate() {
        let mut lines = BufReader::new(File::open(name.path(folder))?);
        for number in 1.. {
            let mut line = Vec::new();
            let most = TRAIL_LINE_BYTES_MAX as u64 + 1;
            if lines.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let broken = |why: &str| {
                Ok(Err(TrailBreak { file: name.to_string(), line: number, why: why.to_owned() }))
            };
            let is_last_file = at + 1 == files.len();
            if line.pop_if(|byte| *byte == b'\n').is_none() {
                if line.len() > TRAIL_LINE_BYTES_MAX {
                    return broken("the line is longer than any that a server writes");
                }
                if !is_last_file {
                    return broken("the line is cut short");
                }
                found.incomplete_bytes = line.len() as u64;
                break;
            }
            let file = name.to_string();
            let checked = match &end {
                None => ChainEnd::check_first(&line, &file),
                Some(end) => end.check(&line, (number == 1).then_some(file.as_str())),
            };
            let next = match checked {
                Ok(next) => next,
                Err(why) => return broken(why),
            };
            found.lines += 1;
            found.first_seq = found.first_seq.or(Some(next.seq - 1));
            found.last_seq = Some(next.seq - 1);
            if anchor.is_some_and(|anchor| anchor.eq_ignore_ascii_case(&next.hash)) {
                found.has_anchor = Some(true);
            }
            end = Some(next);
        }
    }
    found.last_hash = end.map(|end| end.hash);
    Ok(Ok(found))
}
