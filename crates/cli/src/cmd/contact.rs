//! Tells people when the store goes away and when it is back: once for each absence, however often it
//! is asked meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use tenure_seam::CallError;

use crate::output::tell;

/// Whether an absence was told.
#[derive(Default)]
pub struct Contact {
    away: AtomicBool,
}

impl Contact {
    /// A call failed that is made again.
    pub fn lost(&self, error: &CallError) {
        if !self.away.swap(true, Ordering::Relaxed) {
            tell(&format!("{error}; asking again until it answers"));
        }
    }
    /// The store answers again.
    pub fn found(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            tell("the store answers again");
        }
    }
}
