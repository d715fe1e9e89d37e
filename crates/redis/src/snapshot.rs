//! A snapshot in Redis: its parts packed one behind the other, and cut into pieces of at most 1 MiB.
//!
//! Pieces are written, unlinked and installed under the leader's epoch. It must never take a missing piece for the end
//! of a snapshot, and does not know the content of a part.

use std::ops::Range;
use std::sync::mpsc::Receiver;

use tenure_journal::packed::{self, FRAME, PACKED_BYTES_MAX};
use tenure_journal::{JournalEntry, Position, ReadError, Snapshot};

use crate::generation::Generation;
use crate::resp::RespValue;
use crate::scripts::{PieceCall, ScriptReply, SnapshotName, Term};
use crate::store::{RedisStore, StoreError, came};

/// The longest piece: Redis needs some milliseconds for it, and an append in that time waits.
const PIECE_BYTES: usize = 1 << 20;

/// Reasons why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Redis cannot be reached. Some pieces may be there.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The parts of the snapshot cannot be read.
    #[error(transparent)]
    Parts(#[from] ReadError),
    /// Redis refused a piece.
    #[error("a piece of the snapshot was refused: {0:?}")]
    Refused(ScriptReply),
}

impl RedisStore {
    /// Writes all pieces of a snapshot under a name that was never used, and returns its description for the
    /// installation. Blocks. A failure may leave pieces: the leader at the time of the next snapshot unlinks them.
    ///
    /// # Errors
    /// Redis cannot be reached, the parts cannot be read, or the process is not the owner.
    pub fn write_snapshot(
        &self,
        by: &Term,
        generation: Generation,
        snapshot: &mut dyn Snapshot,
    ) -> Result<SnapshotName, WriteError> {
        self.unlink_given_up(by, generation)?;
        let mut writer = PieceWriter { store: self, by, generation, pieces: 0, bytes: 0 };
        let (mut piece, mut last) = (Vec::with_capacity(PIECE_BYTES), Position::default());
        while let Some(part) = snapshot.next_part()? {
            packed::put_frame(&mut piece, &part);
            last = part.position();
            while piece.len() >= PIECE_BYTES {
                let rest = piece.split_off(PIECE_BYTES);
                writer.write(std::mem::replace(&mut piece, rest))?;
            }
        }
        if !piece.is_empty() || writer.pieces == 0 {
            writer.write(piece)?;
        }
        let PieceWriter { pieces, bytes, .. } = writer;
        Ok(SnapshotName { generation, tip: snapshot.end(), pieces, bytes, sum: last.sum })
    }

    /// Unlinks the pieces of a leader that abandoned a snapshot, or died.
    fn unlink_given_up(&self, by: &Term, next: Generation) -> Result<(), StoreError> {
        let Some(own) = self.look()?.own else { return Ok(()) };
        let is_named = |left| {
            let named = own.snapshot.iter().chain(&own.before);
            named.into_iter().any(|name| name.generation == left)
        };
        let left = own.writing.filter(|left| *left != next && !is_named(*left));
        let Some(left) = left else { return Ok(()) };
        self.unlink_unfinished(by, left)
    }

    /// Unlinks all pieces of an unfinished snapshot. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached; some pieces may be gone.
    pub fn unlink_unfinished(&self, by: &Term, left: Generation) -> Result<(), StoreError> {
        let pieces = self.pieces_from(left, 0)?;
        self.unlink_snapshot(by, left, pieces).map(drop)
    }

    /// The number of pieces of a snapshot; the first `from` are known to exist. They are written in order, so the first
    /// missing one is behind the last. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub fn pieces_from(&self, generation: Generation, from: u32) -> Result<u32, StoreError> {
        let mut pieces = from;
        while self.has_piece(generation, pieces)? {
            pieces += 1;
        }
        Ok(pieces)
    }

    /// Unlinks the existing pieces of a snapshot, the last one first. Blocks. Answers `Refused` if `own` names the
    /// snapshot.
    ///
    /// # Errors
    /// Redis cannot be reached; some pieces may be gone.
    pub fn unlink_snapshot(
        &self,
        by: &Term,
        generation: Generation,
        pieces: u32,
    ) -> Result<Option<ScriptReply>, StoreError> {
        self.unlink_pieces(by, generation, 0..pieces)
    }

    /// Unlinks these pieces of a snapshot, if they exist. See [`RedisStore::unlink_snapshot`].
    ///
    /// # Errors
    /// Redis cannot be reached; some pieces may be gone.
    pub fn unlink_pieces(
        &self,
        by: &Term,
        generation: Generation,
        pieces: Range<u32>,
    ) -> Result<Option<ScriptReply>, StoreError> {
        let mut said = None;
        for index in pieces.rev() {
            let reply = self.piece(&PieceCall { by: by.clone(), generation, index, body: None })?;
            let is_done = matches!(reply, ScriptReply::Done { .. });
            said = Some(reply);
            if !is_done {
                break;
            }
        }
        Ok(said)
    }

    /// Begins to read the snapshot that `own` names.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program or release wrote `own`.
    pub fn snapshot(&self) -> Result<Option<RedisSnapshot>, StoreError> {
        let own = self.look()?.own;
        Ok(own.and_then(|own| own.snapshot).map(|name| RedisSnapshot::of(self.clone(), name)))
    }
}

struct PieceWriter<'a> {
    store: &'a RedisStore,
    by: &'a Term,
    generation: Generation,
    pieces: u32,
    bytes: u64,
}

impl PieceWriter<'_> {
    fn write(&mut self, body: Vec<u8>) -> Result<(), WriteError> {
        let (by, generation, index) = (self.by.clone(), self.generation, self.pieces);
        self.pieces += 1;
        self.bytes += body.len() as u64;
        match self.store.piece(&PieceCall { by, generation, index, body: Some(body) })? {
            ScriptReply::Done { .. } => Ok(()),
            other => Err(WriteError::Refused(other)),
        }
    }
}

/// The parts of a snapshot in Redis. The leader may install another one and unlink this during the read.
pub struct RedisSnapshot {
    store: RedisStore,
    name: SnapshotName,
    /// The piece that was requested and not taken yet.
    coming: Option<Receiver<Result<RespValue, String>>>,
    /// The next piece to ask for.
    next: u32,
    /// Bytes that were read, from an incomplete part on.
    rest: Vec<u8>,
    taken: usize,
    bytes: u64,
    /// The position of the last part that was returned.
    before: Position,
}

impl RedisSnapshot {
    fn of(store: RedisStore, name: SnapshotName) -> RedisSnapshot {
        let mut snapshot = RedisSnapshot {
            store,
            name,
            coming: None,
            next: 0,
            rest: Vec::new(),
            taken: 0,
            bytes: 0,
            before: Position::default(),
        };
        snapshot.ask();
        snapshot
    }

    /// Requests the next piece, so that it comes while the one before is unpacked.
    fn ask(&mut self) {
        if self.next < self.name.pieces {
            self.coming = Some(self.store.begin_piece(self.name.generation, self.next));
            self.next += 1;
        }
    }

    /// The reason for a bad piece: the snapshot was replaced, or it is damaged.
    fn fault(&self, why: String) -> ReadError {
        let named = self.store.look().map(|seen| seen.own.and_then(|own| own.snapshot));
        match named {
            Ok(named) if named == Some(self.name) => ReadError::Snapshot(why),
            Ok(_) => ReadError::Turned,
            Err(why) => ReadError::Away(why.to_string()),
        }
    }

    /// Adds the next piece to the bytes that were read; false if there was none left.
    fn take_piece(&mut self) -> Result<bool, ReadError> {
        let Some(coming) = self.coming.take() else { return Ok(false) };
        let index = self.next - 1;
        let piece = came(&coming).map_err(|why| ReadError::Away(why.to_string()))?;
        self.ask();
        let pieces = self.name.pieces;
        let Some(piece) = piece.bytes() else {
            return Err(self.fault(format!("piece {} of {pieces} is missing", index + 1)));
        };
        self.rest.drain(..self.taken);
        self.taken = 0;
        self.bytes += piece.len() as u64;
        self.rest.extend_from_slice(piece);
        Ok(true)
    }

    /// The field and the bytes of the next part, once they are complete. A length above the limit is damage: the empty
    /// field that is returned then does not exist.
    fn frame(&self) -> Option<(&[u8], &[u8])> {
        let rest = &self.rest[self.taken..];
        let (length, field) = packed::frame_head(rest)?;
        if length > PACKED_BYTES_MAX {
            return Some((&[], &[]));
        }
        rest[FRAME..].get(..length).map(|packed| (field, packed))
    }
}

impl Snapshot for RedisSnapshot {
    fn end(&self) -> Position {
        self.name.tip
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        let number = self.before.number + 1;
        while self.frame().is_none() {
            if self.take_piece()? {
                continue;
            }
            let SnapshotName { bytes, sum, .. } = self.name;
            let is_whole = self.taken == self.rest.len();
            return if is_whole && self.bytes == bytes && self.before.sum == sum {
                Ok(None)
            } else {
                Err(self.fault("it ends before its last part".to_owned()))
            };
        }
        let part = self.frame().and_then(|(field, packed)| {
            let part = JournalEntry::read(packed::unpack(field, packed)?).ok()?;
            Some((part, FRAME + packed.len()))
        });
        match part.filter(|(part, _)| part.follows(self.before).is_ok()) {
            Some((part, bytes)) => {
                self.taken += bytes;
                self.before = part.position();
                Ok(Some(part))
            }
            None => Err(self.fault(format!("part {number} is not what was written"))),
        }
    }
}

impl std::fmt::Debug for RedisSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSnapshot").field("name", &self.name).finish_non_exhaustive()
    }
}
