//! Scarce things: limits, pools, and the usage probes of limits.

pub(crate) mod dropped;
pub(crate) mod gauges;
pub(crate) mod limits;
pub(crate) mod pools;
pub(crate) mod rates;
