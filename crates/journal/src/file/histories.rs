//! Random histories of segments on a simulated disk: it crashes at any moment, tears writes at any byte, keeps the
//! writes of one sector and loses those of another, refuses, and fails to sync.
//!
//! After every crash, an opening finds all entries that were durable, in order and with their content, and behind them
//! only entries that were written.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, SegmentFile};
use super::frame::{ALIGNED, Frame, JournalKey};
use super::left::LeftEntries;
use super::segments::{NotWritten, Segments};
use crate::{BadEntry, JournalEntry, Position, ReadError};

/// The disk writes this many bytes whole, or tears them at one place.
const SECTOR: usize = 512;
const SEGMENT_MAX: u64 = 4096;
const KEY: JournalKey = JournalKey(99);
const HISTORIES: u64 = 600;
const STEPS: usize = 120;

/// Random numbers by SplitMix64, so that a seed replays a history.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// A file: its bytes on the disk, and writes since the last sync, which a crash may lose.
#[derive(Clone, Default)]
struct SimFile {
    synced: Vec<u8>,
    written: Vec<(usize, Vec<u8>)>,
}

impl SimFile {
    fn now(&self) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for (at, part) in &self.written {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    /// Keeps each sector of each write, or loses it, or keeps it up to some byte.
    fn lose(&mut self, dice: &mut Dice) {
        for (at, part) in std::mem::take(&mut self.written) {
            let mut from = 0;
            while from < part.len() {
                let to = part.len().min(from + SECTOR - (at + from) % SECTOR);
                let kept = match dice.below(3) {
                    0 => from,
                    1 => to,
                    _ => from + dice.below(to - from),
                };
                self.synced[at + from..at + kept].copy_from_slice(&part[from..kept]);
                from = to;
            }
        }
    }
}

#[derive(Default)]
struct SimState {
    files: BTreeMap<u64, SimFile>,
    /// The next write or sync fails.
    fails: bool,
}

/// The simulated disk. Clones share one disk.
#[derive(Clone, Default)]
struct SimDisk(Arc<Mutex<SimState>>);

impl SimDisk {
    fn lock(&self) -> MutexGuard<'_, SimState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self) -> io::Result<()> {
        if std::mem::take(&mut self.lock().fails) {
            Err(io::Error::other("the disk refuses"))
        } else {
            Ok(())
        }
    }

    fn crash(&self, dice: &mut Dice) {
        self.lock().files.values_mut().for_each(|file| file.lose(dice));
    }
}

struct SimSegment {
    disk: SimDisk,
    file: Mutex<u64>,
}

impl Disk for SimDisk {
    type File = SimSegment;

    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.lock().files.keys().copied().collect())
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        Ok(self.lock().files[&number].now())
    }

    fn create(&self, number: u64, bytes: u64) -> io::Result<SimSegment> {
        let file = SimFile { synced: vec![0; bytes as usize], written: Vec::new() };
        self.lock().files.insert(number, file);
        Ok(SimSegment { disk: self.clone(), file: Mutex::new(number) })
    }

    fn rename(&self, from: u64, to: u64) -> io::Result<SimSegment> {
        let mut state = self.lock();
        let file = state.files.remove(&from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to, file);
        Ok(SimSegment { disk: self.clone(), file: Mutex::new(to) })
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.lock().files.remove(&number);
        Ok(())
    }
}

impl SimSegment {
    fn with<T>(&self, does: impl FnOnce(&mut SimFile) -> T) -> Option<T> {
        let number = *self.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.disk.lock().files.get_mut(&number).map(does)
    }
}

impl SegmentFile for SimSegment {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.fails()?;
        self.with(|file| file.written.push((offset as usize, bytes.to_vec())));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if let Err(why) = self.disk.fails() {
            // The system counts a failed write as written, and never reports it again.
            self.with(|file| {
                let mut dice = Dice(file.written.len() as u64);
                file.lose(&mut dice);
            });
            return Err(why);
        }
        self.with(|file| {
            file.synced = file.now();
            file.written.clear();
        });
        Ok(())
    }
}

/// A store: its journal, its rows, and the entries that were answered to callers.
struct World {
    dice: Dice,
    disk: SimDisk,
    segments: Segments<SimDisk>,
    /// All entries by their numbers, as they were written last.
    entries: BTreeMap<u64, JournalEntry>,
    /// The last entry in the rows, and the last one that is durable there.
    rows: Position,
    rows_durable: Position,
    /// The last entry that was answered.
    answered: u64,
    /// The longest ttl, in microseconds, by the entry with which it became that, since the opening.
    ttls: BTreeMap<u64, u64>,
    openings: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let disk = SimDisk::default();
        let end = Position::default();
        let segments = Segments::begin(&disk, KEY, end, SEGMENT_MAX).unwrap();
        World {
            dice: Dice(seed),
            disk,
            segments,
            entries: BTreeMap::new(),
            rows: end,
            rows_durable: end,
            answered: 0,
            ttls: BTreeMap::new(),
            openings: 0,
        }
    }

    fn position(&self, number: u64) -> Position {
        self.entries.get(&number).map_or(Position::default(), JournalEntry::position)
    }

    fn append(&mut self) {
        let bytes = match self.dice.below(12) {
            0 => 2 * SEGMENT_MAX as usize,
            1..4 => self.dice.below(1500),
            _ => self.dice.below(90),
        };
        // No two openings write the same content under one number.
        let mut body = vec![self.openings as u8; bytes];
        body.extend(self.openings.to_le_bytes());
        let entry = JournalEntry::after(self.segments.end(), 1, &body);
        let mut ttl = self.ttls.values().last().copied().unwrap_or_default();
        if self.dice.one_in(20) {
            ttl += 1;
            self.ttls.insert(entry.position().number, ttl);
        }
        loop {
            match self.segments.append(&entry, ttl) {
                Ok(()) => break,
                Err(NotWritten::NoSegment) => self.make_segment(),
                Err(NotWritten::Disk(_)) => {
                    self.entries.insert(entry.position().number, entry);
                    return self.crash();
                }
            }
        }
        self.entries.insert(entry.position().number, entry);
    }

    fn make_segment(&mut self) {
        let Some(wanted) = self.segments.wanted() else { return };
        let made = match wanted.from {
            Some(from) => self.disk.rename(from, wanted.number),
            None => self.disk.create(wanted.number, wanted.bytes),
        };
        self.segments.give(Some((wanted, made.unwrap())));
    }

    fn sync(&mut self) {
        let (files, number) = self.segments.take_unsynced();
        // Other appends arrive during the sync.
        if self.dice.one_in(3) {
            self.append_if_alive(number);
        }
        match files.iter().try_for_each(|file| file.sync()) {
            Ok(()) => {
                self.segments.synced(number);
                self.answered = self.answered.max(number);
            }
            Err(_) => self.crash(),
        }
    }

    /// An append, unless the disk is about to fail: it must not end the history of this process.
    fn append_if_alive(&mut self, _: u64) {
        if !self.disk.lock().fails {
            let openings = self.openings;
            self.append();
            assert_eq!(openings, self.openings);
        }
    }

    fn step(&mut self) {
        match self.dice.below(40) {
            0 => self.crash(),
            1 => self.disk.lock().fails = true,
            2..5 => self.make_segment(),
            5..13 => self.sync(),
            // The rows do not wait for the sync of their entries.
            13..17 => {
                let left = (self.segments.end().number - self.rows.number) as usize;
                let number = self.rows.number + self.dice.below(left + 1) as u64;
                self.rows = self.position(number);
            }
            17..20 => {
                self.rows_durable = self.rows;
                for number in self.segments.release(self.rows.number) {
                    self.disk.remove(number).unwrap();
                }
            }
            _ => self.append(),
        }
    }

    /// Ends the process. Everything that no sync covered may be lost.
    fn crash(&mut self) {
        self.disk.lock().fails = false;
        self.disk.crash(&mut self.dice);
        let lost = (self.rows.number - self.rows_durable.number) as usize;
        let number = self.rows_durable.number + self.dice.below(lost + 1) as u64;
        self.rows = self.position(number);
        self.open();
    }

    /// Brings the rows up to the journal, which then begins behind them.
    fn open(&mut self) {
        let disk = Arc::new(self.disk.clone());
        let mut left = LeftEntries::open(disk.clone(), KEY, self.rows).unwrap();
        while let Some(entry) = left.next().unwrap() {
            let position = entry.position();
            assert_eq!(position.number, self.rows.number + 1);
            assert_eq!(self.entries.get(&position.number), Some(&entry), "not what was written");
            self.rows = position;
            // A crash may interrupt an opening, too.
            if self.dice.one_in(60) {
                return self.crash();
            }
        }
        assert!(self.rows.number >= self.answered, "answered {}, {:?}", self.answered, self.rows);
        let ttl = self.ttls.range(..=self.answered).next_back().map_or(0, |(_, ttl)| *ttl);
        assert!(left.ttl_us() >= ttl, "{} and not {ttl}", left.ttl_us());
        self.ttls.clear();
        self.entries.split_off(&(self.rows.number + 1));
        self.rows_durable = self.rows;
        self.segments = Segments::begin(&*disk, KEY, self.rows, SEGMENT_MAX).unwrap();
        self.openings += 1;
    }
}

#[test]
fn crashes_lose_nothing_durable_and_invent_nothing() {
    let mut openings = 0;
    for seed in 0..HISTORIES {
        let mut world = World::new(seed);
        // A panic names the seed that replays it.
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| world.step());
            world.crash();
        }));
        if let Err(panic) = played {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
        openings += world.openings;
    }
    assert!(openings > 4 * HISTORIES, "{openings}");
}

/// Damages an entry that was durable before a later one was written.
#[test]
fn damage_is_never_taken_for_the_end() {
    let mut damaged = 0;
    for seed in 0..HISTORIES {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.sync();
        let last_synced = world.segments.durable();
        world.append();
        world.sync();
        let first = world.rows.number + 1;
        if first > last_synced || world.segments.durable() <= last_synced {
            continue;
        }
        let number = first + world.dice.below((last_synced - first + 1) as usize) as u64;
        let sum = world.position(number).sum.to_le_bytes();
        let mut state = world.disk.lock();
        for file in state.files.values_mut() {
            let frames = (0..file.synced.len()).step_by(ALIGNED);
            let at = frames.clone().find(|at| {
                let frame = Frame::read(&file.synced[*at..], KEY);
                frame.is_some_and(|frame| frame.entry.position().sum.to_le_bytes() == sum)
            });
            if let Some(at) = at {
                file.synced[at + 38] ^= 1 << world.dice.below(8);
                damaged += 1;
            }
        }
        drop(state);
        let mut left = LeftEntries::open(Arc::new(world.disk.clone()), KEY, world.rows).unwrap();
        let mut said = Ok(());
        while said.is_ok() {
            match left.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(why) => said = Err(why),
            }
        }
        let missing =
            matches!(said, Err(ReadError::Missing { number: there, .. }) if there == number);
        assert!(missing, "seed {seed}: {said:?}, damaged {number}");
    }
    assert!(damaged > HISTORIES / 4, "{damaged}");
}

#[test]
fn a_journal_of_another_store_is_not_read_into_these_rows() {
    let disk = SimDisk::default();
    let begun = Segments::begin(&disk, KEY, Position::default(), SEGMENT_MAX);
    let mut segments = begun.unwrap();
    for body in [b"one", b"two"] {
        segments.append(&JournalEntry::after(segments.end(), 1, body), 0).unwrap();
    }
    let first = JournalEntry::after(Position::default(), 1, b"one").position();
    let next = |end| LeftEntries::open(Arc::new(disk.clone()), KEY, end).unwrap().next();
    assert_eq!(next(first).unwrap().unwrap().position(), segments.end());
    assert_eq!(next(segments.end()), Ok(None));
    for number in [1, 2] {
        let why = BadEntry::OtherPast { before: number };
        let said = next(Position { number, sum: first.sum ^ 1 });
        assert_eq!(said, Err(ReadError::Damaged { number, why }));
    }
    // Rows whose last entry the journal no longer has are rejected, too.
    let disk = Arc::new(SimDisk::default());
    let mut segments = Segments::begin(&*disk, KEY, first, SEGMENT_MAX).unwrap();
    segments.append(&JournalEntry::after(first, 1, b"two"), 0).unwrap();
    let other = Position { sum: first.sum ^ 1, ..first };
    let said = LeftEntries::open(disk, KEY, other).unwrap().next();
    let why = BadEntry::OtherPast { before: 1 };
    assert_eq!(said, Err(ReadError::Damaged { number: 2, why }));
}
