//! Sentences about jobs and their queues.

/// Adds its sentences to the earlier ones, and passes them all to the next table.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_jobs {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_schedules! {
            [$($then)+] { $($first)* }
            $($before)*
            cancel {
                a_job_that_waits_is_cancelled_at_once
                a_cancelled_job_may_be_cancelled_again
                a_job_that_ended_otherwise_cannot_be_cancelled
                a_running_job_is_told_by_the_next_extend
                the_end_of_a_cancelled_run_is_what_the_contract_says
                a_last_attempt_stands_against_a_cancel
                a_timeout_of_a_cancelled_run_ends_in_cancelled
                a_cancelled_job_is_found_by_its_key
                many_are_cancelled_by_a_filter
            }
            debounce {
                a_key_with_within_is_not_moved_beyond_it
                a_moment_beyond_within_that_is_over_is_now
                the_push_that_replaces_says_its_own_bound
                a_first_push_keeps_a_delay_longer_than_within
                a_wait_that_begins_anew_is_bounded_anew
                within_without_replace_is_shown_and_has_no_effect
                a_throttled_key_takes_one_push_in_its_window
                a_debounced_key_runs_once_after_the_last_push
            }
            delete_job {
                a_deleted_job_is_forgotten
                a_finished_job_can_be_deleted
                a_running_job_cannot_be_deleted
                a_deleted_job_passes_its_turn_on
            }
            expiry {
                a_job_that_does_not_run_in_time_is_cancelled
                a_running_job_does_not_expire
                a_job_that_waits_for_its_next_attempt_expires
                what_expires_passes_its_turn_on
            }
            explain {
                a_scheduled_job_waits_for_its_moment
                a_ready_job_is_behind_others
                a_ready_job_has_no_worker
                all_workers_are_busy
                a_paused_queue_is_named
                a_full_limit_is_named_with_its_holders
                holders_are_shown_up_to_a_number
                a_rate_says_when_the_next_token_is_there
                a_taken_pool_is_named_with_its_holders
                a_cooling_pool_says_when_the_first_is_back
                a_resource_that_is_not_there_is_explained_as_its_pool
                work_outside_is_named
                a_running_job_names_its_lease
                a_finished_job_waits_for_nothing
                asking_why_changes_nothing
            }
            failures {
                failures_are_grouped_by_queue_kind_and_error
                failures_are_asked_for_by_queue_kind_and_time
                a_job_that_is_retried_or_deleted_is_no_failure
                a_failed_job_that_others_wait_for_is_a_failure
                many_failures_are_counted_page_by_page
            }
            lists {
                jobs_are_listed_newest_first_in_pages
                a_page_is_not_disturbed_by_a_new_job
                a_page_ends_when_it_has_bytes_enough
                jobs_are_filtered
                filtered_pages_leave_nothing_out
                lists_leave_payload_and_result_out_unless_asked
                everything_else_is_listed_by_name
                leases_are_filtered
                workers_are_those_of_the_last_minute
                a_worker_is_forgotten_after_a_minute
                totals_are_right
            }
            many {
                jobs_are_found_by_a_part_of_their_last_error
                jobs_are_found_by_when_they_ended
                failures_are_retried_by_their_error_and_time
                a_label_with_colons_is_found
                a_bulk_call_goes_on_where_it_stopped_and_ends
                a_bulk_call_looks_at_ten_thousand_jobs
                more_than_a_portion_is_changed_in_one_call
                a_bulk_delete_passes_over_what_runs
                a_bulk_delete_frees_ids_and_keys
                a_bulk_cancel_counts_a_running_job_once
                a_bulk_call_passes_over_states_that_it_cannot_change
                a_bulk_retry_passes_over_a_job_whose_key_is_taken
                a_cancel_retry_or_delete_without_a_filter_is_refused
                a_bulk_call_changes_only_what_matches_in_its_step
            }
            traces {
                the_holder_is_told_the_trace_of_the_push
                jobs_of_a_large_push_keep_their_traces
                a_patch_keeps_the_trace_and_a_replacement_brings_its_own
                a_trace_survives_a_crash
            }
            patch {
                a_patch_changes_what_it_names
                null_in_a_patch_is_the_default
                a_job_is_rescheduled
                a_job_rescheduled_to_now_is_ready
                a_new_priority_changes_the_order
                new_needs_free_a_blocked_job_and_its_line
                a_patch_is_checked_like_a_push
                a_job_that_runs_or_is_finished_cannot_be_changed
                a_job_is_changed_by_its_key
            }
            push {
                a_job_has_the_defaults_of_the_contract
                a_job_is_shown_as_it_was_pushed
                an_id_that_is_there_is_answered_with_that_job
                a_finished_job_keeps_its_id
                an_array_is_answered_in_its_order
                an_array_is_shown_as_it_is_stored
                an_array_is_stored_whole_or_not_at_all
                the_same_id_twice_in_an_array_is_one_job
                the_same_key_twice_in_an_array_is_one_job
                a_replacement_in_an_array_never_moves_to_another_queue
                an_array_with_a_taken_key_that_rejects_stores_nothing
                a_short_answer_has_the_ids
                a_moment_in_the_past_is_now
                a_delayed_job_waits_for_its_moment
                a_push_says_when_nobody_asks_for_its_queue
                what_can_never_be_is_refused_at_the_push
                the_hint_of_a_cost_above_the_burst_names_the_burst
                what_just_fits_is_taken
                what_a_limit_has_not_is_ignored
                a_full_queue_refuses_more
                an_array_that_overfills_a_queue_is_refused_whole
                needs_given_replace_those_of_the_queue
                defaults_of_a_queue_are_copied_at_the_push
                namespaces_share_nothing
            }
            queues {
                a_queue_exists_from_its_first_use
                a_queue_that_nobody_needs_is_forgotten_in_a_day
                a_put_replaces_all_settings
                a_patch_changes_what_it_names
                a_patch_of_a_queue_that_is_not_there_is_refused_and_makes_nothing
                jobs_are_counted_by_state
                the_oldest_ready_job_is_shown
                workers_of_a_queue_are_those_of_the_last_minute
                a_queue_with_unfinished_jobs_is_not_deleted
                a_deleted_queue_has_no_settings_left
                a_limit_named_after_a_queue_holds_for_all_its_jobs
                a_queue_limit_frees_with_its_jobs
                a_queue_limit_may_be_a_rate
            }
            results {
                the_result_of_a_finished_job_is_shown_at_once
                a_job_that_is_not_finished_has_no_result_yet
                who_waits_for_a_result_gets_it_when_the_job_ends
                a_wait_goes_on_through_attempts_and_snoozes
                who_waits_for_a_job_with_retain_zero_gets_its_result
                each_end_of_a_job_that_is_waited_for_is_kept_a_while
                one_of_many_that_end_together_is_waited_for
                a_wait_that_is_over_answers_the_state_as_it_is
                a_job_that_is_deleted_while_somebody_waits_is_not_found
                a_key_means_the_job_that_held_it_when_it_was_asked
                many_wait_for_one_job
                a_caller_who_is_gone_waits_for_no_result
                a_wait_that_ends_late_shows_what_its_tick_has_opened
                a_draining_engine_answers_with_what_is_there
                ten_thousand_and_one_waits_are_one_too_many
            }
            retention {
                failures_are_kept_longer_than_the_rest
                a_stated_retain_holds_for_every_end
                what_is_not_retained_is_gone_at_once
                an_id_is_free_when_its_job_is_gone
                what_waits_is_kept_for_ever
            }
            retry {
                a_failed_job_is_made_ready_with_its_errors
                a_cancelled_job_is_made_ready
                a_job_that_succeeded_or_runs_cannot_be_retried
                only_the_end_that_is_meant_is_retried
                a_retry_takes_its_key_again
                a_retry_of_a_job_whose_key_is_taken_is_refused
                a_retried_job_is_retained_anew
                many_are_retried_by_a_filter
            }
            run_now {
                a_scheduled_job_is_made_ready
                a_job_that_needs_no_push_is_left_alone
                a_finished_job_is_not_run_now
                run_now_wakes_a_waiting_worker
            }
            unique {
                keep_answers_the_job_that_is_there
                a_key_is_held_in_every_state_until_the_end
                a_key_is_free_after_every_end
                a_key_until_start_is_free_when_its_first_run_begins
                two_may_run_when_a_key_ends_at_the_start
                a_key_is_held_for_so_long_in_any_case
                a_key_is_held_longer_than_its_time_while_the_job_is_there
                a_key_is_held_on_when_its_job_is_gone
                reject_names_the_job_that_is_there
                two_of_one_array_with_one_key_are_one_job_even_if_they_reject
                a_repeat_by_id_is_no_conflict
                replace_gives_the_job_that_is_there_the_new_content
                replace_starts_the_attempts_again
                replace_frees_a_blocked_job
                replace_of_a_running_job_keeps_it
                replace_across_queues_is_refused
                a_key_belongs_to_the_namespace
                a_job_is_named_by_the_key_that_it_holds_now
                a_reminder_is_set_moved_and_called_off_by_its_key
                a_key_until_start_comes_back_with_a_grant_that_nobody_received
                a_key_until_start_that_another_took_meanwhile_stays_with_it
                a_key_until_start_comes_back_within_its_time_too
            }
        }
    };
}
