//! A grant whose answer did not leave: it is undone at once, so that nothing waits for a ttl and
//! nothing is counted against the job.
//!
//! Bytes that the system took may still not arrive; then the lease lives for its ttl, like that of
//! any holder that died.

use std::fmt;
use std::sync::Arc;

use tenure_core::lease::Leased;
use tenure_core::names::Namespace;
use tenure_engine_api::Engine;

/// Leases that were granted to a caller that has not received them yet. Dropping it does nothing;
/// see [`Undelivered::undo`].
pub(crate) struct Undelivered {
    undoing: Box<dyn FnOnce(Vec<String>) + Send>,
    leases: Vec<String>,
}

impl Undelivered {
    /// For the answer to a lease call, unless it grants nothing that lasts.
    pub(crate) fn of(
        engine: &Arc<impl Engine>,
        namespace: &Namespace,
        leased: &Leased,
    ) -> Option<Self> {
        let leases: Vec<String> = leased.leases.iter().filter_map(|l| l.lease.clone()).collect();
        (!leases.is_empty()).then(|| {
            let (engine, namespace) = (engine.clone(), namespace.clone());
            Undelivered::by(move |leases| engine.undo(&namespace, leases), leases)
        })
    }

    /// These leases, with the way to undo them.
    pub(crate) fn by(
        undoing: impl FnOnce(Vec<String>) + Send + 'static,
        leases: Vec<String>,
    ) -> Self {
        Undelivered { undoing: Box::new(undoing), leases }
    }

    /// Undoes the leases, as if they had not been granted.
    pub(crate) fn undo(self) {
        let count = self.leases.len();
        tracing::debug!(count, "undoing leases whose answer could not be written");
        (self.undoing)(self.leases);
    }
}

impl fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Undelivered({})", self.leases.len())
    }
}
