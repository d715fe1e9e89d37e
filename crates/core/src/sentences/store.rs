//! Refusals that depend on the state of the store or of the engine, and not on the request.

use super::Phrase;
use super::phrases::REPEAT_AND_REPORT;
use super::table::refusals;
use crate::time::Span;

/// Advice that frees space in a folder.
const MAKE_ROOM: &str = "cancel or delete jobs, let finished ones go sooner (\"retain\"), or free space on the disk; then \
                         repeat the same call. What settles, cancels or deletes still works";

refusals! {
    /// An engine that accepts nothing now, or nothing from this caller. `store` and `bound` are the names of the
    /// program that keeps the store, and of its setting that bounds it; `guide` is the page about it.
    StoreRefusal:

    Draining Draining
        detail("the server is draining and grants nothing more")
        hint("ask again in a moment: another server answers, or this one when it is back")
        retry_after_s(1);

    DiskFull StoreFull
        detail("the disk of the store is full, and nothing of this call was stored")
        hint("{MAKE_ROOM}")
        retry_after_s(RETRY_S);

    FolderFull StoreFull { most_bytes: u64 }
        detail("the disk of the store is full, or its folder has reached {most_bytes} bytes (\"--max-bytes\"); nothing \
                of this call was stored")
        hint("{MAKE_ROOM}")
        retry_after_s(RETRY_S);

    MemoryFull StoreFull { store: Phrase, bound: Phrase }
        detail("{store} has reached {bound} and takes nothing new")
        hint("let jobs end or shorten \"retain\", or raise {bound}; what settles, extends or cancels still works")
        retry_after_s(RETRY_S);

    NamespacesFull NamespacesFull { most: usize }
        detail("the store has {most} namespaces, and takes no other (\"--namespaces-max\")")
        hint("use a namespace that is there, or raise \"--namespaces-max\" of the server; a namespace ends a day after its \
              last call if nothing is in it");

    Denied Unauthorized { store: Phrase, message: String, guide: Phrase }
        detail("{store} does not permit this: {message}")
        hint("give the address the user and the password of one who may read the keys of the store; {guide} \
              says what each user needs");

    Unavailable StoreUnavailable { fault: String }
        detail("{fault}")
        hint("nothing happened; send the same call again after Retry-After");

    EventsNotKept WrongState
        detail("this store keeps no events")
        hint("start the server with --events-bytes 16MiB, or leave the option out");

    OutcomeUnknown OutcomeUnknown { fault: String }
        detail("{fault}")
        hint("send the same call again, with the same ids: nothing is done twice");

    EngineBroke Internal
        detail("the server has a bug, and could not answer")
        hint("{REPEAT_AND_REPORT}");
}

/// Health of an engine whose clock was set back.
pub fn clock_behind(behind: Span) -> String {
    format!("the clock is {behind} behind what it was: set it right")
}

/// Note about a clock that gained on monotonic time.
pub fn clock_leapt(by: Span) -> String {
    format!("the clock leapt ahead by {by}: every lease has its whole ttl again")
}

/// Note about a store that may have forgotten the writes that it answered last.
pub const STORE_FORGOT: &str = "the store may have forgotten its last writes: nothing exclusive is granted, and no lease \
                                ends by time, until each lease that was forgotten is over";

/// Health of an engine with such a store, with the time that is left.
pub fn recovers(left: Span) -> String {
    format!(
        "the store may have forgotten its last writes: nothing exclusive is granted for another {left}, and no lease \
         ends by time before"
    )
}

/// Note about an engine that did nothing for a while.
pub fn deaf(silent: Span) -> String {
    format!("nothing was heard for {silent}: no lease ends for what fell into that time")
}

/// Time after which a full store may have room again: jobs that end or expire free it within moments, not minutes.
const RETRY_S: u64 = 5;
