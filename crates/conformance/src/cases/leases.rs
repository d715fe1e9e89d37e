//! Sentences about leases: given, kept, ended, lost, repeated.

/// Adds its sentences to those before, and hands them all on to the next.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_leases {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_needs! {
            [$($then)+] { $($first)* }
            $($before)*
            extend {
                an_extended_lease_lives_a_ttl_from_then
                an_extend_may_give_another_ttl
                many_leases_are_extended_in_one_call
                an_empty_extend_is_answered_empty
                progress_is_shown_while_the_job_runs
                a_lease_cannot_be_extended_far_beyond_its_deadline
                a_lease_of_needs_is_extended_like_any_other
            }
            force_lease {
                a_lease_taken_by_force_blames_nobody
                a_lease_taken_by_force_puts_resources_into_quarantine
                a_lease_that_is_not_there_cannot_be_taken
                force_wakes_who_waits
            }
            lease {
                nothing_to_give_is_an_empty_answer
                an_empty_answer_says_when_it_may_change
                a_job_is_granted_to_one
                a_lease_says_what_is_held
                a_worker_without_a_name_is_anonymous
                fences_rise_with_every_grant
                a_fence_is_not_changed_by_an_extend
                a_call_gets_as_many_as_there_are
                a_call_gets_no_more_than_it_asks_for
                a_call_gets_no_more_bytes_than_one_answer_carries
                a_call_gets_no_more_than_the_needs_allow
                a_thousand_jobs_are_taken_in_one_call
                queues_are_tried_in_the_order_given
                a_queue_whose_jobs_are_blocked_is_passed_over
                a_blocked_job_does_not_stand_in_the_way
            }
            lost {
                a_dead_holder_loses_its_lease_and_only_then
                a_suspect_waits_longer_with_each_loss
                a_queue_says_how_long_a_lost_job_waits
                a_lost_job_that_waits_for_nothing_keeps_its_place
                the_reap_that_reaches_max_lost_fails_the_job
                any_accepted_settle_sets_lost_to_zero
                a_lease_without_a_job_is_reaped_too
                a_worker_is_given_one_suspect_at_a_time
                a_lease_that_was_never_delivered_counts_nowhere
                a_worker_that_asked_once_more_before_it_died_is_found_out
                three_leases_in_a_row_that_were_never_delivered_count_as_one_lost
                a_settle_ends_a_row_of_leases_that_were_never_delivered
                a_lease_that_was_extended_was_delivered
                a_reaped_job_may_be_retried_by_hand_and_starts_anew
            }
            needs_alone {
                a_lease_of_needs_has_no_job
                who_gets_nothing_is_told_why
                needs_that_can_never_be_are_refused
                callers_are_served_in_the_order_of_their_asking
                a_newcomer_does_not_overtake_a_caller
                callers_and_jobs_have_their_turns_in_one_line
                callers_of_different_needs_do_not_wait_for_each_other
                a_place_is_kept_for_a_while_after_the_wait
                a_place_is_kept_under_the_first_request_of_a_wait
                a_place_is_not_kept_for_ever
                what_frees_is_not_held_for_who_is_not_there
                a_wait_that_is_over_is_answered_empty
                a_wait_that_ends_in_the_tick_that_frees_is_granted
                a_line_has_an_end
            }
            outcomes {
                succeeded_keeps_the_result
                failed_is_tried_again_after_the_backoff
                a_final_failure_is_not_tried_again
                the_last_attempt_fails_for_good
                attempts_without_end_are_tried_without_end
                the_waits_between_attempts_grow_as_stated
                jitter_lies_between_half_the_wait_and_the_whole
                a_stated_retry_replaces_the_backoff
                a_stated_retry_does_not_add_attempts
                a_snooze_costs_no_attempt
                a_snooze_may_name_its_moment
                a_release_costs_nothing
                attempts_count_what_succeeded_or_failed
                a_long_error_is_cut_and_its_end_kept
            }
            progress {
                progress_is_shown_in_lists_and_stays_until_the_next_report
                any_outcome_may_report
                many_that_succeed_may_report_and_have_results
                progress_stays_into_the_next_runs
                replace_takes_progress_away
                progress_of_a_lease_that_is_lost_changes_nothing
                progress_of_a_lease_without_a_job_means_nothing
                progress_of_four_kibibytes_is_kept_whole
                a_snooze_may_start_the_attempts_again
                progress_of_a_job_that_is_gone_does_not_come_back
            }
            repeats {
                the_same_settle_again_answers_the_same
                a_repeated_settle_answers_the_first_whatever_the_job_did_since
                another_outcome_for_a_settled_lease_is_told
                a_settle_is_forgotten_with_its_job
                a_lease_without_a_job_is_remembered_for_a_minute
                a_repeated_release_does_not_release_the_next_holder
                a_repeated_settle_stores_its_follow_ups_once
                a_repeated_settle_corrects_a_rate_once
                a_repeated_lease_call_gets_the_same_leases
                a_repeated_call_for_needs_gets_the_same_lease
                a_request_is_remembered_while_its_leases_live
                an_answer_without_a_grant_is_not_remembered
                a_repeated_token_is_taken_once
                setting_and_pausing_twice_is_setting_once
                a_repeated_delete_says_that_it_is_gone
            }
            replacing {
                a_repeat_while_the_job_runs_stores_no_second_job
                a_repeat_after_the_end_stores_no_second_job
                a_repeat_does_not_bring_older_content_back
                a_repeat_does_not_move_a_job
                a_repeat_of_a_push_that_revived_a_job_changes_nothing
                a_push_that_comes_twice_in_one_call_replaces_once
                a_follow_up_that_replaced_is_remembered
                a_repeat_says_what_is_known_of_a_job_that_is_gone
                a_push_that_replaced_is_remembered_for_a_minute
                more_pushes_are_forgotten_than_one_tick_carries
                a_job_of_that_id_goes_before_what_is_remembered
                a_push_that_kept_what_is_there_is_not_remembered
                what_its_own_call_cancelled_is_not_replaced
                children_may_wait_for_a_push_that_is_repeated
            }
            settle {
                a_late_settle_changes_nothing
                a_foreign_settle_changes_nothing
                a_settled_lease_is_lost_to_extends
                settles_are_answered_in_their_order
                a_follow_up_meets_the_keys_that_are_held_at_its_turn
                an_empty_settle_is_answered_empty
                a_lease_without_a_job_takes_succeeded_or_released
                a_lease_without_a_job_can_neither_fail_nor_snooze
                a_snooze_until_now_is_refused_and_nothing_is_settled
                follow_ups_are_stored_with_the_settle
                follow_ups_of_a_lost_lease_are_not_stored
                follow_ups_of_a_settle_that_was_made_otherwise_are_not_stored
                a_follow_up_that_is_refused_refuses_the_settle
                a_settle_with_a_follow_up_frees_the_key_first
                a_follow_up_may_take_the_id_of_a_job_that_goes_with_its_end
                a_follow_up_under_its_own_id_is_a_duplicate_while_its_job_is_there
                a_follow_up_takes_the_id_of_a_job_that_went_in_the_same_call
                follow_ups_of_a_job_that_goes_with_its_end_are_stored_or_refused_together
                follow_ups_of_one_key_are_one_job_also_where_one_takes_the_settled_id
                a_settle_wakes_the_first_of_the_line
            }
            settle_and_lease {
                settles_and_a_lease_call_are_answered_together
                a_settle_without_a_lease_call_is_answered_without_leases
                no_settles_and_a_lease_call_are_a_lease_call
                what_a_settle_frees_is_granted_in_the_same_call
                what_a_settle_pushes_or_gives_back_is_granted_in_the_same_call
                a_lock_that_is_given_back_is_granted_again_in_the_same_call
                whoever_waited_before_goes_first
                a_line_for_needs_is_not_jumped_by_settling
                the_answer_comes_with_the_first_grant
                a_wait_in_vain_ends_with_the_settles
                needs_in_vain_are_told_why
                settles_stand_when_their_caller_is_gone
                the_same_call_again_answers_the_same_and_grants_nothing
                a_repeat_does_not_get_what_it_settles
                the_same_call_while_the_first_waits_takes_over
                a_lease_call_that_is_refused_leaves_the_settles
                settles_that_are_refused_ask_for_nothing
                a_settle_that_comes_too_late_asks_all_the_same
                a_token_is_taken_after_a_settle
                an_engine_that_drains_settles_and_grants_nothing
                many_are_settled_and_granted_in_one_call
            }
            timeout {
                a_run_that_takes_too_long_fails
                the_last_run_that_takes_too_long_fails_for_good
                a_holder_that_dies_before_the_deadline_is_lost
                each_run_has_the_whole_time
                a_timeout_puts_resources_into_quarantine
            }
            verdicts {
                a_resource_is_cooled_by_its_holder
                a_resource_is_banned_by_its_holder
                no_verdict_is_ok
                a_verdict_of_a_late_settle_changes_nothing
                a_limit_is_paused_by_its_holder
                a_holder_cannot_shorten_a_pause
            }
            waiting {
                a_push_wakes_a_waiting_worker
                a_push_wakes_one_and_no_more
                many_pushes_wake_as_many
                a_call_never_waits_to_be_filled
                what_becomes_due_wakes_a_waiting_worker
                a_wait_for_jobs_ends_with_its_time
                any_queue_of_a_call_wakes_it
                a_lost_job_wakes_a_waiting_worker
                a_second_call_under_one_request_takes_over
                a_second_call_for_needs_takes_the_place_over
                a_second_call_that_does_not_wait_ends_the_first
                a_second_call_for_needs_that_does_not_wait_ends_the_first
                a_caller_who_is_gone_gets_nothing
                many_callers_who_are_gone_poison_nothing
                a_caller_of_needs_who_is_gone_holds_nothing
                a_grant_that_is_undone_counts_nowhere
                a_grant_that_somebody_got_is_not_undone
                a_drained_engine_takes_no_more_callers
            }
        }
    };
}
