//! Unanswered appends of one engine, by their tickets.

use std::collections::VecDeque;

use tenure_journal::{Appended, Hears, JournalEntry};

struct WaitingAppend {
    ticket: u64,
    /// Its bytes, as long as a retry may need them.
    entry: Option<JournalEntry>,
    hears: Hears,
}

/// The waiting appends, in order. Tickets begin at 1 with each engine.
#[derive(Default)]
pub(crate) struct Appends {
    waiting: VecDeque<WaitingAppend>,
    last: u64,
}

impl Appends {
    /// Adds an append; returns its ticket.
    pub fn add(&mut self, entry: Option<JournalEntry>, hears: Hears) -> u64 {
        self.last += 1;
        self.waiting.push_back(WaitingAppend { ticket: self.last, entry, hears });
        self.last
    }

    /// The entry of this number.
    pub fn entry(&self, number: u64) -> Option<JournalEntry> {
        let mut entries = self.waiting.iter().filter_map(|append| append.entry.as_ref());
        entries.find(|entry| entry.position().number == number).cloned()
    }

    /// Takes the callbacks of all tickets up to this one.
    pub fn release(&mut self, up_to: u64) -> Vec<Hears> {
        let until = self.waiting.partition_point(|append| append.ticket <= up_to);
        self.waiting.drain(..until).map(|append| append.hears).collect()
    }

    /// Takes the callbacks of all tickets.
    pub fn take_all(&mut self) -> Vec<Hears> {
        std::mem::take(self).waiting.into_iter().map(|append| append.hears).collect()
    }
}

/// Completes all of them with the same reply. Must be called without a lock: a callback may append at once.
pub(crate) fn tell(all: Vec<Hears>, appended: &Appended) {
    all.into_iter().for_each(|hears| hears.hear(appended.clone()));
}

#[cfg(test)]
mod tests {
    use tenure_journal::{Position, Reply};

    use super::*;

    #[test]
    fn appends_keep_their_bytes_until_released_in_ticket_order() {
        let mut appends = Appends::default();
        let entry = JournalEntry::after(Position { number: 6, sum: 1 }, 1, b"x");
        let mut replies = Vec::new();
        for entry in [None, Some(entry.clone()), None] {
            let (hears, reply) = Reply::new();
            appends.add(entry, hears);
            replies.push(reply);
        }
        assert_eq!((appends.entry(7), appends.entry(8)), (Some(entry), None));
        tell(appends.release(2), &Appended::Done);
        let said = |reply: &Reply| reply.wait(std::time::Duration::ZERO);
        assert_eq!(
            replies.iter().map(said).collect::<Vec<_>>(),
            [Some(Appended::Done), Some(Appended::Done), None]
        );
        assert_eq!(appends.entry(7), None);
        tell(appends.take_all(), &Appended::Fenced);
        assert_eq!(said(&replies[2]), Some(Appended::Fenced));
    }
}
