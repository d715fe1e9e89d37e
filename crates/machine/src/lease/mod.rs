//! Leases: the grant, the end, and progress reports in between.

pub(crate) mod ending;
pub(crate) mod grant;
pub(crate) mod progress;
