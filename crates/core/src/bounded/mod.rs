//! Bounds of the contract, checked on typed values.
//!
//! A body is checked while `decode` reads it; a program of this process makes its requests without a body. Both use the
//! forms of `decode`'s table of fields and the rules of this module, so that a bound is written once and both are refused
//! in the same words. [`Bounded`] checks a whole request: [`Operation`](crate::requests::Operation) requires it, so an
//! operation without bounds does not compile.
//!
//! Nothing here knows the state: the state machine checks everything that depends on it (an unknown limit, a moment too
//! near). A pointer counts from the body that the request would have, except that of a pushed job, which counts from
//! its item, as an engine's does.

mod rules;
mod set_ids;
#[cfg(test)]
mod tests;

use crate::refusal::Refusal;

pub(crate) use rules::*;
pub(crate) use set_ids::SetIds;

/// Requests that have only names and filters.
macro_rules! unbounded {
    ($($request:ident)*) => { $(impl $crate::bounded::Bounded for $request {})* };
}
pub(crate) use unbounded;

/// A request whose values have bounds.
pub trait Bounded {
    /// Refuses a value outside of its bounds. A request with only names and filters has none.
    ///
    /// # Errors
    /// `out_of_bounds`, `invalid_field`, `conflicting_fields` and `duplicate_need`, as a server refuses the same request.
    fn within_bounds(&self) -> Result<(), Refusal> {
        Ok(())
    }
}
