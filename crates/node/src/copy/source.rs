//! A store in Redis that is copied: frozen by its mark, then read whole into rows of this process.

use std::sync::Arc;

use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_core::time::{Moment, Span};
use tenure_engine::copy::{CopyError, Frozen, Mark, Source};
use tenure_engine::{Location, Options, Replica};
use tenure_engine_api::{Clock, SystemClock};
use tenure_redis::RedisJournal;

use super::{CopyRedis, StoreMark, place, unusable};
use crate::clock::StoreClock;

/// All that a frozen store holds.
pub(super) struct FrozenRows {
    rows: Replica,
    clock: StoreClock,
    frozen_at: Moment,
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
            let rows = self.load(&journal, frozen_at)?;
            let _ = self.frozen.set(rows);
        }
        Ok(())
    }

    /// Reads all that the journal has. It ends where it did when this process took it: nobody appends since.
    fn load(&self, journal: &RedisJournal, frozen_at: Moment) -> Result<FrozenRows, CopyError> {
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
        let may_have_lost = own.noted_run != journal.term().run;
        let recovers_until = may_have_lost.then(|| frozen_at.plus(Span::from_us(own.largest_ttl)));
        Ok(FrozenRows { rows, clock, frozen_at, recovers_until })
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
    fn marked(&self) -> Result<Option<Mark>, CopyError> {
        Ok(self.source_mark(&self.look()?.0)?.map(|(mark, _)| mark))
    }

    fn freeze(&self, mark: &Mark) -> Result<(), CopyError> {
        self.freeze_now(mark)
    }

    fn thaw(&self) -> Result<(), CopyError> {
        self.thaw_now()
    }

    fn now(&self) -> Moment {
        self.frozen.get().map_or_else(|| SystemClock.now(), |frozen| frozen.clock.now())
    }

    fn rows(&self) -> Result<Frozen, CopyError> {
        let FrozenRows { rows, frozen_at, recovers_until, .. } = self.frozen_rows()?;
        let rows = rows.snapshot().map_err(|why| unusable(&why))?;
        Frozen::new(rows, *frozen_at, *recovers_until)
    }
}
