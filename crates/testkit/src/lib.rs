//! What the tests of the workspace have in common. Nothing of it is for production.

mod clock;
pub mod fake;
mod folder;
pub mod redis;
#[cfg(target_os = "linux")]
mod shifted;

pub use clock::TestClock;
pub use folder::TempDir;
#[cfg(target_os = "linux")]
pub use shifted::ShiftedClock;
