//! Sentences about flows: jobs that wait for other jobs, and names for jobs that belong together.

/// Adds its sentences to the earlier ones, and passes them all to the next table.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_flows {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_events! {
            [$($then)+] { $($first)* }
            $($before)*
            flow_bulk {
                a_flow_is_retried_parents_first
                a_long_chain_is_retried_in_one_call
                a_bulk_retry_passes_over_what_cannot_live_again
                a_flow_is_cancelled_parents_first
                dependent_jobs_are_cancelled_by_their_state
                a_flow_is_deleted_children_first
            }
            flow_cancels {
                a_cancelled_flow_calls_off_what_waits_and_asks_what_runs_to_stop
                a_cancel_of_a_finished_flow_changes_nothing
                a_member_that_was_asked_to_stop_may_still_succeed
                a_large_flow_is_called_off_in_portions
                what_is_pushed_into_a_flow_while_it_is_called_off_is_cancelled
                who_waits_for_a_flow_gets_it_when_it_is_finished
                a_wait_for_a_flow_that_is_over_shows_it_as_it_is
                a_wait_for_a_flow_that_is_over_sees_what_ended_by_then
                a_cancelled_flow_answers_those_who_wait_for_it
                a_draining_engine_answers_those_who_wait_for_a_flow
            }
            flow_follow_ups {
                a_follow_up_may_wait_for_the_job_that_pushes_it
                a_follow_up_waits_for_the_last_attempt_of_its_job
                follow_ups_may_name_each_other
                follow_ups_around_the_end_of_their_job_are_one_call
                a_follow_up_with_a_bad_parent_refuses_the_settle
                what_a_call_alone_tells_is_refused_whatever_became_of_the_lease
                a_follow_up_belongs_to_the_flow_of_the_job_that_pushes_it
                a_flow_that_goes_on_by_follow_ups_is_finished_with_the_last
                follow_ups_of_a_job_above_a_flow_belong_to_none
            }
            flow_histories {
                counts_agree_and_nobody_is_stranded_after_any_history
                counts_agree_and_nobody_is_stranded_after_any_crash
            }
            flow_keeping {
                a_parent_is_kept_while_a_child_that_names_it_is_unfinished
                a_parent_that_was_kept_goes_when_its_own_time_is_over
                a_parent_that_ended_beside_others_is_kept_and_goes_when_they_go
                a_child_lets_its_parents_go_however_it_ends
                a_parents_result_is_there_when_its_child_runs
                a_job_that_others_wait_for_is_not_deleted
                dependent_jobs_are_counted_and_fill_their_queue
                a_queue_of_dependent_jobs_alone_is_kept
                the_oldest_ready_job_is_not_one_that_waits
                a_dependent_job_expires
                a_dependent_job_holds_its_key
                a_dependent_job_is_not_run_now
                a_dependent_job_is_changed_and_waits_on
            }
            flow_names {
                a_job_belongs_to_the_flow_that_it_states_or_inherits
                a_flow_is_there_while_a_member_is
                a_deleted_job_leaves_the_counts_of_its_flow
                a_job_that_waits_for_a_flow_starts_when_its_last_member_ends
                a_flow_that_failed_counts_as_a_failed_parent
                members_that_come_while_a_job_waits_for_the_flow_are_waited_for
                a_flow_whose_members_come_in_the_same_array_is_there
                a_flow_with_many_waiters_tells_them_in_portions
                a_flow_that_is_open_again_keeps_its_waiters
                flows_are_listed_by_their_names
            }
            flow_portions {
                a_parent_with_ten_thousand_children_tells_each_once
                at_least_a_portion_starts_in_the_step_of_the_end_and_the_rest_in_order
                a_failed_parent_cancels_all_its_children_in_portions
                who_is_not_told_yet_is_dependent_and_explain_says_why
                a_parent_that_has_not_told_all_is_not_retried
                a_bulk_retry_passes_over_a_parent_that_is_telling
                a_holder_that_is_replaced_keeps_those_waiting_that_it_has_not_told
                a_fan_in_of_five_thousand_starts_once_after_the_last
                a_flow_of_ten_thousand_jobs_ends_and_each_ran_after_its_parents
                parents_that_end_together_tell_in_the_order_of_their_ends
            }
            flow_refusals {
                a_child_of_an_unknown_parent_is_refused
                an_unknown_parent_is_taken_with_gone_done
                what_was_taken_as_done_stays_done
                jobs_that_wait_for_each_other_are_refused
                a_ref_names_one_item_of_its_call
                a_call_has_a_bound_for_its_parents
                a_refused_array_stores_nothing_of_its_flow
                a_waiter_for_a_flow_belongs_to_none
                a_duplicate_belongs_to_a_flow_only_if_the_job_that_is_there_does
                flows_that_nobody_knows_are_refused
            }
            flow_reopen {
                jobs_that_wait_survive_a_crash
                a_crash_between_an_end_and_the_last_child_told_loses_nobody
                a_crash_loses_nobody_who_waits_for_a_flow
                a_parent_is_kept_across_a_crash_until_its_children_have_ended
                parents_are_let_go_after_a_crash
                a_flow_survives_a_crash
                a_flow_that_is_called_off_is_so_after_a_crash
                a_retried_child_waits_once_after_a_crash
            }
            flow_retries {
                a_retried_child_waits_again_for_parents_that_are_unfinished
                a_retry_answers_how_many_children_its_failure_cancelled
                a_retried_child_whose_parent_is_failed_is_refused_and_names_it
                a_parent_that_is_gone_counts_as_done_at_a_retry
                a_retried_child_keeps_its_parents_anew
                a_child_that_is_cancelled_and_retried_starts_once
                a_retried_parent_leaves_its_children_as_they_are
                a_replaced_holder_that_was_finished_waits_for_nobody
                a_retried_member_is_unfinished_in_its_flow_again
                a_retry_looks_at_the_flow_of_a_child_anew
                a_member_that_would_wait_for_a_flow_is_not_retried
            }
            flow_views {
                a_dependent_job_is_explained_by_its_parents
                the_parents_of_a_job_are_shown_in_their_order
                a_page_of_parents_ends_when_it_has_bytes_enough
                waiting_kin_is_shown_as_it_stands
                the_children_of_a_job_are_listed_as_they_were_pushed
                jobs_are_found_by_their_flow_and_their_schedule
            }
            flows {
                a_child_starts_in_the_step_in_which_its_last_parent_succeeds
                the_end_of_a_parent_wakes_a_waiting_worker
                a_child_of_a_finished_parent_is_ready_at_once
                a_child_arrives_when_its_last_parent_ends
                jobs_of_one_array_may_name_each_other_in_any_order
                a_duplicate_in_an_array_stands_for_the_job_that_is_there
                the_same_parent_twice_is_one
                a_parent_is_named_by_the_key_that_it_holds
                a_parent_that_fails_for_good_cancels_its_children_and_theirs
                a_parent_that_will_be_retried_cancels_nobody
                a_child_that_says_run_starts_after_any_end_of_its_parents
                a_parent_that_expires_is_cancelled_or_dies_as_poison_failed
                the_first_failed_parent_cancels_a_child_while_the_others_run
                a_cancelled_child_does_not_wake_when_its_parents_end
                a_child_of_a_failed_parent_is_cancelled_at_its_push
                a_replaced_child_waits_on_for_the_same_parents
                a_delayed_child_waits_for_its_parents_and_its_moment
            }
        }
    };
}
