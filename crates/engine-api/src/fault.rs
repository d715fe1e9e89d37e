//! The ways in which a call ends without an answer. A "no" is not one of them: it is a [`Refusal`].

use tenure_core::lease::Leased;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::Settled;

/// A call that was not answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Nothing happened: the store or server cannot be reached, or is not open.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Nothing happened: a server answers, but cannot reach its own store.
    #[error("{0}")]
    StoreAway(String),
    /// It may have happened: repeat the same call, with the same ids.
    #[error("the outcome is unknown, it may have happened: {0}")]
    Unknown(String),
    /// Not permitted: no token, or a wrong one.
    #[error(transparent)]
    Denied(Refusal),
    /// The other side broke its contract: a bug.
    #[error("this is a bug: {0}")]
    Broken(String),
}

/// The reason why a call has no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The answer is no. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no answer.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl CallError {
    /// The same error for a call that has done part of its work, so that it does not claim that nothing happened.
    pub fn after_a_part(self) -> Self {
        match self {
            CallError::Fault(Fault::Unavailable(why) | Fault::StoreAway(why)) => {
                Fault::Unknown(why).into()
            }
            other => other,
        }
    }

    /// The same error, with its refusal in other words.
    pub fn refused(self, say: impl FnOnce(Refusal) -> Refusal) -> Self {
        match self {
            CallError::Refused(no) => CallError::Refused(say(no)),
            other => other,
        }
    }

    /// The answer to a settle that carried a lease call, once the settles are answered: a refusal of the lease call
    /// takes the place of its answer, since the settles hold all the same.
    pub fn after_settles(
        settled: Settled,
        leased: Result<Leased, CallError>,
    ) -> Result<Settled, CallError> {
        let lease = match leased {
            Err(CallError::Refused(no)) => Err(no.below("/lease")),
            leased => Ok(leased.map_err(CallError::after_a_part)?),
        };
        Ok(Settled { lease: Some(lease), ..settled })
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        match self {
            CallError::Refused(no) => Some(no.code),
            CallError::Fault(_) => None,
        }
    }
}
