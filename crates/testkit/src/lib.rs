//! What the tests of the workspace have in common. Nothing of it is for production.

mod clock;
mod folder;
pub mod redis;

pub use clock::TestClock;
pub use folder::TempDir;
