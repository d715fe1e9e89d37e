//! One store in one Redis: its scripts as functions, and reads of its entries. It keeps nothing and decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use tenure_core::redis_address::Address;
use tenure_journal::{BadEntry, JournalEntry, ReadError, packed};
use tenure_tls::TlsError;

use crate::confirmation::{Confirmation, ReplicaShortage};
use crate::dial::Dialer;
use crate::generation::Generation;
use crate::keys::StoreKeys;
use crate::line::{Hears, RedisCommand, RedisLine};
use crate::resp::{RespValue, Words};
use crate::scripts::{
    Acquisition, AppendCall, FORMAT, HandOver, Own, PieceCall, ScriptCall, ScriptReply,
    SnapshotName, SnapshotTurn, StoreNaming,
};
use crate::sizes::Sizes;
use crate::unfit::UnfitServer;

/// Entries in the first page of a read; its bytes determine the size of later pages.
const PAGE_MIN: usize = 16;
const PAGE_MAX: usize = 4096;
/// A page below this many bytes is followed by one of twice as many entries, a page above four times this by a minimal
/// one.
const PAGE_BYTES: usize = 1 << 20;

/// Reasons why a store cannot be reached or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No thread can be started.
    #[error(
        "could not start a thread for the journal: {0}; close other programs, or raise the limit of threads"
    )]
    Thread(#[from] std::io::Error),
    /// Redis cannot be reached, or refuses.
    #[error("could not reach the store in Redis: {0}")]
    Away(String),
    /// The answer of Redis makes no sense to this release.
    #[error("{{NAME}}:{key} in Redis is not what this release of Tenure writes")]
    Strange {
        /// The key, without the name of the store.
        key: &'static str,
    },
    /// Another release wrote the store.
    #[error(
        "the store in Redis has format {format}, and this release of Tenure knows {known}; use the release that wrote it"
    )]
    Format {
        /// The format of the store.
        format: u32,
        /// The format that this release reads and writes.
        known: u32,
    },
    /// This Redis is not fit for a store.
    #[error(transparent)]
    Unfit(#[from] UnfitServer),
}

/// A store, as two of its keys show it, and the run id of the Redis that answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenStore {
    /// The id of the store; `None` if there is no store.
    pub store: Option<u128>,
    /// The leader and the last entry; `None` if the key is missing.
    pub own: Option<Own>,
    /// The mark of a copy; empty if the store has no mark.
    pub copy: String,
    /// The run id of this Redis, read before the keys: an acquisition with it is refused if the keys come from another
    /// run.
    pub run: String,
    /// Redis's time, in microseconds.
    pub time: u64,
}

/// The leader of a store, by fields that every format shares with the first: clients read them too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedOwner {
    pub store: u128,
    /// The id of the leader's process.
    pub leader: u128,
    /// The epoch at which it acquired the store.
    pub epoch: u64,
}

/// A script call of the process that leads the store, or wants to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreCall {
    /// Acquires the store, with a new epoch.
    Acquire(Acquisition),
    /// Appends an entry, or only a heartbeat.
    Append(AppendCall),
    /// Installs a snapshot, and drops the entries in it.
    Turn(SnapshotTurn),
    /// Hands the leadership to another server.
    Give(HandOver),
}

/// One store in one Redis. Clones share one pipeline.
#[derive(Clone)]
pub struct RedisStore {
    line: Arc<RedisLine>,
    keys: StoreKeys,
    page: Arc<AtomicUsize>,
    /// The number of replicas that must confirm; 0: the primary alone counts.
    replicas: Arc<AtomicU32>,
    counted: Arc<Sizes>,
}

impl RedisStore {
    /// Starts the pipeline to the store with this name; the first call shows if Redis can be reached.
    ///
    /// # Errors
    /// The certificates of the address cannot be used, or no thread can be started.
    pub fn open(address: Address, name: &str) -> Result<RedisStore, StoreError> {
        let line = Arc::new(RedisLine::start(Dialer::new(address)?)?);
        let page = Arc::new(AtomicUsize::new(PAGE_MIN));
        let (keys, counted) = (StoreKeys::of(name), Arc::default());
        Ok(RedisStore { line, keys, page, replicas: Arc::default(), counted })
    }

    /// The same store, but a leader's write counts as done only once this many replicas have it. If these are all
    /// replicas that may become the primary, no answered write is lost. Starts as 0.
    pub fn with_replicas(self, replicas: u32) -> RedisStore {
        self.confirm_by(replicas);
        self
    }

    /// From now on this many replicas must have a leader's write, for all clones.
    pub fn confirm_by(&self, replicas: u32) {
        self.replicas.store(replicas, Ordering::Relaxed);
    }

    /// The reason why Redis cannot be reached; `None`: no trouble is known. Sends no request.
    pub fn trouble(&self) -> Option<StoreError> {
        self.line.trouble().map(StoreError::Away)
    }

    /// The replicas that lack the last write, while too few have it and Redis can be reached; `None`: no shortage is
    /// known. Sends no request.
    pub fn shortage(&self) -> Option<ReplicaShortage> {
        let (have, wanted) = (self.line.too_few_replicas()?, self.replicas.load(Ordering::Relaxed));
        (have < wanted).then_some(ReplicaShortage { have, wanted })
    }

    pub(crate) fn counted(&self) -> &Sizes {
        &self.counted
    }

    pub fn keys(&self) -> &StoreKeys {
        &self.keys
    }

    fn begin(&self, command: RedisCommand) -> Receiver<Result<RespValue, String>> {
        let (heard, hears) = sync_channel(1);
        self.line.begin(command, Box::new(move |reply| drop(heard.send(reply))));
        hears
    }

    pub(crate) fn ask(&self, command: RedisCommand) -> Result<RespValue, StoreError> {
        came(&self.begin(command))
    }

    pub(crate) fn run(&self, command: RedisCommand) -> Result<ScriptReply, StoreError> {
        let value = self.ask(command)?;
        ScriptReply::read(&value).ok_or(StoreError::Strange { key: "own" })
    }

    /// A leader's write, with the confirmation that is required at present.
    pub(crate) fn confirmed(&self, call: ScriptCall) -> RedisCommand {
        match self.replicas.load(Ordering::Relaxed) {
            0 => RedisCommand::Script(call),
            replicas => RedisCommand::Confirmed(call, Confirmation { replicas }),
        }
    }

    /// Reads both keys, and the run id before them.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program or release wrote the keys.
    pub fn look(&self) -> Result<SeenStore, StoreError> {
        let begin = |words: &[&str]| self.begin(RedisCommand::Plain(Words::of(words)));
        let info = begin(&["INFO", "server"]);
        let store = begin(&["HMGET", &self.keys.store(), "id", "format", "copy"]);
        let own = begin(&["HGETALL", &self.keys.own()]);
        let time = begin(&["TIME"]);
        let (info, store, own, time) = (came(&info)?, came(&store)?, came(&own)?, came(&time)?);
        let (store, copy) = match store.list() {
            Some([RespValue::Nil, ..]) => (None, String::new()),
            Some([id, format, copy]) => {
                // The format comes first: a newer release may have changed the rest.
                readable(format)?;
                let id = id.text().and_then(|id| u128::from_str_radix(id, 16).ok());
                let id = id.ok_or(StoreError::Strange { key: "store" })?;
                (Some(id), copy.text().unwrap_or_default().to_owned())
            }
            _ => return Err(StoreError::Strange { key: "store" }),
        };
        let own = match own.list() {
            Some([]) => None,
            _ => Some(Own::read(&own).ok_or(StoreError::Strange { key: "own" })?),
        };
        let run = info.text().and_then(|info| {
            info.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::to_owned)
        });
        let run = run.ok_or_else(|| StoreError::Away("it names no run_id".to_owned()))?;
        let number = |part: &RespValue| part.text().and_then(|text| text.parse::<u64>().ok());
        let time = match time.list() {
            Some([s, us]) => number(s).zip(number(us)).map(|(s, us)| s * 1_000_000 + us),
            _ => None,
        };
        let time = time.ok_or_else(|| StoreError::Away("it tells no time".to_owned()))?;
        Ok(SeenStore { store, own, copy, run, time })
    }

    /// The leader that `own` names, in any format of the store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub fn named_owner(&self) -> Result<Option<NamedOwner>, StoreError> {
        let words = Words::of(&["HMGET", &self.keys.own(), "store", "owner", "epoch"]);
        let said = self.ask(RedisCommand::Plain(words))?;
        let Some([store, leader, epoch]) = said.list() else { return Ok(None) };
        let id = |value: &RespValue| u128::from_str_radix(value.text()?, 16).ok();
        let epoch = epoch.text().and_then(|epoch| epoch.parse().ok());
        let named = id(store).zip(id(leader)).zip(epoch);
        Ok(named.map(|((store, leader), epoch)| NamedOwner { store, leader, epoch }))
    }

    /// Writes the id of a store that lost it.
    ///
    /// # Errors
    /// Redis cannot be reached; the write may have happened.
    pub fn name_store(&self, naming: &StoreNaming) -> Result<ScriptReply, StoreError> {
        self.run(RedisCommand::Script(naming.call(&self.keys)))
    }

    /// Acquires the store, if it is as the caller saw it.
    ///
    /// # Errors
    /// Redis cannot be reached; the acquisition may have happened.
    pub fn acquire(&self, acquisition: &Acquisition) -> Result<ScriptReply, StoreError> {
        self.run(RedisCommand::Script(acquisition.call(&self.keys)))
    }

    /// Begins a call. `hears` runs in the thread of the pipeline and must not block; it is dropped if the pipeline
    /// ends. After an error, the call may have happened.
    pub fn begin_call(
        &self,
        call: &StoreCall,
        hears: impl FnOnce(Result<ScriptReply, StoreError>) + Send + 'static,
    ) {
        let command = match call {
            StoreCall::Acquire(call) => RedisCommand::Script(call.call(&self.keys)),
            StoreCall::Append(call) => self.confirmed(self.append_call(call)),
            StoreCall::Turn(call) => self.confirmed(call.call(&self.keys)),
            StoreCall::Give(call) => self.confirmed(call.call(&self.keys)),
        };
        let heard = move |said: Result<RespValue, String>| {
            hears(said.map_err(StoreError::Away).and_then(|value| {
                ScriptReply::read(&value).ok_or(StoreError::Strange { key: "own" })
            }));
        };
        self.line.begin(command, Box::new(heard));
    }

    /// Begins an append. `hears` runs in the thread of the pipeline and must not block.
    pub(crate) fn begin_append(&self, append: &AppendCall, hears: Hears) {
        self.line.begin(self.confirmed(self.append_call(append)), hears);
    }

    fn append_call(&self, append: &AppendCall) -> ScriptCall {
        let call = append.call(&self.keys);
        // A repeat counts twice: then the next snapshot comes a little too early.
        self.counted.appended(call.body);
        call
    }

    /// Appends, and waits for the answer.
    ///
    /// # Errors
    /// Redis cannot be reached; the append may have happened.
    pub fn append(&self, append: &AppendCall) -> Result<ScriptReply, StoreError> {
        self.run(self.confirmed(self.append_call(append)))
    }

    /// Writes or unlinks a piece of a snapshot.
    ///
    /// # Errors
    /// Redis cannot be reached; the change may have happened.
    pub fn piece(&self, piece: &PieceCall) -> Result<ScriptReply, StoreError> {
        self.run(RedisCommand::Script(piece.call(&self.keys)))
    }

    /// Installs a snapshot, and drops the entries in it.
    ///
    /// # Errors
    /// Redis cannot be reached; the change may have happened.
    pub fn turn(&self, turn: &SnapshotTurn) -> Result<ScriptReply, StoreError> {
        self.run(self.confirmed(turn.call(&self.keys)))
    }

    /// Hands the leadership to another server.
    ///
    /// # Errors
    /// Redis cannot be reached; the handover may have happened.
    pub fn give(&self, give: &HandOver) -> Result<ScriptReply, StoreError> {
        self.run(self.confirmed(give.call(&self.keys)))
    }

    /// Begins to read a piece of a snapshot.
    pub(crate) fn begin_piece(
        &self,
        generation: Generation,
        index: u32,
    ) -> Receiver<Result<RespValue, String>> {
        let key = self.keys.piece(generation, index);
        self.begin(RedisCommand::Plain(Words::of(&["GET", &key])))
    }

    /// True if a piece of a snapshot exists.
    pub(crate) fn has_piece(&self, generation: Generation, index: u32) -> Result<bool, StoreError> {
        let key = self.keys.piece(generation, index);
        let there = self.ask(RedisCommand::Plain(Words::of(&["EXISTS", &key])))?;
        Ok(there == RespValue::Int(1))
    }

    /// The last entry in the current snapshot, according to `own`.
    fn in_snapshot(&self) -> Result<u64, StoreError> {
        let words = Words::of(&["HGET", &self.keys.own(), "snapshot"]);
        let named = self.ask(RedisCommand::Plain(words))?;
        let named = named.text().and_then(SnapshotName::read);
        Ok(named.map_or(0, |named| named.tip.number))
    }

    /// The entries after the number `after`, in order and without a gap; empty at the end.
    ///
    /// # Errors
    /// Redis cannot be reached, or an entry is damaged, missing though the journal had it, or only in the snapshot.
    pub fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError> {
        let away = |why: StoreError| ReadError::Away(why.to_string());
        let log = self.keys.log();
        let from = format!("{}-0", after + 1);
        let count = self.page.load(Ordering::Relaxed);
        // Requested first: the entries up to this number are there when the stream is read.
        let last = Words::of(&["HGET", &self.keys.own(), "number"]);
        let last = self.begin(RedisCommand::Plain(last));
        let page = Words::of(&["XRANGE", &log, &from, "+", "COUNT", &count.to_string()]);
        let page = self.begin(RedisCommand::Plain(page));
        let (last, page) = (came(&last).map_err(away)?, came(&page).map_err(away)?);
        let last: u64 = last.text().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut entries: Vec<JournalEntry> = Vec::new();
        for found in page.list().unwrap_or_default() {
            let number = after + 1 + entries.len() as u64;
            let damaged = |why| ReadError::Damaged { number, why };
            let entry = stored(found).map_err(damaged)?;
            let has = entry.position().number;
            match entries.last() {
                Some(before) => entry.follows(before.position()).map_err(damaged)?,
                None if has != number => {
                    // Read only now: an installed snapshot may have dropped the entry a moment ago.
                    return Err(if self.in_snapshot().map_err(away)? >= number {
                        ReadError::InSnapshot { number }
                    } else {
                        damaged(BadEntry::OutOfTurn { number: has, wanted: number })
                    });
                }
                None => {}
            }
            entries.push(entry);
        }
        if entries.is_empty() && last > after {
            let number = after + 1;
            return Err(if self.in_snapshot().map_err(away)? >= number {
                ReadError::InSnapshot { number }
            } else {
                ReadError::Missing { number, last }
            });
        }
        let bytes: usize = entries.iter().map(|entry| entry.bytes().len()).sum();
        let next = match bytes {
            _ if bytes < PAGE_BYTES => (count * 2).min(PAGE_MAX),
            _ if bytes > 4 * PAGE_BYTES => PAGE_MIN,
            _ => count,
        };
        self.page.store(next, Ordering::Relaxed);
        Ok(entries)
    }
}

/// Checks that this release can read a store of this format.
fn readable(format: &RespValue) -> Result<(), StoreError> {
    let strange = StoreError::Strange { key: "store" };
    match format.text().and_then(|text| text.parse::<u32>().ok()) {
        Some(FORMAT) => Ok(()),
        Some(format) => Err(StoreError::Format { format, known: FORMAT }),
        None => Err(strange),
    }
}

pub(crate) fn came(reply: &Receiver<Result<RespValue, String>>) -> Result<RespValue, StoreError> {
    let reply = reply.recv().unwrap_or_else(|_| Err("the line to Redis has ended".to_owned()));
    reply.map_err(StoreError::Away)
}

/// Parses an entry of the stream: its id, and one field with its value.
fn stored(found: &RespValue) -> Result<JournalEntry, BadEntry> {
    let short = BadEntry::Short { bytes: 0 };
    let fields = match found.list() {
        Some([_, fields]) => fields.list(),
        _ => None,
    };
    let Some([field, packed]) = fields else { return Err(short) };
    let (Some(field), Some(packed)) = (field.bytes(), packed.bytes()) else { return Err(short) };
    JournalEntry::read(packed::unpack(field, packed).ok_or(BadEntry::Damaged)?)
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("keys", &self.keys).finish_non_exhaustive()
    }
}
