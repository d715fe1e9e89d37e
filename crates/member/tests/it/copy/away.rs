//! A store that is away now and then: a step is not done, or done and not answered.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::copy::{CopiedPage, Cursor, Head, Item};
use tenure_core::names::Namespace;
use tenure_seam::Fault;
use tenure_seam::copy::{Begun, CopyError, Found, Mark, Source, Step, Target};

/// Before the first step that fails, and between two: more than a try has steps that bring no page.
const BETWEEN: u64 = 19;

/// See the module.
pub struct Away<'a, S: ?Sized> {
    store: &'a S,
    steps: AtomicU64,
    first: u64,
}

impl<'a, S: ?Sized> Away<'a, S> {
    /// The step with this number, from 1 on, is the first that fails.
    pub fn from(store: &'a S, first: u64) -> Self {
        Away { store, steps: AtomicU64::new(0), first }
    }

    fn step<'b, T: Send + 'b>(&self, step: Step<'b, T>) -> Step<'b, T> {
        let after = (self.steps.fetch_add(1, Ordering::Relaxed) + 1).checked_sub(self.first);
        match after {
            Some(after) if after % (2 * BETWEEN) == 0 => {
                Box::pin(async { Err(CopyError::Fault(Fault::Unavailable("away".to_owned()))) })
            }
            Some(after) if after % BETWEEN == 0 => Box::pin(async {
                step.await?;
                Err(CopyError::Fault(Fault::Unknown("away".to_owned())))
            }),
            _ => step,
        }
    }
}

impl<S: Source + ?Sized> Source for Away<'_, S> {
    fn marked(&self) -> Step<'_, Option<Mark>> {
        self.step(self.store.marked())
    }
    fn freeze<'a>(&'a self, mark: &'a Mark) -> Step<'a, ()> {
        self.step(self.store.freeze(mark))
    }
    fn thaw(&self) -> Step<'_, ()> {
        self.step(self.store.thaw())
    }
    fn namespaces(&self) -> Step<'_, Vec<Namespace>> {
        self.step(self.store.namespaces())
    }
    fn head<'a>(&'a self, namespace: &'a Namespace) -> Step<'a, Head> {
        self.step(self.store.head(namespace))
    }
    fn page<'a>(&'a self, namespace: &'a Namespace, cursor: &'a Cursor) -> Step<'a, CopiedPage> {
        self.step(self.store.page(namespace, cursor))
    }
}

impl<S: Target + ?Sized> Target for Away<'_, S> {
    fn found(&self) -> Step<'_, Found> {
        self.step(self.store.found())
    }
    fn begin<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        head: &'a Head,
    ) -> Step<'a, Begun> {
        self.step(self.store.begin(copy, namespace, head))
    }
    fn put<'a>(
        &'a self,
        copy: &'a str,
        namespace: &'a Namespace,
        page: u64,
        items: Vec<Item>,
        next: Option<Cursor>,
    ) -> Step<'a, ()> {
        self.step(self.store.put(copy, namespace, page, items, next))
    }
    fn open<'a>(&'a self, copy: &'a str) -> Step<'a, ()> {
        self.step(self.store.open(copy))
    }
    fn give_up(&self) -> Step<'_, ()> {
        self.step(self.store.give_up())
    }
}
