//! How long the processes of CMD have to end. `tenure` and the guard keep the same times.

use std::time::Duration;

/// Between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);
/// After SIGKILL all is over at once, unless the system does not let it.
pub const KILLED_MAX: Duration = Duration::from_secs(1);
