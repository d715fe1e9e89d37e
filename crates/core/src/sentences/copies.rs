//! Refusals of a copy from one store to another.

use std::fmt;

use super::Phrase;
use super::table::refusals;

refusals! {
    /// Why a copy cannot go on. `place` is what sentences call the store, such as "the folder /srv/jobs".
    CopyRefusal:

    NotFrozen WrongState { place: Phrase }
        detail("{place} is not frozen any more")
        hint("somebody thawed it: start the copy again");

    NotAPart WrongState { place: Phrase }
        detail("{place} is not a part of this copy any more")
        hint("somebody gave it up: start the copy again");

    Unfinished WrongState { place: Phrase, address: Phrase }
        detail("{place} is an unfinished copy or restore itself")
        hint("finish that, or give it up: tenure copy --thaw --to {address}");
}

/// Why a store is served to nobody: a copy marked it. Its sentence ends with the way out, behind a semicolon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PausedStore {
    /// It is copied, or was copied whole, to `to`.
    Source {
        /// The store, as a sentence names it.
        place: String,
        /// The address of the store, as a command names it.
        address: String,
        /// Where it is copied to, as it is shown.
        to: String,
        /// The copy is whole.
        whole: bool,
    },
    /// It is an unfinished copy.
    Target {
        /// The store, as a sentence names it.
        place: String,
        /// The address of the store, as a command names it.
        address: String,
    },
}

impl fmt::Display for PausedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PausedStore::Source { place, to, whole: true, .. } => write!(
                f,
                "{place} was copied to {to} and is frozen since; use the copy, or see `tenure copy --help` on --thaw"
            ),
            PausedStore::Source { place, address, to, whole: false } => write!(
                f,
                "{place} is frozen, because a copy of it to {to} was begun; finish that by the same `tenure copy` as \
                 before, or give it up: tenure copy --thaw --from '{address}'"
            ),
            PausedStore::Target { place, address } => write!(
                f,
                "{place} is an unfinished copy or restore; finish it by the same command as before, or give it up: tenure \
                 copy --thaw --to '{address}'"
            ),
        }
    }
}
