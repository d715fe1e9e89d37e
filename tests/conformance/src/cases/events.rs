//! Sentences about events and their readers.

/// Adds its sentences to the earlier ones, and passes them all to the next table.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_events {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_leases! {
            [$($then)+] { $($first)* }
            $($before)*
            events {
                every_change_of_a_job_is_an_event_in_order
                each_end_of_a_lease_has_its_event
                a_lost_lease_is_told_with_its_error
                what_becomes_of_a_waiting_job_is_told
                a_repeat_and_a_refused_call_make_no_event
                a_replaced_job_is_told_as_replaced
                a_head_that_lacks_a_need_is_told_once
                leases_without_a_job_are_told
                settings_that_change_are_told
                what_happens_to_resources_is_told
                what_happens_to_schedules_is_told
                jobs_of_a_flow_are_told_until_it_is_finished
                a_child_of_a_failed_parent_is_told_as_cancelled
                a_follow_up_is_told_before_the_end_of_its_job
                a_reader_that_comes_back_misses_nothing
                an_id_that_this_stream_never_had_is_answered_with_a_gap
                a_filter_that_matches_nothing_moves_the_reader_on
                events_are_read_by_what_they_are_about
                who_waits_for_events_gets_the_next
                a_wait_for_events_that_is_over_answers_none
                a_draining_engine_answers_readers_of_events
                nothing_of_what_jobs_carry_is_ever_in_an_event
                namespaces_have_streams_of_their_own
                totals_show_the_stream
            }
        }
    };
}
