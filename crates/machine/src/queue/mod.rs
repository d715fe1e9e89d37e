//! Queues: the order of ready jobs, the wait queues of needs, and the calls that wait.

pub(crate) mod doors;
pub(crate) mod line;
pub(crate) mod place;
pub(crate) mod reservations;
pub(crate) mod waiting;
