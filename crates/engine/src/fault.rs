//! How a call can end without an answer. A "no" is not here: it is a [`Refusal`].

use std::fmt;

use tenure_core::refusal::{Code, Refusal};

/// A call that was not answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing happened: the store or server cannot be reached, or is not open.
    Unavailable(String),
    /// It may have happened: repeat the same call, with the same ids.
    Unknown(String),
    /// Not permitted: no token, or a wrong one.
    Denied(Refusal),
    /// The other side broke its contract: a bug.
    Broken(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unavailable(why) => write!(f, "the store cannot be reached: {why}"),
            Fault::Unknown(why) => write!(f, "the outcome is unknown, it may have happened: {why}"),
            Fault::Denied(no) => write!(f, "{no}"),
            Fault::Broken(why) => write!(f, "this is a bug: {why}"),
        }
    }
}
impl std::error::Error for Fault {}

/// Why a call has no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The answer is no. Nothing was changed.
    Refused(Refusal),
    /// There is no answer.
    Fault(Fault),
}

impl CallError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        match self {
            CallError::Refused(no) => Some(no.code),
            CallError::Fault(_) => None,
        }
    }
}
impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Refused(no) => no.fmt(f),
            CallError::Fault(fault) => fault.fmt(f),
        }
    }
}
impl std::error::Error for CallError {}
impl From<Refusal> for CallError {
    fn from(no: Refusal) -> Self {
        CallError::Refused(no)
    }
}
impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        CallError::Fault(fault)
    }
}
