//! Rules that a test can leave out, to see the effect of their absence. Outside tests this is the constant `false` and
//! costs nothing.

/// A rule that is left out. Rules known only to tests are elsewhere: in the machine, and in the code that talks to
/// Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    /// R11: a store that names this server counts as acquired by it, even if another one handed it over.
    GivenIsAcquired,
    /// R1: an append at an older epoch is accepted.
    AnyEpochAppends,
    /// R1: the fence knows a leader by its epoch alone, not by its id.
    LeadersAreAlike,
    /// R1: an append is accepted in another run of Redis than the leader knows.
    AnyRunAppends,
    /// R1: an existing number is `done`, with any content.
    AnyContentIsDone,
    /// R1 and R8: an empty append writes no heartbeat.
    EmptyAppendsDoNotBeat,
    /// R1 to the letter: an acquisition does not name the observed run of Redis.
    AcquisitionsNameNoRun,
    /// R2: a load does not end with an append.
    LoadsAreNotProved,
    /// R3: an answer that changed no rows goes out at once.
    ReadsSkipTheFence,
    /// R3: an append releases answers that were decided after it had begun.
    AppendsLetOutAll,
    /// R4: an append without a reply counts as not done.
    UnsureIsNever,
    /// R5: a fenced leader keeps its memory, and acquires the store with it.
    FencedGoesOn,
    /// R6: a load ends leases at once, without a whole ttl.
    #[cfg(test)]
    LoadsEndLeases,
    /// R7: a server that is named and does not serve does nothing.
    NamedDoesNothing,
    /// R7: a leader that says that it does not serve is not left alone.
    OnlyTheDeadAreReplaced,
    /// R8: leases end by the store's clock.
    #[cfg(test)]
    LeasesEndByTime,
    /// R8: a machine begins at TIME, even if that is before the last heartbeat.
    BeginsBeforeTheBeat,
    /// R10: the ends of leases are handed over with the store.
    #[cfg(test)]
    EndsAreHandedOver,
    /// R11: a server whose store moved loads it again.
    MovedIsFenced,
    /// R11: a server whose store moved rebuilds it without asking the others.
    HealsWithoutAsking,
    /// R11: a server that cannot be asked counts as one that answers no.
    SilenceIsNo,
    /// R11: the acquisition notes the run.
    RunIsNotedAtOnce,
    /// R11 to the letter: the later epoch is the later acquisition, even on a partitioned primary.
    LaterIsAcquired,
    /// R12: a leader that asks the others after a loss still makes exclusive grants.
    GrantsWhileItAsks,
    /// R12: there are no recoveries.
    NobodyRecovers,
    /// R12: grants from before a known loss go out, although a server that may know more cannot be asked.
    DoubtfulGrantsGoOut,
    /// R12: a store that ends before a known entry counts as whole while Redis is in the same run.
    SetBackIsUnseen,
    /// R12: a recovery under the noted run keeps that note, so the next leader does not recover.
    RecoveryKeepsTheNote,
    /// R7: a refused connection is death, although the heartbeat goes on or the server was never reached.
    RefusalIsDeath,
    /// R13: appends do not wait for the replicas.
    #[cfg(test)]
    NobodyWaits,
    /// R14: pieces are written and unlinked without the fence.
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

/// True if this rule is left out now.
#[inline(always)]
pub(crate) fn forgets(_mutant: Mutant) -> bool {
    #[cfg(test)]
    return LEFT_OUT.with(|left_out| left_out.get().contains(&Some(_mutant)));
    #[cfg(not(test))]
    false
}
