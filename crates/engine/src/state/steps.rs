//! Follows steps: puts their rows over the disk and into the batch, and sends grants to the waiting
//! calls.
//!
//! It must never answer before the rows of the same step are in the batch.

use tenure_core::names::Namespace;
use tenure_machine::Seq;
use tenure_machine::facts::{Delivery, Grant, Granted};
use tenure_machine::rows::{Kind, RowKey, Rows};

use super::{StateThread, Waiting};
use crate::batch::{Answer, Leased};
use crate::inbox::Ask;
use crate::sqlite::read::ahead::ReadAhead;
use crate::sqlite::write::written;

impl StateThread {
    /// A grant before its payload and data are read, with the lives of its jobs.
    pub(super) fn leased(&self, namespace: &Namespace, granted: Granted, rows: &Rows) -> Leased {
        let lives: Vec<_> = granted
            .grants
            .iter()
            .map(|grant| rows.jobs.get(&grant.seq?).and_then(|change| change.life.clone()))
            .collect();
        // A grant of this step is in its rows; a repeated answer is not.
        let is_fresh = |grant: &&Grant| match grant.seq {
            Some(seq) => rows.jobs.get(&seq).is_some_and(|change| change.life.is_some()),
            None => {
                let key = grant.lease.fence.to_string();
                let key = RowKey { namespace: namespace.clone(), kind: Kind::Lease, key };
                rows.other.get(&key).is_some_and(Option::is_some)
            }
        };
        let fresh = granted.grants.iter().filter(is_fresh).map(|grant| grant.lease.fence);
        let fresh = fresh.collect();
        let with_lives = granted.grants.iter().zip(&lives).filter(|(_, life)| life.is_some());
        let ahead = self.read_ahead(namespace, with_lives.filter_map(|(grant, _)| grant.seq), rows);
        Leased { granted, lives, fresh, ahead }
    }

    /// Begins to read the granted jobs that are not in memory, while their grant is appended. Only
    /// jobs whose rows are complete except their lives; the others are read after the append.
    fn read_ahead(
        &self,
        namespace: &Namespace,
        granted: impl Iterator<Item = Seq>,
        rows: &Rows,
    ) -> Option<ReadAhead> {
        let mut lacks = self.shared.bodies.lacks(granted);
        lacks.retain(|seq| {
            let on_the_way = self.closed.iter().chain([&self.batch]);
            let mut on_the_way = on_the_way.map(|batch| &batch.changes.rows).chain([rows]);
            !on_the_way.any(|rows| written::changes(rows, *seq))
        });
        self.shared.hand_off.keep_written(&mut lacks);
        if lacks.is_empty() { None } else { self.shared.read_ahead(namespace, lacks) }
    }

    /// Takes the machine's effects since the last call; deliveries become answers.
    pub(super) fn drain(&mut self) -> Rows {
        let effects = self.machine.drain();
        self.told.take(&effects.events, &effects.facts);
        self.number_events(effects.events);
        self.end_streams(effects.ended);
        self.wanted.extend(effects.wanted);
        for (namespace, Delivery { taker, granted }) in effects.deliveries {
            let leased = self.leased(&namespace, granted, &effects.rows);
            match self.waiting.remove(&taker) {
                Some(Waiting { reply, .. }) => {
                    self.answer(namespace, Some(reply), Ok(Answer::Leased(leased)));
                }
                // The caller has gone, and this was granted at the same time.
                None if !leased.fresh.is_empty() => {
                    self.shared.tell(&namespace, Ask::Undo(leased.fresh));
                }
                None => {}
            }
        }
        for notified in effects.notified {
            self.notified(notified);
        }
        effects.rows
    }

    /// Seals the contents of rows. The first that are sealed with a key bring its name.
    fn seal(&mut self, rows: &mut Rows) {
        self.shared.seal.rows(rows);
        if !rows.is_empty()
            && let Some(row) = self.seal_row.take()
        {
            rows.other.insert(row, Some(String::new()));
        }
    }

    /// Puts rows over the disk and into the batch.
    pub(super) fn keep(&mut self, mut rows: Rows) -> bool {
        let some = !rows.is_empty();
        self.seal(&mut rows);
        self.overlay.lay(&rows, self.batch.number);
        self.weigh(&rows);
        self.batch.add(rows);
        self.stuck &= !some;
        some
    }

    /// Takes the rows of a step; true if there were any.
    pub(super) fn absorb(&mut self) -> bool {
        let rows = self.drain();
        self.keep(rows)
    }
}
