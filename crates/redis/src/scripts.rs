//! The scripts: their texts, their arguments and their replies. It opens no connection and reads no entry.
//!
//! A repeat of any call gets the same answer as the first. The names are those of the election model, which decides
//! when they are called.

use tenure_core::secret::Secret;
use tenure_journal::{JournalEntry, Position, packed};

use crate::generation::Generation;
use crate::keys::StoreKeys;
use crate::resp::{RespValue, Words};
use crate::server_entry::ServerEntry;

/// The format of keys, fields and entries that this release writes.
pub const FORMAT: u32 = 1;

/// A script: sent whole once on each connection, and called by its digest after that.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
}

/// The first line of each. A full Redis refuses no script: accepted work must be kept, and snapshots make room.
const FLAGS: &str = "#!lua flags=allow-oom\n";

impl Script {
    /// The whole text. It contains the run id, so each run has its own text.
    pub fn text_for(&self, run: &str) -> String {
        match run {
            "" => format!("{FLAGS}{}", self.text),
            run => format!("{FLAGS}-- For the run {run}.\n{}", self.text),
        }
    }
}

macro_rules! scripts {
    ($($name:ident = $($file:literal)*;)*) => {$(
        pub(crate) static $name: Script =
            Script { text: concat!($(include_str!(concat!("../lua/", $file))),*) };
    )*};
}

scripts! {
    ACQUIRE = "acquire.lua";
    APPEND = "lean.lua" "fence.lua" "append.lua";
    PIECE = "fence.lua" "piece.lua";
    TURN = "fence.lua" "turn.lua";
    GIVE = "fence.lua" "give.lua";
    NAME = "name.lua";
    REGISTER = "register.lua";
    MARK = "fence.lua" "mark.lua";
    DROP = "fence.lua" "drop.lua";
    SETTINGS = "settings.lua";
}

/// A call of a script that can be sent, and sent again.
pub(crate) struct ScriptCall {
    pub script: &'static Script,
    /// The keys and arguments before the run id.
    words: Words,
    /// The run id that the caller knows, and the arguments behind it; `None` for a script without one.
    run: Option<(String, Words)>,
    /// Bytes that this call adds to the log.
    pub body: usize,
}

impl ScriptCall {
    pub(crate) fn new(script: &'static Script, keys: &[String]) -> ScriptCall {
        let words = Words::default().and(keys.len().to_string());
        let words = keys.iter().fold(words, |words, key| words.and(key));
        ScriptCall { script, words, run: None, body: 0 }
    }

    pub(crate) fn args<T: AsRef<[u8]>>(mut self, args: impl IntoIterator<Item = T>) -> ScriptCall {
        let words = self.run.as_mut().map_or(&mut self.words, |(_, words)| words);
        *words = args.into_iter().fold(std::mem::take(words), |words, arg| words.and(arg));
        self
    }

    pub(crate) fn by(self, by: &Term) -> ScriptCall {
        let call = self.args([hex(by.store), by.epoch.to_string(), hex(by.leader)]);
        ScriptCall { run: Some((by.run.clone(), Words::default())), ..call }
    }

    fn tip(self, tip: Position) -> ScriptCall {
        self.args([tip.number.to_string()]).args([tip.sum.to_le_bytes()])
    }

    /// The run id that the caller knows; empty for a script without one.
    pub(crate) fn run(&self) -> &str {
        self.run.as_ref().map_or("", |(run, _)| run)
    }

    /// Writes the call behind these words, with `run` in the place of the run id.
    pub(crate) fn write(&self, first: &Words, run: &str, out: &mut Vec<u8>) {
        match &self.run {
            Some((_, rest)) => {
                Words::write(&[first, &self.words, &Words::of(&[run]), rest], out);
            }
            None => Words::write(&[first, &self.words], out),
        }
    }
}

fn hex(id: u128) -> String {
    format!("{id:032x}")
}

/// The change that an append or a snapshot makes to the noted run id of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunNote {
    /// The noted run id does not change.
    Stays,
    /// Notes the caller's run id: no entry is missing under it.
    Whole,
    /// Notes no run id: entries may be missing, so the next leader starts a recovery.
    Lossy,
}

/// The argument for the scripts.
fn noted(note: RunNote, by: &Term) -> &str {
    match note {
        RunNote::Stays => "",
        RunNote::Whole => &by.run,
        RunNote::Lossy => "-",
    }
}

pub(crate) fn flag(is_set: bool) -> &'static str {
    if is_set { "1" } else { "" }
}

/// The arguments by which the fence recognises a leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The random id of the store that it leads.
    pub store: u128,
    /// The epoch at which it leads the store.
    pub epoch: u64,
    /// Its own id, new with each process.
    pub leader: u128,
    /// The run id of Redis that it knows, from `INFO`.
    pub run: String,
}

/// Acquires the store, if epoch, owner and run id are still as the caller saw them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acquisition {
    /// The id of the store; if there is no store, one is made with this id.
    pub store: u128,
    /// The id of the process that acquires it.
    pub leader: u128,
    /// Epoch and owner as the caller saw them; `None`: there was no `own`.
    pub seen: Option<(u64, u128)>,
    /// The run id of Redis that was seen: otherwise a late repeat could find the same epoch and owner again after a
    /// failover, and fence out its own sender.
    pub run: String,
    /// The highest epoch that the caller knows; the new epoch is above it.
    pub above: u64,
    /// True if nothing was here before. If `own` is made and this is false, no run id is noted, so the leader knows
    /// that entries may be lost.
    pub is_new: bool,
    /// The longest ttl that the caller knows, in microseconds.
    pub ttl: u64,
}

/// Writes the id of a store that lost it; changes nothing if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreNaming {
    /// The id to write.
    pub store: u128,
    /// The longest ttl that the caller knows, in microseconds.
    pub ttl: u64,
}

/// Writes an entry, or checks that the last one is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendCall {
    /// The calling process, and its knowledge of the store.
    pub by: Term,
    /// The number and checksum of the entry; for an empty append, those of the last one.
    pub tip: Position,
    /// `None`: an empty append.
    pub entry: Option<JournalEntry>,
    /// The leader's time, in microseconds.
    pub moment: u64,
    /// The longest ttl that the leader has granted, in microseconds.
    pub ttl: u64,
    /// The change to the noted run id.
    pub note: RunNote,
    /// True if the append writes Redis's time as the leader's heartbeat, and returns it. Otherwise it may take the
    /// short path.
    pub beats: bool,
}

/// Writes or unlinks one piece of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceCall {
    /// The calling process, and its knowledge of the store.
    pub by: Term,
    /// The name of the snapshot.
    pub generation: Generation,
    /// The index of the piece, from 0.
    pub index: u32,
    /// The content; `None` unlinks the piece.
    pub body: Option<Vec<u8>>,
}

/// A snapshot, as `own` describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotName {
    /// The epoch and counter that name it.
    pub generation: Generation,
    /// The last entry that it contains.
    pub tip: Position,
    /// The number of its pieces.
    pub pieces: u32,
    /// The total size of its pieces.
    pub bytes: u64,
    /// The checksum of its last part, which covers all of them.
    pub sum: u64,
}

impl SnapshotName {
    fn text(&self) -> String {
        let SnapshotName { generation, tip, pieces, bytes, sum } = self;
        format!("{generation} {} {:016x} {pieces} {bytes} {sum:016x}", tip.number, tip.sum)
    }

    pub(crate) fn read(text: &str) -> Option<SnapshotName> {
        let mut parts = text.split(' ');
        let generation = Generation::read(parts.next()?)?;
        let number = parts.next()?.parse().ok()?;
        let tip = Position { number, sum: u64::from_str_radix(parts.next()?, 16).ok()? };
        let (pieces, bytes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let sum = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(SnapshotName { generation, tip, pieces, bytes, sum })
    }
}

/// Installs a snapshot: loads begin with it from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotTurn {
    /// The calling process, and its knowledge of the store.
    pub by: Term,
    /// The snapshot; all of its pieces are written.
    pub snapshot: SnapshotName,
    /// True for a rebuild: the journal ends with this snapshot, and the log is dropped. Otherwise the entries behind
    /// the snapshot stay.
    pub heals: bool,
    /// The leader's time, in microseconds.
    pub moment: u64,
    /// The longest ttl that the leader has granted, in microseconds.
    pub ttl: u64,
    /// The change to the noted run id.
    pub note: RunNote,
}

/// Hands the leadership over to another server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// The calling process, and its knowledge of the store.
    pub by: Term,
    /// The last entry, which the journal must end with.
    pub tip: Position,
    /// The server that becomes the leader.
    pub to: u128,
}

impl Acquisition {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let (epoch, leader) =
            self.seen.map(|(epoch, leader)| (epoch.to_string(), hex(leader))).unwrap_or_default();
        ScriptCall::new(&ACQUIRE, &[keys.own(), keys.store()])
            .args([hex(self.store), hex(self.leader), epoch, leader, self.above.to_string()])
            .args([flag(self.is_new), &FORMAT.to_string(), &self.run])
            .args([self.ttl.to_string()])
    }
}

impl StoreNaming {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        ScriptCall::new(&NAME, &[keys.store()])
            .args([hex(self.store), FORMAT.to_string()])
            .args([self.ttl.to_string()])
    }
}

/// The call of [`RedisStore::register`](crate::RedisStore::register).
pub(crate) struct Registration<'a> {
    pub me: &'a ServerEntry,
    pub secret: &'a Secret,
}

impl Registration<'_> {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        ScriptCall::new(&REGISTER, &[keys.servers(), keys.secret()]).args([
            &hex(self.me.id),
            &self.me.text(),
            self.secret.reveal(),
        ])
    }
}

/// Fields of a store beside its id.
pub(crate) struct SettingsCall<'a> {
    pub fields: &'a [(&'a str, String)],
    /// True if existing fields stay.
    pub fills_in: bool,
}

impl SettingsCall<'_> {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let call = ScriptCall::new(&SETTINGS, &[keys.store()]).args([flag(self.fills_in)]);
        self.fields.iter().fold(call, |call, (field, value)| call.args([field, value.as_str()]))
    }
}

impl AppendCall {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let call = ScriptCall::new(&APPEND, &[keys.own(), keys.log()])
            .by(&self.by)
            .tip(self.tip)
            .args([self.moment.to_string(), self.ttl.to_string()])
            .args([noted(self.note, &self.by), flag(self.beats)]);
        match &self.entry {
            Some(entry) => {
                let (field, packed) = packed::pack(entry);
                ScriptCall { body: packed.len(), ..call.args([field, &packed]) }
            }
            None => call,
        }
    }
}

impl PieceCall {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let piece = keys.piece(self.generation, self.index);
        ScriptCall::new(&PIECE, &[keys.own(), keys.log(), piece])
            .by(&self.by)
            .args([self.generation.to_string()])
            .args(&self.body)
    }
}

impl SnapshotTurn {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let SnapshotName { generation, pieces, tip, .. } = self.snapshot;
        let pieces = (0..pieces).map(|index| keys.piece(generation, index));
        let all: Vec<_> = [keys.own(), keys.log()].into_iter().chain(pieces).collect();
        ScriptCall::new(&TURN, &all)
            .by(&self.by)
            .tip(tip)
            .args([self.moment.to_string(), self.ttl.to_string()])
            .args([noted(self.note, &self.by), flag(self.heals)])
            .args([generation.to_string(), self.snapshot.text()])
    }
}

impl HandOver {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        ScriptCall::new(&GIVE, &[keys.own(), keys.log()])
            .by(&self.by)
            .tip(self.tip)
            .args([hex(self.to)])
    }
}

/// The leader of a store, and the last entry of its journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Own {
    /// The id of the store that this belongs to.
    pub store: u128,
    /// Rises with each acquisition.
    pub epoch: u64,
    /// The process that leads the store, or is to take over.
    pub leader: u128,
    /// The last entry of the journal.
    pub tip: Position,
    /// The leader's time at its last append, in microseconds. Never falls.
    pub moment: u64,
    /// Redis's time at the last append with a heartbeat, in microseconds.
    pub beat: u64,
    /// The run id under which no loss is known; empty if there is no such run.
    pub noted_run: String,
    /// The longest ttl of any granted lease, in microseconds. Never falls.
    pub largest_ttl: u64,
    /// The snapshot that a load begins with.
    pub snapshot: Option<SnapshotName>,
    /// The previous snapshot, whose pieces stay until the next one is installed, or for a minute.
    pub before: Option<SnapshotName>,
    /// The snapshot whose pieces are being written, or were abandoned half-way.
    pub writing: Option<Generation>,
}

impl Own {
    /// Parses the names and values of the hash; `None` if they are not those of a leader.
    pub(crate) fn read(hash: &RespValue) -> Option<Own> {
        let hash = hash.list()?;
        let bytes = |name: &str| {
            let mut pairs = hash.chunks_exact(2);
            pairs.find(|pair| pair[0].text() == Some(name))?[1].bytes()
        };
        let text = |name| std::str::from_utf8(bytes(name)?).ok();
        let number = |name| text(name)?.parse().ok();
        let id = |name| u128::from_str_radix(text(name)?, 16).ok();
        let snapshot = |name| text(name).and_then(SnapshotName::read);
        let sum = u64::from_le_bytes(bytes("checksum")?.try_into().ok()?);
        Some(Own {
            store: id("store")?,
            epoch: number("epoch")?,
            leader: id("owner")?,
            tip: Position { number: number("number")?, sum },
            moment: number("moment")?,
            beat: number("beat")?,
            noted_run: text("noted_run")?.to_owned(),
            largest_ttl: number("largest_ttl")?,
            snapshot: snapshot("snapshot"),
            before: snapshot("before"),
            writing: text("writing").and_then(Generation::read),
        })
    }
}

/// The reply of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptReply {
    /// Done, now or earlier.
    Done {
        /// Redis's time at this answer, in microseconds; an append without a heartbeat may omit it.
        time: Option<u64>,
    },
    /// The caller leads the store.
    Acquired {
        /// The content of `own` after the acquisition.
        own: Box<Own>,
        /// The run id of this Redis.
        run: String,
        /// Redis's time at this answer, in microseconds.
        time: u64,
    },
    /// Epoch, owner or run id have changed since the caller saw them.
    NotAsSeen,
    /// Another process leads the store at a later epoch, or this number has different content.
    Fenced,
    /// This is not the store that the caller led: it lost data, it is another one, or Redis was restarted.
    Moved,
    /// The journal ends with this number.
    At(u64),
    /// `own` names the snapshot, or pieces of it are missing.
    Refused,
}

impl ScriptReply {
    /// Parses a reply; `None` if no script gives it.
    pub(crate) fn read(value: &RespValue) -> Option<ScriptReply> {
        if let Some([said, run, time, own]) = value.list() {
            let time = time.text()?.parse().ok()?;
            let (own, run) = (Box::new(Own::read(own)?), run.text()?.to_owned());
            return (said.text()? == "acquired").then_some(ScriptReply::Acquired {
                own,
                run,
                time,
            });
        }
        let text = value.text()?;
        match text {
            "not as seen" => Some(ScriptReply::NotAsSeen),
            "deposed" => Some(ScriptReply::Fenced),
            "moved" => Some(ScriptReply::Moved),
            "refused" => Some(ScriptReply::Refused),
            "done" => Some(ScriptReply::Done { time: None }),
            _ => match text.split_once(' ')? {
                ("done", time) => Some(ScriptReply::Done { time: Some(time.parse().ok()?) }),
                ("at", number) => Some(ScriptReply::At(number.parse().ok()?)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_short_and_says_at_its_top_what_it_does() {
        for script in [&ACQUIRE, &APPEND, &PIECE, &TURN, &GIVE, &NAME, &REGISTER, &MARK, &DROP] {
            let text = script.text_for("");
            let lines: Vec<_> = text.lines().collect();
            // The bound of 40 is per file; a leader's script has the fence before it, an append the short path too.
            assert!(lines.len() < 100 && lines[0] == "#!lua flags=allow-oom", "{}", lines[1]);
            assert!(lines[1].starts_with("-- "), "{}", lines[1]);
        }
    }
}
