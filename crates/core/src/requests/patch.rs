//! Patches of single fields, and the answer to a put. The type of the changed thing does not matter
//! here.

use super::Operation;
use crate::refusal::Code;

/// The change that a patch makes to one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Patch<T> {
    /// The patch does not name the field.
    #[default]
    Keep,
    /// The field is `null`: back to the default.
    Reset,
    /// The field gets this value.
    Set(T),
}

impl<T> Patch<T> {
    /// Changes an optional field.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = None,
            Patch::Set(value) => *field = Some(value),
        }
    }
    /// Changes a field whose type has a default.
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
    /// Changes a field; a reset sets it to `default`.
    pub fn apply_or(self, field: &mut T, default: T) {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = default,
            Patch::Set(value) => *field = value,
        }
    }
    /// Checks the value, if the patch sets one.
    pub(crate) fn each<E>(&self, ask: impl FnOnce(&T) -> Result<(), E>) -> Result<(), E> {
        match self {
            Patch::Set(value) => ask(value),
            Patch::Keep | Patch::Reset => Ok(()),
        }
    }
    /// The value for a thing that is newly made: a field that is not set has its default there.
    pub(crate) fn given(self) -> Option<T> {
        match self {
            Patch::Set(value) => Some(value),
            Patch::Keep | Patch::Reset => None,
        }
    }
    /// True if the patch names the field.
    pub fn is_named(&self) -> bool {
        !matches!(self, Patch::Keep)
    }
}

/// Names the field: `None` resets it.
impl<T> From<Option<T>> for Patch<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Patch::Reset, Patch::Set)
    }
}

/// A change of named settings of a thing that must exist.
pub trait Change: Operation + Clone {
    /// The request that replaces all settings, and makes the thing if it does not exist.
    type Whole: Operation<Reply = Self::Reply>;
    /// Its view, before the change.
    type Shows: Operation;
    /// Code of the refusal if the thing does not exist.
    const ABSENT: Code;
    /// The request that shows the thing.
    fn shows(&self) -> Self::Shows;
    /// Whether the thing has settings of its own, which can be changed.
    fn has_own(view: &<Self::Shows as Operation>::Reply) -> bool;
    /// The request that makes the thing, with the named settings and the defaults of all others.
    fn whole(self) -> Self::Whole;
}

/// The answer to a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put<T> {
    /// The thing as it is now.
    pub view: T,
    /// True if the put made it.
    pub created: bool,
}
