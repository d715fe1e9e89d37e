//! Fixtures that the tests of the workspace share. Nothing here is for production.

pub mod certificates;
mod dice;
pub mod fake;
mod folder;
mod parts;
pub mod redis;
#[cfg(target_os = "linux")]
mod shifted;
pub mod tenure;

pub use dice::Dice;
pub use folder::TempDir;
pub use parts::{long, wants};
#[cfg(target_os = "linux")]
pub use shifted::ShiftedClock;
pub use tenure_engine_api::TestClock;

/// The shortest ttl that heartbeats are sure to keep: a machine that is busy, or suspended, may let no process compute for
/// a second, and a shorter lease would be lost by that.
pub const KEPT_TTL: tenure_core::time::Span = tenure_core::time::Span::from_s(3);
