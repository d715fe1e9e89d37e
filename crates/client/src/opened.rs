//! The store that a client opened itself, and closes.

#[cfg(feature = "embedded")]
use std::sync::Arc;

/// A store that is closed at the end.
#[derive(Clone)]
pub(crate) enum Opened {
    /// A server, or an engine of the caller.
    Elsewhere,
    #[cfg(feature = "embedded")]
    Embedded(Arc<tenure_engine::Embedded>),
}

impl Opened {
    /// Closes it without blocking a task.
    pub(crate) async fn close(&self) {
        match self {
            Opened::Elsewhere => {}
            #[cfg(feature = "embedded")]
            Opened::Embedded(embedded) => {
                let embedded = embedded.clone();
                // It returns nothing, and a panic in it has been reported.
                let _ = tokio::task::spawn_blocking(move || embedded.close()).await;
            }
        }
    }
}
