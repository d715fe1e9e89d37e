//! The letters by which the store and the library's answers say what something is: states, outcomes, kinds of needs, of
//! records, of keys. Each is written here, and nowhere else.
//!
//! The Lua says `STATE.ready`, and gets the letter when the library is put together ([`spelled`]), so that a name costs
//! nothing in the server. Rust says `state::ready`, or asks the type that the letters stand for. The same holds for the
//! places of fields in a list ([`positions`]): `need[NEED_AT.name]`. A change of a letter or of a place that is stored
//! is a change of the layout.

mod positions;
mod spelling;
#[cfg(test)]
mod tests;

use tenure_core::events::EventType;
use tenure_core::gauge::OnStale;
use tenure_core::job::{JobState, OnConflict, Outcome, Until};
use tenure_core::schedule::{CatchUp, Overlap};
use tenure_core::settings::ResourceState;

#[cfg(test)]
pub(crate) use positions::fields;
pub(crate) use spelling::spelled;

/// A name in a table of letters, and its letter.
type Letter = (&'static str, &'static str);

/// Makes the tables: for Lua, for Rust by name, and between the letters and a type whose values they stand for.
macro_rules! alphabet {
    ($(
        $(#[$about:meta])*
        $table:ident $module:ident $(($type:ident))? {
            $($name:ident $letter:literal $($value:ident)?,)+
        }
    )+) => {
        /// Each table as the Lua names it, with its rows.
        const TABLES: &[(&str, &[Letter])] = &[$((stringify!($table), &[$((stringify!($name), $letter)),+])),+];

        $(
            $(#[$about])*
            // Named as the Lua names them; the letters of one table are no more than the Lua needs.
            #[allow(non_upper_case_globals, dead_code, unused_imports)]
            pub(crate) mod $module {
                use super::*;
                $(pub(crate) const $name: &str = $letter;)+
                typed! { $(($type))? $($name $($value)?,)+ }
            }
        )+
    };
}

/// The functions of a table that stands for a type.
macro_rules! typed {
    (($type:ident) $($name:ident $value:ident,)+) => {
        /// The letter of a value.
        pub(crate) const fn letter(value: $type) -> &'static str {
            match value {
                $($type::$value => $name,)+
            }
        }

        /// The value of a letter.
        pub(crate) fn read(letter: &str) -> Option<$type> {
            match letter {
                $($name => Some($type::$value),)+
                _ => None,
            }
        }
    };
    ($($name:ident,)+) => {};
}

alphabet! {
    /// The state of a job.
    STATE state (JobState) {
        dependent "d" Dependent,
        scheduled "s" Scheduled,
        ready "w" Ready,
        blocked "b" Blocked,
        running "r" Running,
        succeeded "S" Succeeded,
        failed "F" Failed,
        cancelled "C" Cancelled,
    }

    /// How a run ended, or a lease without a job.
    OUTCOME outcome (Outcome) {
        succeeded "S" Succeeded,
        failed "F" Failed,
        snoozed "Z" Snoozed,
        released "R" Released,
        lost "L" Lost,
        undelivered "U" Undelivered,
    }

    /// The state of a resource.
    RESOURCE resource (ResourceState) {
        available "a" Available,
        cooling "c" Cooling,
        banned "b" Banned,
    }

    /// What a settle says of a resource.
    VERDICT verdict {
        fine "o",
        cool "c",
        ban "b",
    }

    /// The kind of a need.
    NEED need {
        limit "l",
        pool "p",
    }

    /// What a door begins with: what is lacked there.
    DOOR door {
        limit "l",
        pool "p",
    }

    /// What follows the name of the pool in a door for some of it.
    POOL_DOOR pool_door {
        tag "t",
        resource "i",
    }

    /// What an entry of a door or of an order begins with. It is the kind of its record as well.
    ENTRY entry {
        bundle "b",
        lane "l",
        queue "q",
    }

    /// What is to be looked at by a tick because it may be needed no more.
    TIDY tidy {
        queue "q",
        groups "g",
    }

    /// What a push does whose unique key is held.
    CONFLICT conflict (OnConflict) {
        keep "k" Keep,
        replace "r" Replace,
        reject "x" Reject,
    }

    /// Until when a job holds its unique key.
    UNTIL until (Until) {
        start "s" Start,
        finish "e" End,
    }

    /// How the wait after a failed attempt grows.
    BACKOFF backoff {
        exponential "e",
        fixed "f",
        list "l",
    }

    /// What becomes of a moment while a job of its schedule is unfinished.
    OVERLAP overlap (Overlap) {
        skip "s" Skip,
        queue "q" Queue,
        allow "a" Allow,
    }

    /// Which of several due moments fire.
    CATCH_UP catch_up (CatchUp) {
        none "n" None,
        last "l" Last,
        all "a" All,
    }

    /// What holds once the last reading of a gauge is stale.
    ON_STALE on_stale (OnStale) {
        keep "k" Keep,
        hold "h" Hold,
    }

    /// What the address of a gauge answers.
    GAUGE gauge {
        count "c",
        scrapyd "s",
    }

    /// What of a job lies beside its row: in a hash of its own, or, its life, in a field.
    PART part {
        result "r",
        progress "p",
        errors "e",
        parents "a",
        life "x",
    }

    /// What of a long line lies beside its list.
    LINE line {
        aside "r",
        gone "x",
    }

    /// Which of its bundles a group has two of: one of usual lanes, one of suspects.
    BUNDLE bundle {
        usual "n",
        suspect "s",
    }

    /// What the end is of that calls wait for, or that is told to children; and how many calls that are.
    AWAITED awaited {
        job "j",
        flow "f",
        total "t",
    }

    /// What stands before the name of a group, where it has one.
    NAMED named {
        group "g",
    }

    /// What a cursor begins with that says by which order it goes on.
    CURSOR cursor {
        by_expiry "x",
    }

    /// Keys of one letter.
    KEY key {
        meta "m",
        expiries "e",
        processes "pg",
    }

    /// The field of an entry in the stream of events.
    EVENT_FIELD event_field {
        entry "e",
    }

    /// Fields of a namespace's own key whose names are letters.
    META meta {
        space "s",
    }

    /// What happened. What follows the letters in an event are the fields of its type, in their order.
    EVENT event (EventType) {
        job_pushed "jp" JobPushed,
        job_replaced "jr" JobReplaced,
        job_changed "jc" JobChanged,
        job_deleted "jd" JobDeleted,
        job_ready "je" JobReady,
        job_blocked "jb" JobBlocked,
        job_granted "jg" JobGranted,
        job_succeeded "js" JobSucceeded,
        job_failed "jf" JobFailed,
        job_cancelled "ja" JobCancelled,
        job_retrying "jt" JobRetrying,
        job_snoozed "jn" JobSnoozed,
        job_released "jl" JobReleased,
        job_lost "jo" JobLost,
        job_cancel_requested "jq" JobCancelRequested,
        lease_granted "eg" LeaseGranted,
        lease_ended "ee" LeaseEnded,
        limit_changed "lc" LimitChanged,
        limit_deleted "ld" LimitDeleted,
        limit_paused "lp" LimitPaused,
        limit_resumed "lr" LimitResumed,
        limit_observed "lo" LimitObserved,
        gauge_failed "gf" GaugeFailed,
        gauge_read_again "gr" GaugeReadAgain,
        queue_changed "qc" QueueChanged,
        queue_deleted "qd" QueueDeleted,
        queue_paused "qp" QueuePaused,
        queue_resumed "qr" QueueResumed,
        pool_changed "pc" PoolChanged,
        pool_synced "ps" PoolSynced,
        pool_deleted "pd" PoolDeleted,
        resource_cooling "rc" ResourceCooling,
        resource_banned "rb" ResourceBanned,
        resource_restored "rr" ResourceRestored,
        resource_retired "re" ResourceRetired,
        schedule_changed "sc" ScheduleChanged,
        schedule_deleted "sd" ScheduleDeleted,
        schedule_fired "sf" ScheduleFired,
        schedule_skipped "ss" ScheduleSkipped,
        schedule_missed "sm" ScheduleMissed,
        schedule_moved "so" ScheduleMoved,
        schedule_ended "se" ScheduleEnded,
        schedule_paused "sp" SchedulePaused,
        schedule_resumed "sr" ScheduleResumed,
        flow_finished "ff" FlowFinished,
        clock_behind "cb" ClockBehind,
        engine_deaf "nd" EngineDeaf,
        engine_learning "nl" EngineLearning,
    }

    /// What happened to several jobs at once, in one item: they were granted, or succeeded.
    RUN_EVENT run_event {
        granted "g",
        succeeded "s",
    }

    /// The kinds of records.
    RECORD record {
        space "m",
        queue "q",
        queue_setting "qs",
        group "g",
        bundle "b",
        lane "l",
        mark "mk",
        shape "s",
        chunk "c",
        block "k",
        lease "lf",
        stub "st",
        request "rq",
        replacing "rp",
        unique_key "uk",
        holder "ho",
        worker "w",
        waiting_call "tk",
        awaited "aw",
        caller "ca",
        place "pl",
        limit "L",
        limit_setting "ls",
        gauge "gu",
        pool "p",
        resource "rs",
        tag "tg",
        sync "sy",
        door "d",
        door_line "dl",
        door_group "dg",
        schedule "sc",
        synced_set "ss",
        parent "pa",
        leaving "lv",
        flow "fl",
    }
}
