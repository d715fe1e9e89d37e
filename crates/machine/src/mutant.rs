//! Faults that a test can switch on in the state machine, to see that the random histories catch them. Outside tests
//! this is the constant `false` and costs nothing.

/// A rule that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    /// A cancelled, emptied or changed head does not make its wait queue due.
    HeadGoneIsNoEvent,
    /// A try of an offered lane does not make its wait queue due: the offer is not passed to the next.
    TriedIsNoEvent,
    /// A new event starts a pass again from the front instead of lengthening it.
    PassStartsAgain,
    /// A settle does not make the wait queues of the returned needs due.
    ReturnIsNoEvent,
    /// A raised cap does not make its wait queue due.
    SettingIsNoEvent,
    /// A lane does not check for earlier entries of its queue.
    Barging,
    /// A leap of the clock that is too short for deafness ends leases early.
    LeapIsNoEvent,
    /// A permit is free at the end of its lease although no reading has shown the end of its run.
    NoRestForGauge,
    /// The first reading after the unsettled end of a lease counts as showing its run.
    UncleanIsShown,
    /// A lease counts as shown by a reading although it was granted too late for it.
    SeenTooEarly,
    /// A reading that is old counts as a fresh one.
    OldIsFresh,
    /// A run whose holder died is the permit of any job, not only of its own.
    AnyRunIsOwn,
    /// An opening gives leases only their remaining time, not a whole ttl.
    TakeoverEndsLeases,
    /// A machine that recovers grants permits of a limit with a concurrency.
    RecoveryGrantsLimits,
    /// A machine that recovers grants resources of a pool.
    RecoveryGrantsPools,
    /// A recovering machine reaps leases that are over by its store's knowledge.
    RecoveryReaps,
    /// A namespace that was lost as a whole counts as one that was never used.
    NewNamespaceIsWhole,
    /// A leap of the clock shortens a recovery.
    LeapShortensRecovery,
    /// A call ends a recovery by the clock, before a tick has checked for a leap.
    CallEndsRecovery,
    /// A reading from before a loss counts for the runs that were lost.
    ForgottenRunsAreShown,
}

#[cfg(test)]
thread_local! {
    pub(crate) static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// True if this rule is left out now.
#[inline(always)]
pub(crate) fn forgets(_mutant: Mutant) -> bool {
    #[cfg(test)]
    return ON.with(|on| on.get() == Some(_mutant));
    #[cfg(not(test))]
    false
}
