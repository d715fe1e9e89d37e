//! Refusals of a copy from one store to another, which both engines tell.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Phrase;
use super::table::refusals;

refusals! {
    /// Why a copy cannot go on. `place` is what sentences call the store: a folder, or a namespace of a Redis.
    CopyRefusal:

    NotFrozen "copy_source_not_frozen" { #[serde(default = "this_namespace")] place: Phrase }
        WrongState
        detail("{place} is not frozen any more")
        hint("somebody thawed it: start the copy again");

    NotAPart "copy_target_not_part" { #[serde(default = "the_target")] place: Phrase }
        WrongState
        detail("{place} is not a part of this copy any more")
        hint("somebody gave it up: start the copy again");

    PageOutOfTurn "copy_page_out_of_turn" { there: u64, page: u64 }
        WrongState
        detail("the target has {there} pages of this copy, and page {page} is sent")
        hint("another `tenure copy` writes to it too: let one of them finish");

    Unfinished "copy_source_unfinished" { place: Phrase, address: Phrase }
        WrongState
        detail("{place} is an unfinished copy itself")
        hint("finish that copy, or give it up: tenure copy --thaw --to {address}");

    FrozenAlready "copy_source_frozen" { frozen: FrozenFor }
        WrongState
        detail("{frozen}")
        hint("thaw it first; one that was frozen by hand is thawed by hand");

    TargetTaken "copy_target_taken"
        NotEmpty
        detail("the target is frozen, or a part of another copy")
        hint("give it up first: tenure copy --thaw --to ADDRESS; or copy to another place");

    TargetUsed "copy_target_used"
        NotEmpty
        detail("the target holds something already")
        hint("copy to an empty store, or under another prefix");

    NothingToGiveUp "copy_nothing_to_give_up"
        WrongState
        detail("this namespace is no unfinished copy")
        hint("there is nothing to give up here");
}

/// What a Redis that says nothing of its place calls a namespace.
fn this_namespace() -> Phrase {
    "this namespace".into()
}

fn the_target() -> Phrase {
    "the target".into()
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
                "{place} is an unfinished copy; finish it by the same `tenure copy` as before, or give it up: tenure copy \
                 --thaw --to '{address}'"
            ),
        }
    }
}

/// What a namespace on Redis is frozen for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenFor {
    /// It is the source of a copy.
    Copied,
    /// It is the target of a copy that is not whole yet.
    Unfinished,
    /// An operator froze it.
    ByHand,
}

impl FrozenFor {
    /// By the name that the library inside Redis uses.
    pub fn named(name: &str) -> Option<Self> {
        let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(name);
        FrozenFor::deserialize(name).ok()
    }
}

/// What a caller of such a namespace is told.
impl fmt::Display for FrozenFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrozenFor::Copied => {
                "this namespace is frozen, because it was copied elsewhere or is being copied: use the copy, or thaw \
                 this one: tenure copy --thaw --from ADDRESS"
            }
            FrozenFor::Unfinished => {
                "this namespace is an unfinished copy: finish it by the same `tenure copy` as before, or give it up: \
                 tenure copy --thaw --to ADDRESS"
            }
            FrozenFor::ByHand => {
                "this namespace is frozen while its slot is moved: thaw it when the slot has arrived"
            }
        })
    }
}
