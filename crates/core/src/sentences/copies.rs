//! Refusals of a copy from one store to another, which both engines tell.

use super::Phrase;
use super::table::refusals;

refusals! {
    /// Why a copy cannot go on. `place` is what sentences call the store: a folder, or a namespace of a Redis.
    CopyRefusal:

    NotFrozen "copy_source_not_frozen" { place: Phrase }
        WrongState
        detail("{place} is not frozen any more")
        hint("somebody thawed it: start the copy again");

    NotAPart "copy_target_not_part" { place: Phrase }
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

    FrozenAlready "copy_source_frozen" { frozen: String }
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
