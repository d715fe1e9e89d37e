//! Observer of a worker or a lock: passes its events to a callback, for logs, metrics and people.

use std::fmt;
use std::sync::Arc;

type Observing<E> = dyn Fn(&E) + Send + Sync;

/// Called with every event of type `E`; without a callback, events are dropped.
pub struct Observer<E>(Option<Arc<Observing<E>>>);

impl<E> Observer<E> {
    /// Reports to `observe`, which must not block.
    pub fn new(observe: impl Fn(&E) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(observe)))
    }
    /// Whether a callback is set.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }
    /// Reports one event, which is made only if a callback is set.
    pub fn tell(&self, event: impl FnOnce() -> E) {
        if let Some(observe) = &self.0 {
            observe(&event());
        }
    }
}

// Not derived: that would require `E: Clone`.
impl<E> Clone for Observer<E> {
    fn clone(&self) -> Self {
        Observer(self.0.clone())
    }
}
impl<E> Default for Observer<E> {
    fn default() -> Self {
        Observer(None)
    }
}
impl<E> fmt::Debug for Observer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(set)" } else { "Observer(none)" })
    }
}
