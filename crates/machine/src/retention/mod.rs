//! Retention: finished jobs that go early, idle namespaces, and tables that shrink after a peak.

pub(crate) mod budget;
pub(crate) mod resting;
pub(crate) mod trim;
