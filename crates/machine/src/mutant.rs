//! Faults that a test can switch on in the state machine, to see that the random histories catch
//! them. Outside tests this is the constant `false` and costs nothing.

/// A rule that is forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    /// A cancelled, emptied or changed head does not make its door due.
    HeadGoneIsNoEvent,
    /// A lane that was offered and is tried does not make its door due: nothing is passed on.
    TriedIsNoEvent,
    /// A new event starts a pass again from the front instead of lengthening it.
    PassStartsAgain,
    /// A settle does not make the doors of what it gave back due.
    ReturnIsNoEvent,
    /// A raised cap does not make its door due.
    SettingIsNoEvent,
    /// A lane does not look whether others of its queue stand before it.
    Barging,
    /// A clock that leaps ahead by less than makes the engine deaf ends leases early.
    LeapIsNoEvent,
    /// A permit is free at the end of its lease although no reading has shown the end of its run.
    NoRestForGauge,
    /// The first reading after the end of a lease that nobody settled is taken to show its run.
    UncleanIsShown,
    /// A lease is taken to be shown by a reading although it was granted too lately for that.
    SeenTooEarly,
    /// A reading that is old counts as a fresh one.
    OldIsFresh,
    /// A run whose holder died is the permit of any job, and not of its own alone.
    AnyRunIsOwn,
    /// An opening gives a lease no ttl from then on, but what it may have had left.
    TakeoverEndsLeases,
    /// A machine that recovers grants permits of a limit with a concurrency.
    RecoveryGrantsLimits,
    /// A machine that recovers grants resources of a pool.
    RecoveryGrantsPools,
    /// A machine that recovers takes leases back that are over by what its store knows.
    RecoveryReaps,
    /// A namespace that was forgotten as a whole is taken for one that nobody used.
    NewNamespaceIsWhole,
    /// A leap of the clock shortens a recovery.
    LeapShortensRecovery,
    /// A call ends a recovery by what the clock says, although no tick has seen yet whether that leapt.
    CallEndsRecovery,
    /// A reading from before the store forgot counts for what it forgot.
    ForgottenRunsAreShown,
}

#[cfg(test)]
thread_local! {
    pub(crate) static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether this rule is forgotten now.
#[inline(always)]
pub(crate) fn forgets(_mutant: Mutant) -> bool {
    #[cfg(test)]
    return ON.with(|on| on.get() == Some(_mutant));
    #[cfg(not(test))]
    false
}
