//! What a patch does to one field, and what a put answers. Nothing here knows which thing is
//! changed.

use super::Operation;
use crate::refusal::Code;

/// What a patch does to one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Patch<T> {
    /// It is not named.
    #[default]
    Keep,
    /// It is `null`: back to the default.
    Reset,
    /// It is given.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies it to an optional field.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = None,
            Patch::Set(value) => *field = Some(value),
        }
    }
    /// Applies it to a field that has a default.
    pub fn apply_or_default(self, field: &mut T)
    where
        T: Default,
    {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = T::default(),
            Patch::Set(value) => *field = value,
        }
    }
    /// Applies it to a field whose default is this.
    pub fn apply_or(self, field: &mut T, default: T) {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = default,
            Patch::Set(value) => *field = value,
        }
    }
    /// Asks something of the value, if one is given.
    pub(crate) fn each<E>(&self, ask: impl FnOnce(&T) -> Result<(), E>) -> Result<(), E> {
        match self {
            Patch::Set(value) => ask(value),
            Patch::Keep | Patch::Reset => Ok(()),
        }
    }
    /// What a field of a thing that is made is: one that is not named has its default there.
    pub(crate) fn given(self) -> Option<T> {
        match self {
            Patch::Set(value) => Some(value),
            Patch::Keep | Patch::Reset => None,
        }
    }
    /// Whether the field is named.
    pub fn is_named(&self) -> bool {
        !matches!(self, Patch::Keep)
    }
}

/// Changes the named settings of a thing, which must be there.
pub trait Change: Operation + Clone {
    /// Replaces all settings of it; makes it if it is not there.
    type Whole: Operation<Reply = Self::Reply>;
    /// How a change of what is not there is refused.
    const ABSENT: Code;
    /// What makes the thing, with the named settings and the defaults of all others.
    fn whole(self) -> Self::Whole;
}

/// The answer of a put: what is there now, and whether it is new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put<T> {
    /// What is there now.
    pub view: T,
    /// It was not there.
    pub created: bool,
}
