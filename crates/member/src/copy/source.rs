//! A store in Redis that is copied: frozen by its mark, then read whole into rows of this process.

use std::sync::Arc;

use tenure_core::copy::{CopiedPage, Cursor, Head};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_core::time::{Moment, Span};
use tenure_engine::{CopyFolder, Location, Options, Replica};
use tenure_journal_redis::RedisJournal;
use tenure_seam::SystemClock;
use tenure_seam::copy::{CopyError, Mark, Source, Step};

use super::{CopyRedis, StoreMark, place, unusable};
use crate::clock::StoreClock;

/// All that a frozen store holds.
pub(super) struct FrozenRows {
    rows: CopyFolder,
    /// Until then somebody may hold what the store has forgotten; by Redis's clock.
    recovers_until: Option<Moment>,
}

impl CopyRedis {
    /// The mark of a source, and when it was frozen.
    fn source_mark(&self, text: &str) -> Result<Option<(Mark, Moment)>, CopyError> {
        match self.read(text)? {
            None | Some(StoreMark::Copied { .. }) => Ok(None),
            Some(StoreMark::Source { copy, to, whole, frozen_at }) => {
                Ok(Some((Mark { copy, to, whole }, Moment::from_us(frozen_at))))
            }
            Some(StoreMark::Target { .. }) => {
                let (place, address) = (place(&self.address), format!("'{}'", self.address));
                let (place, address) = (place.into(), address.into());
                Err(Refusal::from(CopyRefusal::Unfinished { place, address }).into())
            }
        }
    }

    /// The same, unless it is another copy's.
    fn mark_of(&self, mark: &Mark, text: &str) -> Result<Option<(Mark, Moment)>, CopyError> {
        let there = self.source_mark(text)?;
        if there.as_ref().is_some_and(|(there, _)| there.copy != mark.copy) {
            return Err(CopyError::no(
                format!("{} is frozen for another copy", place(&self.address)),
                format!("thaw it first: tenure copy --thaw --from '{}'", self.address),
            ));
        }
        Ok(there)
    }

    fn freeze_now(&self, mark: &Mark) -> Result<(), CopyError> {
        let there = self.mark_of(mark, &self.look()?.0)?;
        if self.frozen.get().is_some() {
            match there {
                Some((there, _)) if there == *mark => return Ok(()),
                Some(_) => {}
                // What was read is not what is served by now.
                None => return Err(self.not_frozen()),
            }
        }
        let (journal, seen) = self.acquire()?;
        // Whoever owned it before answers nothing from the acquisition on.
        let frozen_at = self.mark_of(mark, &seen)?.map(|(_, frozen_at)| frozen_at);
        let frozen_at = frozen_at.unwrap_or(Moment::from_us(journal.acquired().beat));
        let says = StoreMark::source(mark, frozen_at);
        self.write_mark(&journal, seen, Some(&says), false)?;
        if self.frozen.get().is_none() {
            let rows = self.load(&journal, mark, frozen_at)?;
            let _ = self.frozen.set(rows);
        }
        Ok(())
    }

    /// Reads all that the journal has. It ends where it did when this process took it: nobody appends since.
    fn load(
        &self,
        journal: &RedisJournal,
        mark: &Mark,
        frozen_at: Moment,
    ) -> Result<FrozenRows, CopyError> {
        let own = journal.acquired();
        let clock = StoreClock::new(Arc::new(SystemClock));
        clock.is(Moment::from_us(own.beat), clock.at());
        // Events stay behind.
        let options = Options { events_bytes: 0, ..Options::new(Location::Memory) };
        let mut rows = Replica::open(&options).map_err(|why| unusable(&why))?;
        rows.catch_up(journal).map_err(|why| unusable(&why))?;
        if rows.position() != own.tip {
            return Err(CopyError::Disk(format!(
                "{} is damaged: its journal ends at entry {}, and holds entries up to {}",
                place(&self.address),
                own.tip.number,
                rows.position().number
            )));
        }
        let may_have_lost = own.noted_run != journal.ownership().run;
        let recovers_until = may_have_lost.then(|| frozen_at.plus(Span::from_us(own.largest_ttl)));
        let rows = CopyFolder::frozen(rows, Arc::new(clock), mark, frozen_at);
        Ok(FrozenRows { rows: rows.map_err(|why| unusable(&why))?, recovers_until })
    }

    fn thaw_now(&self) -> Result<(), CopyError> {
        if self.source_mark(&self.look()?.0)?.is_none() {
            return Ok(());
        }
        let (journal, seen) = self.acquire()?;
        match self.source_mark(&seen)? {
            Some(_) => self.write_mark(&journal, seen, None, false),
            None => Ok(()),
        }
    }

    fn not_frozen(&self) -> CopyError {
        Refusal::from(CopyRefusal::NotFrozen { place: place(&self.address).into() }).into()
    }

    fn frozen_rows(&self) -> Result<&FrozenRows, CopyError> {
        self.frozen.get().ok_or_else(|| self.not_frozen())
    }
}

impl Source for CopyRedis {
    fn marked(&self) -> Step<'_, Option<Mark>> {
        Box::pin(async { Ok(self.source_mark(&self.look()?.0)?.map(|(mark, _)| mark)) })
    }

    fn freeze<'a>(&'a self, mark: &'a Mark) -> Step<'a, ()> {
        Box::pin(async { self.freeze_now(mark) })
    }

    fn thaw(&self) -> Step<'_, ()> {
        Box::pin(async { self.thaw_now() })
    }

    fn namespaces(&self) -> Step<'_, Vec<Namespace>> {
        Box::pin(async { self.frozen_rows()?.rows.namespaces().await })
    }

    fn head<'a>(&'a self, namespace: &'a Namespace) -> Step<'a, Head> {
        Box::pin(async {
            let FrozenRows { rows, recovers_until } = self.frozen_rows()?;
            let head = rows.head(namespace).await?;
            Ok(Head { recovers_until: head.recovers_until.max(*recovers_until), ..head })
        })
    }

    fn page<'a>(&'a self, namespace: &'a Namespace, cursor: &'a Cursor) -> Step<'a, CopiedPage> {
        Box::pin(async { self.frozen_rows()?.rows.page(namespace, cursor).await })
    }
}
