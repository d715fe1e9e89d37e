//! What an audit of the store found: the library names a finding and what it is about, the sentences are here.
//!
//! They are about the inside of a store on Redis, so they are no part of `tenure_core::sentences`. A finding is a list:
//! its name, then in their order what fills the braces of its row. What is named in one is a list of the same form,
//! such as `["lane", 7]`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// What is wrong.
pub(crate) const FINDINGS: &[(&str, &str)] = &[
    ("dangling", "{}: what it points to is not there ({})"),
    ("sum_differs", "{}: {} are cached, {} are"),
    ("set_size_differs", "{} of {} says {} and has {}"),
    ("set_small_with_key", "{} of {} is small and has a key"),
    ("set_unordered", "{} of {} is out of order"),
    ("timer_differs", "the timer {} of {} is at {}, and should be at {}"),
    ("wait_differs", "the wait of {} is looked at {}, and is over at {}"),
    ("not_parked_there", "{}: {} under {} is not parked there"),
    ("in_other_line", "{}: {} stands in another line"),
    ("group_in_order_only", "{}: group {} is in order and not there"),
    ("group_unordered", "{}: group {} is out of order"),
    ("of_other_group", "{}: {} is of another group"),
    (
        "could_be_served",
        "{}: {} stands there and could be served; its timer is at {}, now is {}, {} steps are left",
    ),
    ("unsure_pending", "{} does not know whether it is pending"),
    ("limit_missing", "{}: its limit is not there"),
    ("unknown_to_pool", "{}: the pool does not know it"),
    ("door_empty", "{}: nothing stands there"),
    ("aside_early", "{}: {} is put aside in a round that has not begun"),
    ("not_aside", "{}: {} is not put aside there"),
    ("again_not_pending", "{}: an entry is to be tried again, and the door is not pending"),
    ("line_missing", "{}: the line of queue {} is not there"),
    ("line_sum_differs", "{}: {} of queue {} wait there, {} are cached"),
    ("not_held_up", "{}: queue {} is not held up there"),
    ("awaits_no_offer", "{} waits for {}, which is not offered"),
    ("door_sum_differs", "{}: {} wait, {} are cached"),
    ("key_of_nobody", "{} is held by nobody"),
    ("key_of_other_job", "{} is held by another job"),
    ("key_not_held_by_job", "{} is held by a job that does not hold it"),
    ("key_of_gone_job", "{} is held by the life of a job that is not there"),
    ("kept_for_ever", "{} is remembered for ever"),
    ("replaced_other_job", "{} is remembered as one that replaced another job"),
    ("waits_unknown_to_queue", "{} waits for a queue that does not know it"),
    ("in_no_list", "{} is in no list"),
    ("awaited_and_ended", "{} is waited for, and it is not there or has ended"),
    ("not_counted_at_queue", "{} is not counted at queue {}"),
    ("calls_differ", "{}: {} calls wait, it says {}"),
    ("parcels_unsent", "{} has read {} parcels and was sent {}"),
    ("holds_nothing", "{} holds nothing"),
    ("leases_differ", "{}: {} leases are cached, {} are"),
    ("suspects_differ", "{}: {} suspects are cached, {} are"),
    ("run_overdrawn", "{}: more have left its first run than it had"),
    ("list_begins_gone", "{}: its list begins with an entry that is gone"),
    ("list_ends_late", "{}: its list ends after its last entry"),
    ("list_count_differs", "{}: {} were put into its list, it says {}"),
    (
        "line_parts_differ",
        "{}: {} stand in it with {} aside and {} gone; there are {} in the list, {} aside, {} gone",
    ),
    ("empty_with_list", "{} is empty and has a list"),
    ("short_with_list", "{} is short and has a list"),
    ("line_length_differs", "{}: {} stand in it, it says {}"),
    ("line_unordered", "{} is out of order"),
    ("caller_not_standing", "{}: the caller {} does not stand there"),
    ("caller_not_found", "{}: the caller {} is not found"),
    ("job_not_waiting", "{}: the job {} does not wait there"),
    ("empty_at_door", "{} is empty and stands at a door"),
    ("at_missing_door", "{} stands at a door that is not there"),
    ("aside_in_no_list", "{} is put aside and in no list"),
    ("parked_under_other", "{} is parked under {}, its head is {}"),
    ("parked_in_no_line", "{} is parked and in no line"),
    ("offered_by_unknowing_door", "{} is offered by a door that does not know it"),
    ("known_by_key_only", "{} is known by its key and not there"),
    ("other_key", "{} is known by another key"),
    ("bundle_missing", "{} is of a bundle that is not there"),
    ("parked_and_ordered", "{} is parked and in the order"),
    ("ordered_by_other", "{} is ordered by {}, its head is {}"),
    ("not_in_bundle", "{} is not in its bundle"),
    ("unsure_marked", "{} does not know whether it is marked"),
    ("marked_for_other_head", "{} is marked for another head"),
    ("lane_not_open", "{}: lane {} is not open there"),
    ("lane_not_offered", "{}: lane {} is not offered"),
    ("bundle_sum_differs", "{}: {} wait in it, it says {}"),
    ("not_in_group", "{} is not in its group"),
    ("known_by_name_only", "{} is known by its name and not there"),
    ("other_name", "{} is known by another name"),
    ("bundle_not_open", "{}: bundle {} is not open there"),
    ("no_turns", "{} takes turns in no priority"),
    ("not_in_order", "{} is not in its order"),
    ("unsure_idle", "{} does not know whether it is idle"),
    ("idle_with_bundles", "{} is idle and has bundles"),
    ("busy_without_bundle", "{} has no bundle and is not idle"),
    ("not_found_by_name", "{} is not found by its name"),
    ("queue_calls_differ", "{}: {} calls wait for it, it says {}"),
    ("virtual_time_behind", "{}: nothing waits in priority {}, and the virtual time is {} of {}"),
    ("groups_kept_for_nothing", "{}: groups are remembered for nothing"),
    ("groups_differ", "{}: {} groups of priority {}, it says {}"),
    ("unknown_to_door", "{} stands at a door that does not know it"),
    ("count_differs", "{} says {} {}, and there are {}"),
    ("waiting_jobs_differ", "{}: {} wait in its lines, {} jobs do"),
    ("blocked_differ", "{}: {} blocked are cached, {} stand at doors"),
    ("known_by_words_only", "{} is known by its words and not there"),
    ("other_words", "{} is known by other words"),
    ("more_live_than_jobs", "{}: {} live jobs of {}"),
    ("shape_jobs_differ", "{}: {} jobs have it, it says {}"),
    ("shape_live_differ", "{}: {} live jobs have it, it says {}"),
    ("lane_missing", "{}: its lane is not there"),
    ("lane_without_job", "{} has a lane and no live job"),
    ("queue_missing", "{}: its queue is not there"),
    ("expiring_range_missing", "a run range expires that is not there"),
    ("expires_without_lease", "{} expires and does not live"),
    ("expiry_differs", "{} ends at {}, its timer is at {}"),
    ("fence_too_high", "{} is above the fence of the namespace"),
    ("held_limit_unknowing", "{} holds the limit {}, which does not know it"),
    ("held_resource_unknowing", "{} holds {} of pool {}, which does not know it"),
    ("holds_idle_job", "{} holds a job that does not run"),
    ("request_forgotten", "{}: its request is not remembered"),
    ("held_by_nobody", "{}: nobody holds it"),
    ("in_no_lane", "{} is in no lane"),
    ("in_no_line", "{} is in no line"),
    ("runs_without_lease", "{} runs under no lease"),
    ("lease_without_run", "{} has a lease and does not run"),
    ("key_not_held", "{} does not hold its unique key"),
    ("finished_with_lease", "{} is finished and has a lease"),
    ("not_found_by_id", "{} is not found by its id"),
    ("number_not_given", "{} has a number that was not given"),
    ("shape_missing", "{}: its shape is not there"),
    ("kept_range_missing", "a range of finished jobs is to be forgotten and is not there"),
    ("block_rows_differ", "{}: its block has {} rows"),
    ("texts_cut_off", "{}: its texts are cut off"),
    ("range_missing", "{}: row {} is in a run range that is not there"),
    ("range_rows_differ", "{}: a run range of it has {} rows, it says {}"),
    ("row_written_twice", "{}: row {} is written by itself and in the block"),
    ("rows_differ", "{} has {} rows, it says {}"),
    ("life_without_row", "{}: row {} has a life and is not there"),
    ("part_without_row", "{}: row {} has a part and is not there"),
    ("holder_holds_not", "{}: its holder {} does not hold it"),
    ("in_use_differs", "{}: {} in use is cached, {} is held"),
    ("resting_differs", "{}: resting permits differ"),
    ("kept_for_unmarked", "{} is kept for a lane that is not marked"),
    ("resource_missing", "{}: its resource {} is not there"),
    ("more_holders_than_slots", "{} has more holders than slots"),
    ("free_in_no_set", "{} is free, and in no set of free resources"),
    ("free_by_mistake", "{} is in the sets of free resources, and is not free"),
    ("free_misplaced", "{} is in the wrong place of what is free"),
    ("tag_misplaced", "{} is in the wrong place of its tag"),
    ("data_missing", "{} has no data"),
    ("kept_for_unknowing", "{} is kept for a lane that does not know it"),
    ("tag_unused", "{} is of no resource"),
    ("tag_count_differs", "{}: {} have it, it says {}"),
    ("door_missing", "{}: a door of it is not there"),
    ("pool_waiting_differs", "{}: {} wait at its doors, it says {}"),
    ("not_kept", "{}: {} is not kept"),
    ("schedule_missing", "{}: its schedule {} is not there"),
    ("gauge_unknown", "{} and its gauge do not know each other"),
    ("gauge_of_unset", "{} has a gauge and is not set"),
    ("gauge_stranded", "{}: its gauge is wanted and never read"),
    ("gauge_due_and_claimed", "{}: its gauge is due although it is being read"),
    ("schedule_stranded", "{} has moments, and stands in no order"),
    ("schedule_ordered_idle", "{} has no moment, and stands in an order"),
    ("awaits_no_job", "{} waits for no job"),
    ("fires_at_other", "{} fires at {}, and is next due at {}"),
    ("plan_unordered", "{}: its plan is not ascending from its cursor"),
    ("kept_for_no_job", "{} is deleted, and kept for no job"),
    ("makes_no_job", "{}: the job that it makes is not there"),
    ("unknown_to_owner", "{} is not in the set of its owner {}"),
    ("unfinished_differ", "{}: {} unfinished jobs are cached, {} are"),
    ("owned_differ", "{} has {} schedules, and {} are there"),
    ("pending_door_missing", "a door that is not there is pending"),
    ("ended_and_not_telling", "{} has ended, with {} open edges, and nobody is told"),
    ("edge_to_nobody", "{} has an open edge to {}, which does not wait for it"),
    ("telling_differs", "{} stands elsewhere among those whose end is told"),
    ("tells_nobody", "the end of {} is told, and nobody waits for it"),
    ("parent_without_row", "{}: others wait for it, and it is not there"),
    ("held_differs", "{} is kept for its {} followers, or is not, by mistake"),
    (
        "held_failed_differs",
        "{} is counted as a failed job that is kept for others, or is not, by mistake",
    ),
    ("held_for_nobody", "{} is kept without end, and nobody names it"),
    ("follower_unknown", "{} names the job of row {}, which does not know it"),
    ("followers_differ", "{}: {} followers are cached, {} are"),
    ("dependent_differs", "{} has {} open edges, and its state says otherwise"),
    ("parents_missing", "{}: the list of its parents is not there"),
    ("flow_unknowing", "{} belongs to the flow {}, which does not know it"),
    ("cancelling_differs", "{} does not know whether it is called off"),
    ("members_differ", "{}: {} jobs are cached, {} are"),
    ("event_missing", "the event {} is missing"),
    ("edges_differ", "{}: {} open edges are cached, {} are"),
];

/// What a finding is about.
pub(crate) const THINGS: &[(&str, &str)] = &[
    ("job", "job {}"),
    ("job_row", "the job of row {}"),
    ("lease", "lease of fence {} (job row {})"),
    ("lease_alone", "lease of fence {}"),
    ("some_lease", "a lease"),
    ("finished_jobs", "the finished jobs"),
    ("chunk", "chunk {}"),
    ("shape", "shape {}"),
    ("queue", "queue {}"),
    ("callers", "the queue of callers"),
    ("group", "group {}"),
    ("bundle", "bundle {}"),
    ("lane", "lane {}"),
    ("limit", "limit {}"),
    ("pool", "pool {}"),
    ("resource", "resource {} of pool {}"),
    ("tag", "the tag {} of pool {}"),
    ("door_of_limit", "the door of limit {}"),
    ("door_of_pool", "the door of pool {}"),
    ("door_of_tag", "the door of tag {} of pool {}"),
    ("door_of_resource", "the door of resource {} of pool {}"),
    ("unique_key", "the unique key {}"),
    ("request", "the request {}"),
    ("replacing", "the push {} that replaced a job"),
    ("stub", "the stub {}"),
    ("place", "the place {}"),
    ("waiting_call", "the waiting call {}"),
    ("awaited_job", "the end of the job of row {}"),
    ("awaited_flow", "the end of the flow {}"),
    ("flow", "the flow {}"),
    ("worker", "worker {}"),
    ("schedule", "schedule {}"),
    ("owner", "owner {}"),
    ("process", "the process {}"),
    ("holder", "holder {}"),
    ("namespace", "the namespace"),
    ("record", "the record {} of kind {}"),
    ("named", "the name {} in {}"),
    ("order", "the order"),
    ("marks", "the marks"),
    ("lines", "the lines"),
    ("entries_aside", "the list of entries aside"),
    ("group_entries", "the list of a group"),
    ("offered_lanes", "the list of offered lanes"),
    ("idle_groups", "the list of idle groups"),
    ("holders", "the list of holders"),
    ("resting_permits", "the list of resting permits"),
    ("gauge_rests", "the list of permits that wait for a reading"),
    ("gauge_doubts", "the list of permits that wait for a reading after an end that was no settle"),
    ("resources", "the list of resources"),
    ("free_resources", "the list of free resources"),
    ("doors", "the list of doors"),
    ("pending_doors", "the list of pending doors"),
    ("open_edges", "the list of open edges"),
    ("told_children", "the list of told children"),
    ("unfinished_members", "the list of unfinished jobs"),
    ("members", "the list of jobs"),
    ("in_all_queues", "the jobs of all queues that are {}"),
    ("blocked_by_doors", "blocked jobs by doors"),
    ("waiting_for_pools", "jobs and callers that wait for pools"),
    ("ids_of_jobs", "ids of jobs"),
    ("jobs_by_shapes", "jobs by shapes"),
    ("live_jobs_by_shapes", "live jobs by shapes"),
    ("scheduled_timers", "scheduled jobs and their timers"),
    ("failed_in_order", "finished jobs that failed"),
    ("finished_in_order", "other finished jobs"),
    ("failed_bytes", "bytes of failed jobs"),
    ("finished_bytes", "bytes of other finished jobs"),
    ("live_leases", "leases"),
    ("event_bytes", "bytes of events"),
    ("last_event", "numbers of events"),
    ("leases_without_job", "leases without a job"),
    ("leases_by_holders", "leases by holders"),
    ("permits", "permits in use and held"),
    ("held_resources", "held resources"),
    ("resources_by_tags", "resources by tags"),
    ("free_by_tags", "free resources by tags"),
    ("deadlines", "deadlines"),
    ("door_timers", "timers of doors"),
    ("limit_timers", "timers of limits"),
    ("gauges_by_limits", "gauges, by their limits"),
    ("gauges_that_are_read", "gauges that are to be read"),
    ("resource_timers", "timers of resources"),
    ("lines_at_doors", "lines at doors"),
    ("groups_at_doors", "groups at doors"),
    ("lanes_by_bundles", "lanes by bundles"),
    ("shapes_by_lanes", "shapes by lanes"),
    ("bundles_by_groups", "bundles by groups"),
    ("turns", "turns"),
    ("queues_by_name", "queues by name"),
    ("limits_by_name", "limits by name"),
    ("pools_by_name", "pools by name"),
    ("workers", "workers"),
    ("worker_timers", "timers of workers"),
    ("waiting_calls", "calls that wait"),
    ("result_waiters", "calls that wait for results"),
    ("awaited_jobs", "jobs whose end is waited for"),
    ("awaited_timers", "registrations of waiting calls and their ends"),
    ("open_edges_by_parents", "open edges by parents and by children"),
    ("parents", "jobs that others wait for"),
    ("held_failed", "failed jobs that are kept for others"),
    ("followers", "followers by parents and by children"),
    ("told_ends", "ends that are told"),
    ("leaving_jobs", "jobs that let their parents go"),
    ("untold_ends", "a namespace with ends that are to be told"),
    ("flows_by_name", "flows by name"),
    ("users_of_needs", "users of limits and pools"),
    ("keys_that_end", "unique keys that end"),
    ("requests", "requests"),
    ("replacing_pushes", "pushes that replaced a job"),
    ("stubs", "stubs"),
    ("places", "places"),
    ("unfinished_by_schedules", "unfinished jobs by schedules"),
    ("schedules_by_id", "schedules by id"),
    ("jobs_that_schedules_make", "jobs that schedules make"),
    ("schedules_that_fire", "schedules and their order"),
    ("schedules_that_want_plans", "schedules that want plans and their order"),
    ("schedules_that_wait", "schedules that wait for a job and their order"),
];

/// A finding, a thing, or a value in one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Told {
    /// None is there.
    Nothing,
    Number(f64),
    /// Somebody's name; also bytes that are no text.
    Name(String),
    Named(Vec<Told>),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self {
            Told::Nothing => return f.write_str("none"),
            Told::Number(number) => return write!(f, "{number}"),
            Told::Name(name) => return write!(f, "{name:?}"),
            Told::Named(all) => all,
        };
        let (name, rest) = match all.split_first() {
            Some((Told::Name(name), rest)) => (name.as_str(), rest),
            _ => ("", all.as_slice()),
        };
        let mut rows = FINDINGS.iter().chain(THINGS);
        let text = rows.find(|(known, _)| *known == name).map(|(_, text)| *text);
        let Some(text) = text.filter(|text| text.matches("{}").count() == rest.len()) else {
            // Of another release: all that it says is told.
            f.write_str(name)?;
            return rest.iter().try_for_each(|told| write!(f, " {told}"));
        };
        let mut pieces = text.split("{}");
        f.write_str(pieces.next().unwrap_or_default())?;
        pieces.zip(rest).try_for_each(|(piece, told)| write!(f, "{told}{piece}"))
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ToldVisitor)
    }
}

struct ToldVisitor;

// A double holds every number that Lua has.
#[allow(clippy::cast_precision_loss)]
impl<'de> Visitor<'de> for ToldVisitor {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a finding")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Told, E> {
        Ok(Told::Nothing)
    }
    fn visit_unit<E>(self) -> Result<Told, E> {
        Ok(Told::Nothing)
    }
    fn visit_u64<E>(self, number: u64) -> Result<Told, E> {
        Ok(Told::Number(number as f64))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Told, E> {
        Ok(Told::Number(number as f64))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Told, E> {
        Ok(Told::Number(number))
    }
    fn visit_str<E>(self, name: &str) -> Result<Told, E> {
        Ok(Told::Name(name.to_owned()))
    }
    fn visit_bytes<E>(self, name: &[u8]) -> Result<Told, E> {
        Ok(Told::Name(String::from_utf8_lossy(name).into_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Told, A::Error> {
        let mut all = Vec::new();
        while let Some(told) = seq.next_element()? {
            all.push(told);
        }
        Ok(Told::Named(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, rest: &[Told]) -> Told {
        let all = std::iter::once(Told::Name(name.to_owned())).chain(rest.iter().cloned());
        Told::Named(all.collect())
    }

    #[test]
    fn a_finding_is_a_sentence() {
        let name = |name: &str| Told::Name(name.to_owned());
        let lease = named("lease", &[Told::Number(255.0), Told::Number(16.0)]);
        let differs = [name("e"), lease, Told::Nothing, Told::Number(1_800_000_000_000_000.0)];
        for (told, said) in [
            (named("in_no_lane", &[named("job", &[name("a\"b")])]), "job \"a\\\"b\" is in no lane"),
            (
                named("timer_differs", &differs),
                "the timer \"e\" of lease of fence 255 (job row 16) is at none, and should be at 1800000000000000",
            ),
            (named("of_tomorrow", &[Told::Number(1.0)]), "of_tomorrow 1"),
            (named("in_no_lane", &[]), "in_no_lane"),
        ] {
            assert_eq!(told.to_string(), said);
        }
    }

    #[test]
    fn a_finding_is_read_whatever_its_bytes_are() {
        // A name of one byte that is no UTF-8, as the library packs it.
        let packed = [0x92, 0xa3, b'j', b'o', b'b', 0xa1, 0xff];
        let told: Told = rmp_serde::from_slice(&packed).unwrap();
        assert_eq!(told.to_string(), "job \"\u{fffd}\"");
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = FINDINGS.iter().chain(THINGS).map(|(name, _)| name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]));
    }
}
