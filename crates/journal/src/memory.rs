//! A journal in memory, with a simulated connection that a test makes slow, lossy or broken at will.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{
    Append, Appended, Hears, Journal, JournalEntry, Position, ReadError, Snapshot, StoreFacts,
};

/// The largest number of entries in the answer to one read.
const PAGE: usize = 64;

/// The fate of an append on the simulated connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The append and its answer arrive.
    Arrives,
    /// The append arrives, but its answer is lost.
    ReplyLost,
    /// The append is lost on its way.
    Lost,
    /// The append counts as lost, but arrives behind the next one: its bytes lay in a socket.
    Late,
    /// The append arrives, and arrives again behind the next one.
    Twice,
    /// The append does not arrive, and gets this answer.
    Answered(Appended),
}

type Fates = Box<dyn FnMut(&Append) -> Fate + Send>;

/// A snapshot in memory.
#[derive(Clone, Default)]
pub struct MemorySnapshot {
    end: Position,
    parts: VecDeque<JournalEntry>,
    /// Returned instead of the part with this number, counted from 0.
    fault: Option<(usize, ReadError)>,
}

impl MemorySnapshot {
    pub fn with(end: Position, parts: Vec<JournalEntry>) -> MemorySnapshot {
        MemorySnapshot { end, parts: parts.into(), fault: None }
    }

    /// Reads all parts of another snapshot.
    ///
    /// # Errors
    /// A part of it cannot be read.
    pub fn of(snapshot: &mut dyn Snapshot) -> Result<MemorySnapshot, ReadError> {
        let mut parts = VecDeque::new();
        while let Some(part) = snapshot.next_part()? {
            parts.push_back(part);
        }
        Ok(MemorySnapshot { end: snapshot.end(), parts, fault: None })
    }

    pub fn parts(&self) -> &VecDeque<JournalEntry> {
        &self.parts
    }

    /// The same snapshot, but with this error in place of the part with this number, counted from 0.
    pub fn failing(self, part: usize, with: ReadError) -> MemorySnapshot {
        MemorySnapshot { fault: Some((part, with)), ..self }
    }
}

impl Snapshot for MemorySnapshot {
    fn end(&self) -> Position {
        self.end
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        match &mut self.fault {
            Some((0, fault)) => return Err(fault.clone()),
            Some((part, _)) => *part -= 1,
            None => {}
        }
        Ok(self.parts.pop_front())
    }
}

#[derive(Default)]
struct Inside {
    /// The entries behind the snapshot.
    entries: Vec<JournalEntry>,
    snapshot: Option<MemorySnapshot>,
    /// Snapshots that are handed out before the current one: each was replaced meanwhile.
    earlier: VecDeque<MemorySnapshot>,
    fates: Option<Fates>,
    /// If set, the answer to all that arrives.
    ended: Option<Appended>,
    /// Appends that arrive behind the next one.
    late: Vec<Append>,
    /// True while answers are held back.
    holds: bool,
    held: VecDeque<(Hears, Appended)>,
    /// Appends that were begun, including lost ones.
    begun: Vec<Append>,
}

/// One value is one journal, for all engines that use it.
#[derive(Default)]
pub struct MemoryJournal {
    inside: Mutex<Inside>,
    changed: Condvar,
}

impl MemoryJournal {
    /// A journal with these entries and a working connection.
    pub fn with(entries: Vec<JournalEntry>) -> Self {
        let inside = Inside { entries, ..Inside::default() };
        MemoryJournal { inside: Mutex::new(inside), changed: Condvar::new() }
    }

    /// Makes this the snapshot, and drops the entries that it contains.
    pub fn turn(&self, snapshot: MemorySnapshot) {
        let mut inside = self.lock();
        inside.entries.retain(|entry| entry.position().number > snapshot.end.number);
        inside.snapshot = Some(snapshot);
    }

    /// Hands out this snapshot once, before the current one.
    pub fn first(&self, snapshot: MemorySnapshot) {
        self.lock().earlier.push_back(snapshot);
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All entries that were accepted, in order.
    pub fn entries(&self) -> Vec<JournalEntry> {
        self.lock().entries.clone()
    }

    /// All appends that were begun, including repeats.
    pub fn begun(&self) -> Vec<Append> {
        self.lock().begun.clone()
    }

    /// From now on `fates` decides the fate of each append.
    pub fn fates(&self, fates: impl FnMut(&Append) -> Fate + Send + 'static) {
        self.lock().fates = Some(Box::new(fates));
    }

    /// From now on everything that arrives gets this answer, and nothing is written. Answers that are held back do not
    /// change.
    pub fn end(&self, answer: Appended) {
        self.lock().ended = Some(answer);
    }

    /// Holds back answers from now on, while the appends take place.
    pub fn hold(&self) {
        self.lock().holds = true;
    }

    /// Sends the oldest answer that is held back; false if there was none.
    pub fn release_one(&self) -> bool {
        let held = self.lock().held.pop_front();
        held.map(|(hears, appended)| hears.hear(appended)).is_some()
    }

    /// Sends all answers that are held back, and holds back no more.
    pub fn release(&self) {
        let held = {
            let mut inside = self.lock();
            inside.holds = false;
            std::mem::take(&mut inside.held)
        };
        held.into_iter().for_each(|(hears, appended)| hears.hear(appended));
    }

    /// Waits until at least `appends` were begun; false if `patience` ran out first.
    pub fn wait_for_begun(&self, appends: usize, patience: Duration) -> bool {
        let inside = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(inside, patience, |inside| inside.begun.len() < appends);
        waited.unwrap_or_else(PoisonError::into_inner).0.begun.len() >= appends
    }
}

impl Inside {
    fn begin(&self) -> Position {
        self.snapshot.as_ref().map(|snapshot| snapshot.end).unwrap_or_default()
    }

    fn end(&self) -> Position {
        self.entries.last().map(JournalEntry::position).unwrap_or(self.begin())
    }

    /// Accepts an append that arrives, or refuses it.
    fn arrives(&mut self, append: &Append) -> Appended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let end = self.end();
        let wanted = append.end();
        let begin = self.begin();
        let there = match wanted.number.checked_sub(begin.number + 1) {
            Some(before) => self.entries.get(before as usize).map(JournalEntry::position),
            None if wanted.number == begin.number => Some(begin),
            // Its content is no longer known: this append is late.
            None => Some(wanted),
        };
        match (there, append) {
            // A check of the last entry may come from rows that diverged: the end of this journal reveals that.
            (Some(there), Append::Nothing(_)) if there == end && wanted != end => {
                return Appended::At(end.number);
            }
            (Some(there), _) if there == wanted => return Appended::Done,
            (Some(_), _) => return Appended::Fenced,
            (None, _) => {}
        }
        let Append::Entry { entry, .. } = append else { return Appended::At(end.number) };
        match entry.follows(end) {
            Ok(()) => {
                self.entries.push(entry.clone());
                Appended::Done
            }
            Err(_) => Appended::At(end.number),
        }
    }

    fn send(&mut self, append: &Append) -> Appended {
        let fate = match &mut self.fates {
            Some(fates) => fates(append),
            None => Fate::Arrives,
        };
        let late = std::mem::take(&mut self.late);
        let unsure = || Appended::Unsure("the line broke".to_owned());
        let answer = match fate {
            Fate::Arrives => self.arrives(append),
            Fate::ReplyLost => {
                self.arrives(append);
                unsure()
            }
            Fate::Lost => unsure(),
            Fate::Late => {
                self.late.push(append.clone());
                unsure()
            }
            Fate::Twice => {
                self.late.push(append.clone());
                self.arrives(append)
            }
            Fate::Answered(answer) => answer,
        };
        for append in late {
            self.arrives(&append);
        }
        answer
    }
}

impl Journal for MemoryJournal {
    fn append(&self, append: Append, hears: Hears) {
        let mut inside = self.lock();
        let answer = inside.send(&append);
        inside.begun.push(append);
        let answers = if inside.holds {
            inside.held.push_back((hears, answer));
            None
        } else {
            Some((hears, answer))
        };
        drop(inside);
        self.changed.notify_all();
        if let Some((hears, answer)) = answers {
            hears.hear(answer);
        }
    }

    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError> {
        let inside = self.lock();
        let Some(from) = after.checked_sub(inside.begin().number) else {
            return Err(ReadError::InSnapshot { number: after + 1 });
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(inside.entries.iter().skip(from).take(PAGE).cloned().collect())
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError> {
        let mut inside = self.lock();
        let next = inside.earlier.pop_front().or_else(|| inside.snapshot.clone());
        Ok(next.map(|snapshot| Box::new(snapshot) as Box<dyn Snapshot>))
    }

    fn facts(&self) -> StoreFacts {
        let inside = self.lock();
        let bytes = inside.entries.iter().map(|entry| entry.bytes().len() as u64).sum();
        StoreFacts { kind: "memory", bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn entry(before: Position, body: &[u8]) -> JournalEntry {
        JournalEntry::after(before, 1, body)
    }

    fn put(entry: JournalEntry) -> Append {
        Append::Entry { entry, ttl: Duration::ZERO, grants: false }
    }

    fn answer(journal: &MemoryJournal, append: &Append) -> Appended {
        Reply::to(journal, append.clone()).wait(PATIENCE).expect("it answers at once")
    }

    #[test]
    fn a_number_has_one_content_and_repeats_are_answered_alike() {
        let journal = MemoryJournal::default();
        let (start, one) = (Position::default(), entry(Position::default(), b"one"));
        let two = entry(one.position(), b"two");
        let (at_one, other) = (one.position(), entry(start, b"uno"));
        for (what, append, said) in [
            ("a check before the first", Append::Nothing(start), Appended::Done),
            ("one that is too early", put(two.clone()), Appended::At(0)),
            ("the first", put(one.clone()), Appended::Done),
            ("the first again", put(one.clone()), Appended::Done),
            ("another of its number", put(other.clone()), Appended::Fenced),
            ("one that follows on the other", put(entry(other.position(), b"x")), Appended::At(1)),
            ("the check before the first again, late", Append::Nothing(start), Appended::Done),
            ("a check", Append::Nothing(at_one), Appended::Done),
            ("a check that is too early", Append::Nothing(two.position()), Appended::At(1)),
            ("the second", put(two.clone()), Appended::Done),
            ("the check again, late", Append::Nothing(at_one), Appended::Done),
            ("a check of another past", Append::Nothing(other.position()), Appended::Fenced),
            ("the first again, late", put(one.clone()), Appended::Done),
        ] {
            assert_eq!(answer(&journal, &append), said, "{what}");
        }
        assert_eq!(journal.entries(), [one, two]);
        assert_eq!(journal.read(1).unwrap().len(), 1);
    }

    #[test]
    fn the_line_loses_doubles_and_delays_what_it_is_told_to() {
        for (fate, first, there, after_next) in [
            (Fate::ReplyLost, None, 1, 2),
            (Fate::Lost, None, 0, 0),
            // The next one arrives too early, and the first comes behind it.
            (Fate::Late, None, 0, 1),
            (Fate::Twice, Some(Appended::Done), 1, 2),
            (Fate::Answered(Appended::Full), Some(Appended::Full), 0, 0),
        ] {
            let journal = MemoryJournal::default();
            let mut once = Some(fate.clone());
            journal.fates(move |_| once.take().unwrap_or(Fate::Arrives));
            let one = entry(Position::default(), b"one");
            let said = answer(&journal, &put(one.clone()));
            let is_unsure = matches!(said, Appended::Unsure(_));
            assert_eq!((!is_unsure).then_some(said), first, "{fate:?}");
            assert_eq!(journal.entries().len(), there, "{fate:?}");
            answer(&journal, &put(entry(one.position(), b"two")));
            assert_eq!(journal.entries().len(), after_next, "{fate:?}");
        }
    }

    #[test]
    fn an_answer_that_is_held_back_comes_when_it_is_released() {
        let journal = MemoryJournal::default();
        journal.hold();
        let reply = Reply::to(&journal, Append::Nothing(Position::default()));
        assert!(journal.wait_for_begun(1, PATIENCE));
        assert_eq!(reply.wait(Duration::ZERO), None);
        assert!(journal.release_one() && !journal.release_one());
        assert_eq!(reply.wait(PATIENCE), Some(Appended::Done));
    }

    #[test]
    fn a_journal_that_is_gone_leaves_open_whether_it_happened() {
        let (hears, reply) = Reply::new();
        drop(hears);
        assert_eq!(reply.wait(PATIENCE), Some(Appended::Ended));
    }
}
