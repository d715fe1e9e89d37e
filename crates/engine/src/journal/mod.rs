//! The journal is the truth: answers wait for its appends, and rows are brought up to it. This module knows bytes and
//! numbers, and no table of SQL.

pub(crate) mod confirm;
pub(crate) mod confirming;
pub(crate) mod folder;
pub(crate) mod load;
pub(crate) mod replica;
