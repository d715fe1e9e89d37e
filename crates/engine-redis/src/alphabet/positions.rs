//! Where in a list of the store, or of a call, each field is, from 1 on.
//!
//! The Lua says `need[NEED_AT.name]`. Rust reads such a list by the order of a type; a test compares the two where the
//! list is stored.

/// The names of a list's fields, each with its place.
type Places = &'static [(&'static str, usize)];

macro_rules! positions {
    ($($(#[$about:meta])* $list:ident { $($name:ident $at:literal,)+ })+) => {
        pub(super) const POSITIONS: &[(&str, Places)] =
            &[$((stringify!($list), &[$((stringify!($name), $at)),+])),+];
    };
}

positions! {
    // A need of a limit or of a pool.
    NEED { kind 1, name 2, weight 3, cost 4, tag 3, prefer 4, id 5, count 6, }
    // What a lease holds of a limit, with what it booked of its rate; and of a pool.
    PERMIT { limit 1, weight 2, cost 3, }
    HELD { pool 1, id 2, }
    // `began` stands there once a push let the finished holder live again: when the wait began that `within` bounds.
    UNIQUE { key 1, ends 2, hold 3, on_conflict 4, within 5, began 6, }
    // What stands before the body of a row: a unique key, which schedule made the job, the flow that it belongs to.
    BEFORE_BODY { key 1, origin 2, flow 3, }
    ORIGIN { schedule 1, at 2, era 3, }
    // When a schedule fires, and what it makes.
    TIMING { cron 1, zone 2, every 3, starts_at 4, ends_at 5, jitter 6, }
    SCHEDULED {
        queue 1, priority 2, group 3, needs 4, retry 5, timeout 6, retain 7, expires_in 8, body 9, bytes 10,
    }
    RATE { count 1, per 2, burst 3, }
    // `base` and `most` are of exponential waits; others have one wait, or a list of them, in the place of `base`.
    RETRY { max_attempts 1, max_lost 2, kind 3, base 4, most 5, jitter 6, }
    // What a settle says of a resource, and of a limit.
    VERDICT { pool 1, id 2, word 3, lasts 4, till 5, reason 6, }
    LIMIT_VERDICT { limit 1, pause 2, spent 3, }
    // A job as a push brings it.
    NEW_JOB { id 1, b 2, body 3, bytes 4, shape 5, more 6, }
    // The rows of a block that were granted together, in what they have in common; and those that succeeded together.
    SPAN { base 1, rows 2, tail 3, fence 4, granted_at 4, finished_at 5, kept_until 6, }
    // Some of a span's rows that a call settles: the place of the first in its block and in the call, and its lease.
    SPAN_PART { at 1, many 2, place 3, fence 4, seq 5, }
    // How a run of a job was settled.
    SETTLED { fence 1, outcome 2, state 3, run_at 4, next_at 5, }
    // The bytes of finished jobs that are kept.
    KEPT { failed 1, others 2, }
    // Leases whose fences and row numbers follow each other.
    RUN { fence 1, seq 2, many 3, }
    // The calls of a process that wait for one end: how many, until when, and the number of their registration.
    AWAITS { proc 1, calls 2, till 3, number 4, }
    // A lease that is to be kept alive, and what its holder claims who lost it to a loss of the store.
    EXTEND { fence 1, seq 2, progress 3, claim 4, }
    CLAIM { ttl 1, timeout 2, holder 3, digest 4, limits 5, resources 6, }
    // What a caller knows of the store, what a process saw of its clock, and what its operator says of the namespace.
    KNOWS { never 1, kid 2, longest 3, stamp 4, age 5, }
    SIGHT { since 1, sure 2, }
    SPACE_SAID { patience 1, retain_bytes 2, first 3, events_bytes 4, }
    // In the namespace's record: who ticks, fences of which some may be forgotten, the family that is walked through.
    TICKER { proc 1, till 2, }
    GAP { fence 1, till 2, }
    FAMILY { name 1, at 2, }
    // What ticks carry on: any step, one that sets moments back, and one that tells the doors of a pool.
    STEP { kind 1, of 2, at 3, }
    BACK_STEP { kind 1, clock 2, part 3, cursor 4, run 5, }
    DOORS_STEP { kind 1, pool 2, told 3, ends_with 4, again 5, }
    // What a push does with a job: how it is planned, of which row or job of the call, and that one's id; and what is known
    // of it if the push replaced it before.
    PLAN { what 1, of 2, id 3, past 4, }
    // A job in an answer, and what a run of jobs was granted.
    // `cancelled`: in the answer of a retry, how many children its failure had cancelled.
    SHOWN {
        seq 1, state 2, row 3, life 4, shape 5, result 6, progress 7, errors 8, parents 9, cancelled 10,
    }
    SHOWN_RUN { granted_at 1, expires_at 2, deadline 3, shape 4, many 5, names 6, rows 7, limits 8, }
    // The life of a job, and in it what of its lease is beside the fence and the expiry.
    LIFE {
        state 1, arrival 2, run_at 3, expires_at 4, bytes 5, shape 6, fence 7, lease_expires_at 8, lease 9,
        started_at 10, wait 11, ended 12, lost 13, released 14, cancel 15, keeps 16, settles 17, error 18,
        finished_at 19, kept_until 20, lane 21, has_key 22, undelivered 23, kin 24, ended_unsettled 25,
    }
    // How a job stands to its parents: how many of its edges are open, which wait this is, whether any end of a parent
    // will do, whether it is above a flow, how many parents there are, and whether they count it among their followers.
    KIN { open 1, turn 2, runs 3, above 4, parents 5, follows 6, }
    // A parent of a job: its row and its id, no row if it was not there; or a flow.
    PARENT { row 1, id 2, flow 3, }
    LEASE {
        holder 1, granted_at 2, ttl 3, deadline 4, limits 5, resources 6, request 7, extended 8, again 9, seen_at 10,
        first 11, begins 12,
    }
}

/// The place of a field.
pub(super) fn position(list: &str, name: &str) -> Option<usize> {
    let (_, places) = POSITIONS.iter().find(|(known, _)| *known == list)?;
    places.iter().find(|(known, _)| *known == name).map(|(_, at)| *at)
}

/// The fields of a stored list in their order, each once.
#[cfg(test)]
pub(crate) fn fields(list: &str) -> Vec<&'static str> {
    let (_, places) = POSITIONS.iter().find(|(known, _)| *known == list).expect("a list");
    assert!(places.iter().map(|(_, at)| *at).eq(1..=places.len()), "{list}");
    places.iter().map(|(name, _)| *name).collect()
}
