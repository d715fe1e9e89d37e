//! Scans of all rows: a start, an audit, and the damage that they find.

pub(crate) mod audit;
pub(crate) mod damage;
pub(crate) mod start;
pub(crate) mod walk;
