//! The chain of lines: each has the number and the hash of the line before, so that a changed, cut or moved line is
//! found. Nothing here knows a file.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tenure_core::trail::TrailLine;

/// The hash in the first line of a trail, which has no line before it.
const START: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The end of a chain: what the next line must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChainEnd {
    /// The number of the next line.
    pub seq: u64,
    /// The hash of the last line, in hex.
    pub hash: String,
}

impl Default for ChainEnd {
    fn default() -> Self {
        ChainEnd { seq: 0, hash: START.to_owned() }
    }
}

/// The hash of a line without its line feed.
pub(super) fn hash_of(line: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(line))
}

impl ChainEnd {
    /// The end behind this line, which is the last one of a file.
    pub(super) fn behind(line: &[u8]) -> Self {
        let seq = serde_json::from_slice::<TrailLine>(line).map_or(0, |read| read.seq + 1);
        ChainEnd { seq, hash: hash_of(line) }
    }

    /// Puts the line at the end, and returns its bytes without a line feed, with the end behind it. The end here stays
    /// as it is until those bytes are written.
    pub(super) fn seal(&self, line: &mut TrailLine) -> serde_json::Result<(Vec<u8>, ChainEnd)> {
        line.seq = self.seq;
        line.prev.clone_from(&self.hash);
        let bytes = serde_json::to_vec(line)?;
        let end = ChainEnd { seq: self.seq + 1, hash: hash_of(&bytes) };
        Ok((bytes, end))
    }

    /// Checks that a line follows here. `begins`: the name of the file, if it is the first line in it.
    ///
    /// # Errors
    /// The fault that was found.
    pub(super) fn check(
        &self,
        line: &[u8],
        begins: Option<&str>,
    ) -> Result<ChainEnd, &'static str> {
        let read: TrailLine =
            serde_json::from_slice(line).map_err(|_| "the line is not one that a server wrote")?;
        if read.seq != self.seq {
            return Err("its number is not the next one: lines were cut out, added or moved");
        }
        if read.prev != self.hash {
            return Err("it lacks the hash of the line before: that one was changed or replaced");
        }
        if read.begins.as_deref() != begins {
            return Err("it is not the line that began this file: lines were cut out or moved");
        }
        Ok(ChainEnd { seq: read.seq + 1, hash: hash_of(line) })
    }

    /// Checks the first line of the oldest file that is kept. Files before it were deleted by age or size, unless it is
    /// the first of all.
    pub(super) fn check_first(line: &[u8], file: &str) -> Result<ChainEnd, &'static str> {
        let read: TrailLine =
            serde_json::from_slice(line).map_err(|_| "the line is not one that a server wrote")?;
        let before = ChainEnd { seq: read.seq, hash: read.prev };
        if before.seq == 0 && before.hash != START {
            return Err("it is the first line of all, and has a hash of a line before");
        }
        before.check(line, Some(file))
    }
}
