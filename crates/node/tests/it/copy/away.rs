//! A store that is away now and then: a step is not done, or done and not answered.

use std::cell::Cell;

use tenure_core::time::Moment;
use tenure_engine::copy::{CopyError, CopyWatch, Filled, Found, Frozen, Mark, Source, Target};
use tenure_engine_api::Fault;

/// Before the first step that fails, and between two: more than a try has steps.
const BETWEEN: u64 = 7;

/// See the module.
pub struct Away<'a, S: ?Sized> {
    store: &'a S,
    steps: Cell<u64>,
    first: u64,
}

impl<'a, S: ?Sized> Away<'a, S> {
    /// The step with this number, from 1 on, is the first that fails.
    pub fn from(store: &'a S, first: u64) -> Self {
        Away { store, steps: Cell::new(0), first }
    }

    fn step<T>(&self, step: impl FnOnce(&S) -> Result<T, CopyError>) -> Result<T, CopyError> {
        self.steps.set(self.steps.get() + 1);
        match self.steps.get().checked_sub(self.first) {
            Some(after) if after % (2 * BETWEEN) == 0 => {
                Err(CopyError::Fault(Fault::Unavailable("away".to_owned())))
            }
            Some(after) if after % BETWEEN == 0 => {
                step(self.store)?;
                Err(CopyError::Fault(Fault::Unknown("away".to_owned())))
            }
            _ => step(self.store),
        }
    }
}

impl<S: Source + ?Sized> Source for Away<'_, S> {
    fn marked(&self) -> Result<Option<Mark>, CopyError> {
        self.step(|store| store.marked())
    }
    fn freeze(&self, mark: &Mark) -> Result<(), CopyError> {
        self.step(|store| store.freeze(mark))
    }
    fn thaw(&self) -> Result<(), CopyError> {
        self.step(|store| store.thaw())
    }
    fn now(&self) -> Moment {
        self.store.now()
    }
    fn rows(&self) -> Result<Frozen, CopyError> {
        self.step(|store| store.rows())
    }
}

impl<S: Target + ?Sized> Target for Away<'_, S> {
    fn found(&self) -> Result<Found, CopyError> {
        self.step(|store| store.found())
    }
    fn claim(&self, copy: &str) -> Result<bool, CopyError> {
        self.step(|store| store.claim(copy))
    }
    fn fill(
        &self,
        copy: &str,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError> {
        self.step(|store| store.fill(copy, from, watch))
    }
    fn open(&self, copy: &str) -> Result<(), CopyError> {
        self.step(|store| store.open(copy))
    }
    fn give_up(&self) -> Result<(), CopyError> {
        self.step(|store| store.give_up())
    }
}
