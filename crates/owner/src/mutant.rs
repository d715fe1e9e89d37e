//! Rules that a test can have left out, to see what their absence breaks. Outside tests this is the constant `false` and
//! costs nothing.

/// A rule that is left out. Those that only tests know are kept elsewhere: by the machine, and by what talks to Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    /// R11: a store that names this server counts as acquired by it, also where another one gave it away.
    GivenIsAcquired,
    /// R1: an append at an older epoch is taken.
    AnyEpochAppends,
    /// R1: an owner is told by its epoch alone, not by its id.
    OwnersAreAlike,
    /// R1: an append is taken in another run of Redis than the owner knows.
    AnyRunAppends,
    /// R1: a number that is there is `done`, whatever it holds.
    AnyContentIsDone,
    /// R1 and R8: an empty append leaves no beat.
    EmptyAppendsDoNotBeat,
    /// R1 to the letter: an acquisition does not name the run of Redis that was seen.
    AcquisitionsNameNoRun,
    /// R2: a load does not end with an append.
    LoadsAreNotProved,
    /// R3: an answer that changed no rows goes out at once.
    ReadsSkipTheFence,
    /// R3: an append lets out what was decided after it had begun.
    AppendsLetOutAll,
    /// R4: an append whose reply is missing is taken for one that did not happen.
    UnsureIsNever,
    /// R5: a deposed owner keeps its memory, and acquires the store with it.
    DeposedGoesOn,
    /// R6: a load ends leases at once rather than give them a whole ttl.
    #[cfg(test)]
    LoadsEndLeases,
    /// R7: a server that is named and does not serve leaves it so.
    NamedDoesNothing,
    /// R7: an owner that says it serves not is left alone.
    OnlyTheDeadAreReplaced,
    /// R8: leases end by the store's clock.
    #[cfg(test)]
    LeasesEndByTime,
    /// R8: a machine begins at TIME, even if that is before the last beat.
    BeginsBeforeTheBeat,
    /// R10: the ends of leases are handed over with the store.
    #[cfg(test)]
    EndsAreHandedOver,
    /// R11: who is told that the store moved loads it anew.
    MovedIsDeposed,
    /// R11: who is told that the store moved heals it without asking the others.
    HealsWithoutAsking,
    /// R11: a server that cannot be asked counts as one that says no.
    SilenceIsNo,
    /// R11: the run is noted by the acquisition.
    RunIsNotedAtOnce,
    /// R11 to the letter: what was later is told by epochs that were acquired, even on a primary that was cut off.
    LaterIsAcquired,
    /// R12: an owner that asks the others after a loss grants meanwhile what is exclusive.
    GrantsWhileItAsks,
    /// R12: nobody recovers.
    NobodyRecovers,
    /// R12: what was granted before a loss was known goes out, although a server that may know more cannot be asked.
    DoubtfulGrantsGoOut,
    /// R12: a store that ends before an entry that is known is taken for whole, as long as Redis is in the same run.
    SetBackIsUnseen,
    /// R12: a recovery under the run that is noted leaves that note, so who follows does not recover.
    RecoveryKeepsTheNote,
    /// R7: a refused connection is death, although the beat goes on or the server was never reached.
    RefusalIsDeath,
    /// R13: the replicas are not waited for.
    #[cfg(test)]
    NobodyWaits,
    /// R14: pieces are written and unlinked whoever owns the store.
    PiecesAreUnfenced,
    /// R14: the name of a snapshot is a count without the epoch.
    SnapshotsAreCounted,
    /// R16: a server that finds no store makes one at once.
    AbsenceIsEmptiness,
}

#[cfg(test)]
thread_local! {
    pub(crate) static LEFT_OUT: std::cell::Cell<[Option<Mutant>; 2]> = const { std::cell::Cell::new([None; 2]) };
}

/// Whether this rule is left out now.
#[inline(always)]
pub(crate) fn forgets(_mutant: Mutant) -> bool {
    #[cfg(test)]
    return LEFT_OUT.with(|left_out| left_out.get().contains(&Some(_mutant)));
    #[cfg(not(test))]
    false
}
