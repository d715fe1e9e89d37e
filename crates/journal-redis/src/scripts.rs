//! The scripts: their texts, their arguments and their replies. It opens no connection and reads no entry.
//!
//! A repeat of any call is answered as the first time. The names are those of the model of ownership, which
//! decides when they are called.

use tenure_core::secret::Secret;
use tenure_journal::{JournalEntry, Position};

use crate::generation::Generation;
use crate::keys::StoreKeys;
use crate::packed;
use crate::resp::{RespValue, Words};
use crate::server_entry::ServerEntry;

/// The format of keys, fields and entries that this release writes.
pub const FORMAT: u32 = 1;

/// A script: sent whole once on each connection, and named by its digest after that.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
}

/// The first line of each. No script is refused because Redis is full: what is settled must be kept, and snapshots make
/// room.
const FLAGS: &str = "#!lua flags=allow-oom\n";

impl Script {
    /// The whole text; with a run in it, it is another text for each run.
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

/// A call of a script, ready to be sent, and sent again.
pub(crate) struct ScriptCall {
    pub script: &'static Script,
    /// Its keys and arguments, up to the run.
    words: Words,
    /// The run that the caller knows, and the arguments behind it; `None` for a script that asks for none.
    run: Option<(String, Words)>,
    /// Bytes that it adds to the log.
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

    pub(crate) fn by(self, by: &Ownership) -> ScriptCall {
        let call = self.args([hex(by.store), by.epoch.to_string(), hex(by.owner)]);
        ScriptCall { run: Some((by.run.clone(), Words::default())), ..call }
    }

    fn tip(self, tip: Position) -> ScriptCall {
        self.args([tip.number.to_string()]).args([tip.sum.to_le_bytes()])
    }

    /// The run that the caller knows; empty for a script that asks for none.
    pub(crate) fn run(&self) -> &str {
        self.run.as_ref().map_or("", |(run, _)| run)
    }

    /// Writes it behind these words, and with this in the place of the run.
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

/// What an append or a turn notes of the run of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunNote {
    /// What is noted stays.
    Stays,
    /// The run of the caller: nothing is missing under it.
    Whole,
    /// No run: entries may be missing, so whoever takes the store over recovers.
    Lossy,
}

/// As the scripts take it.
fn noted(note: RunNote, by: &Ownership) -> &str {
    match note {
        RunNote::Stays => "",
        RunNote::Whole => &by.run,
        RunNote::Lossy => "-",
    }
}

pub(crate) fn flag(is_set: bool) -> &'static str {
    if is_set { "1" } else { "" }
}

/// The arguments by which the fence knows an owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ownership {
    /// The random id of the store that it owns.
    pub store: u128,
    /// The epoch at which it owns the store.
    pub epoch: u64,
    /// Its own id, new with each process.
    pub owner: u128,
    /// The run of Redis that it knows, as `INFO` says it.
    pub run: String,
}

/// Takes the store, if epoch, owner and run are still those that were seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acquisition {
    /// The id of the store, which is made with this id if there is none.
    pub store: u128,
    /// The id of the process that acquires it.
    pub owner: u128,
    /// Epoch and owner as the caller saw them; `None`: there was no `own`.
    pub seen: Option<(u64, u128)>,
    /// The run of Redis that was seen: a late repeat would otherwise find the same epoch and owner again after a failover,
    /// and depose its own sender.
    pub run: String,
    /// The new epoch is above this one too: the highest that the caller knows of.
    pub above: u64,
    /// If `own` is made: nothing was here before. Otherwise no run is noted, so the owner knows that entries may be lost.
    pub is_new: bool,
    /// The longest time to live that the caller knows of, in microseconds.
    pub ttl: u64,
}

/// Writes the id of a store that lost it; changes nothing if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreNaming {
    /// The id of the store.
    pub store: u128,
    /// The longest time to live that the caller knows of, in microseconds.
    pub ttl: u64,
}

/// Writes an entry, or looks whether the last one is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendCall {
    /// The process that calls, and what it knows of the store.
    pub by: Ownership,
    /// The number and checksum of the entry; of the last one if this append is empty.
    pub tip: Position,
    /// `None`: an empty append.
    pub entry: Option<JournalEntry>,
    /// The owner's moment, in microseconds.
    pub moment: u64,
    /// The longest time to live that the owner has granted, in microseconds.
    pub ttl: u64,
    /// What is noted of the run of `by`.
    pub note: RunNote,
    /// It leaves the store's TIME as the owner's beat, and answers it. Without that it may be done the short way.
    pub beats: bool,
}

/// Writes or unlinks one piece of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceCall {
    /// The process that calls, and what it knows of the store.
    pub by: Ownership,
    /// Of which snapshot.
    pub generation: Generation,
    /// Which piece of it, from 0.
    pub index: u32,
    /// Its content; `None` unlinks it.
    pub body: Option<Vec<u8>>,
}

/// A snapshot, as `own` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotName {
    /// Its name.
    pub generation: Generation,
    /// The last entry that it contains.
    pub tip: Position,
    /// How many pieces it has.
    pub pieces: u32,
    /// What they take together.
    pub bytes: u64,
    /// The checksum of its last part, which is one over all of them.
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

/// Makes a snapshot the one that loads begin with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotTurn {
    /// The process that calls, and what it knows of the store.
    pub by: Ownership,
    /// The snapshot, all of whose pieces are written.
    pub snapshot: SnapshotName,
    /// Heals: the journal ends with this snapshot, whatever the log holds. Otherwise the entries behind it stay.
    pub heals: bool,
    /// The owner's moment, in microseconds.
    pub moment: u64,
    /// The longest time to live that the owner has granted, in microseconds.
    pub ttl: u64,
    /// What is noted of the run of `by`.
    pub note: RunNote,
}

/// Names another server as the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// The process that calls, and what it knows of the store.
    pub by: Ownership,
    /// The last entry.
    pub tip: Position,
    /// Which server is to take the store up.
    pub to: u128,
}

impl Acquisition {
    pub(crate) fn call(&self, keys: &StoreKeys) -> ScriptCall {
        let (epoch, owner) =
            self.seen.map(|(epoch, owner)| (epoch.to_string(), hex(owner))).unwrap_or_default();
        ScriptCall::new(&ACQUIRE, &[keys.own(), keys.store()])
            .args([hex(self.store), hex(self.owner), epoch, owner, self.above.to_string()])
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

/// See [`RedisStore::register`](crate::RedisStore::register).
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
    /// Those that are there stay.
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

/// The owner of a store, and the last entry of its journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Own {
    /// The store that this belongs to.
    pub store: u128,
    /// Rises with each acquisition.
    pub epoch: u64,
    /// The process that owns the store, or that is to take it up.
    pub owner: u128,
    /// The last entry.
    pub tip: Position,
    /// The owner's moment at its last append, in microseconds. Never falls.
    pub moment: u64,
    /// The store's TIME at the last append that beat, in microseconds.
    pub beat: u64,
    /// The run under which nothing is known to be lost; empty if none is.
    pub noted_run: String,
    /// The longest time to live of any lease that was granted, in microseconds. Never falls.
    pub largest_ttl: u64,
    /// The snapshot that a load begins with.
    pub snapshot: Option<SnapshotName>,
    /// The snapshot before it, whose pieces are kept until the next turn, or for a minute.
    pub before: Option<SnapshotName>,
    /// The one whose pieces are being written, or that was given up among them.
    pub writing: Option<Generation>,
}

impl Own {
    /// Of the names and values of the hash; `None` if these are not those of an owner.
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
            owner: id("owner")?,
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
    /// It is done, now or before.
    Done {
        /// The store's TIME at this answer, in microseconds; an append that does not beat may say none.
        time: Option<u64>,
    },
    /// The caller owns the store.
    Acquired {
        /// As it stands after the acquisition.
        own: Box<Own>,
        /// The run of this Redis.
        run: String,
        /// The store's TIME at this answer, in microseconds.
        time: u64,
    },
    /// Epoch, owner or run are not those that were seen.
    NotAsSeen,
    /// Another process owns the store at a later epoch, or this number has another content.
    Deposed,
    /// This is not the store that the caller owned: it forgot, it is another one, or this is another run.
    Moved,
    /// The journal ends with this number.
    At(u64),
    /// The snapshot is named by `own`, or pieces of it are not there.
    Refused,
}

impl ScriptReply {
    /// Of a reply; `None` if it is none of a script.
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
            "deposed" => Some(ScriptReply::Deposed),
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
            // The bound of 40 is for each file; a script of an owner has the fence before it, and an append the short way too.
            assert!(lines.len() < 100 && lines[0] == "#!lua flags=allow-oom", "{}", lines[1]);
            assert!(lines[1].starts_with("-- "), "{}", lines[1]);
        }
    }
}
