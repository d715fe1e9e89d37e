//! The table of all sentences; a sentence that is not in it does not compile, for it is never used.

use crate::run::Case;

/// Hands every `subject { sentence … }` to another macro, after what stands in the
/// braces; that macro's path stands in the brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! every_sentence {
    ([$($then:tt)+] { $($first:tt)* }) => {
        $($then)+! {
            { $($first)* }
            all_or_nothing {
                what_waits_holds_nothing
                looking_consumes_no_tokens
                everything_returns_in_one_step
                opposite_orders_of_needs_do_not_deadlock
            }
            audit {
                an_audit_checks_what_there_is
                an_audit_changes_nothing
            }
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
            crowd {
                many_workers_run_each_job_once_and_never_more_than_the_cap
                what_frees_at_once_serves_as_many_as_fit
                a_hundred_queues_at_one_door_are_all_served
                many_callers_pass_a_lock_on
                a_lock_excludes_while_callers_come_and_go
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
            gaps {
                a_permit_rests_after_its_release
                a_heavy_lease_rests_with_its_weight
                each_permit_rests_by_itself
                a_released_job_rests_no_permit
                a_lease_without_a_job_always_rests_its_permit
                every_other_end_rests_the_permit
                resting_permits_count_under_a_lowered_cap
            }
            groups {
                groups_share_turns_however_many_jobs_each_has
                in_every_few_turns_each_group_has_its_own
                shares_weigh_the_turns
                shares_are_read_at_the_grant
                jobs_without_a_group_are_one_group
                within_a_group_arrival_decides
                priority_goes_before_shares
                an_idle_group_gains_no_credit
                waiting_on_a_taken_need_earns_no_credit
                groups_take_turns_in_the_line_of_a_need
                a_batch_shares_like_single_calls
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
                a_call_gets_no_more_than_the_needs_allow
                a_thousand_jobs_are_taken_in_one_call
                queues_are_tried_in_the_order_given
                a_queue_whose_jobs_are_blocked_is_passed_over
                a_blocked_job_does_not_stand_in_the_way
            }
            limits {
                never_more_than_the_cap_are_held
                weights_are_added_up
                a_lowered_cap_evicts_nobody_and_drains
                a_raised_cap_wakes_as_many_as_fit
                a_closed_limit_makes_jobs_wait
                a_weight_that_never_fits_any_more_leaves_the_line
                jobs_of_a_deleted_limit_wait_until_it_is_there_again
                what_was_held_counts_when_a_limit_is_back
                a_waiting_call_is_served_when_its_limit_is_made
                a_limit_shows_who_holds_it
                a_limit_shows_how_many_stand_in_its_line
                settings_are_put_whole_and_patched_by_name
                a_patch_that_leaves_nothing_is_refused
                a_limit_that_is_not_there_is_not_found
                work_outside_fills_a_limit
                an_observation_holds_for_so_long
                work_outside_beyond_the_cap_evicts_nobody
            }
            lists {
                jobs_are_listed_newest_first_in_pages
                a_page_is_not_disturbed_by_a_new_job
                jobs_are_filtered
                filtered_pages_leave_nothing_out
                lists_leave_payload_and_result_out_unless_asked
                everything_else_is_listed_by_name
                leases_are_filtered
                workers_are_those_of_the_last_minute
                a_worker_is_forgotten_after_a_minute
                totals_are_right
            }
            locks {
                a_lock_needs_no_preparation
                a_lock_is_not_reentrant
                the_template_of_locks_cannot_be_deleted_but_changed
                a_lock_of_its_own_is_a_semaphore
                jobs_and_callers_share_a_lock
            }
            lost {
                a_dead_holder_loses_its_lease_and_only_then
                a_suspect_waits_longer_with_each_loss
                the_reap_that_reaches_max_lost_fails_the_job
                any_accepted_settle_sets_lost_to_zero
                a_lease_without_a_job_is_reaped_too
                a_worker_is_given_one_suspect_at_a_time
                a_lease_that_was_never_delivered_counts_nowhere
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
                a_line_has_an_end
            }
            order {
                priority_goes_before_arrival
                a_released_job_keeps_its_place
                the_second_release_in_a_row_waits_a_second
                a_lost_job_keeps_its_place
                a_snoozed_job_ranks_by_the_moment_it_became_due
                a_retried_job_ranks_by_the_moment_it_became_due
                a_delayed_job_ranks_by_the_moment_it_became_due
                a_blocked_job_keeps_its_place
                a_newcomer_does_not_overtake_for_the_same_need
                a_higher_priority_goes_first_in_a_line
                a_queue_without_a_worker_does_not_hold_up_a_line
                jobs_at_different_doors_do_not_wait_for_each_other
                a_thousand_blocked_jobs_do_not_delay_the_others
                many_different_blocked_needs_do_not_delay_the_others
                the_first_of_a_line_that_goes_away_passes_its_turn_on
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
            pauses {
                a_paused_queue_grants_nothing_and_takes_pushes
                a_queue_is_paused_for_a_while
                a_queue_is_paused_until_a_moment
                resuming_a_queue_wakes_its_workers
                pausing_a_queue_that_is_not_there_makes_it
                a_paused_queue_passes_nothing_on
                a_paused_limit_grants_nothing_before_its_moment
                of_two_pauses_of_a_limit_the_later_moment_holds
                a_limit_paused_without_end_waits_to_be_resumed
                a_limit_that_is_not_there_cannot_be_paused
                one_member_of_a_template_is_paused_alone
                pausing_ends_no_lease
            }
            pools {
                a_resource_has_one_holder_per_slot
                the_least_recently_used_is_next
                a_random_pick_is_a_free_one
                the_preferred_one_is_taken_if_it_is_free
                a_named_one_is_waited_for
                a_tag_narrows_the_choice
                several_are_different_ones
                a_count_above_what_there_is_waits_for_the_pool
                a_used_resource_cools_down
                quarantine_is_for_unclean_ends_only
                a_resource_that_is_used_up_is_banned
                each_resource_has_its_own_rate
                a_pool_counts_its_resources
                settings_are_put_whole_and_patched_by_name
                changed_settings_leave_the_resources
                a_pool_in_use_is_not_deleted
                a_pool_that_is_not_there_is_not_found
            }
            push {
                a_job_has_the_defaults_of_the_contract
                a_job_is_shown_as_it_was_pushed
                an_id_that_is_there_is_answered_with_that_job
                a_finished_job_keeps_its_id
                an_array_is_answered_in_its_order
                an_array_is_stored_whole_or_not_at_all
                the_same_id_twice_in_an_array_is_one_job
                the_same_key_twice_in_an_array_is_one_job
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
                a_put_replaces_all_settings
                a_patch_changes_what_it_names
                jobs_are_counted_by_state
                the_oldest_ready_job_is_shown
                workers_of_a_queue_are_those_of_the_last_minute
                a_queue_with_unfinished_jobs_is_not_deleted
                a_deleted_queue_has_no_settings_left
                a_limit_named_after_a_queue_holds_for_all_its_jobs
                a_queue_limit_frees_with_its_jobs
                a_queue_limit_may_be_a_rate
            }
            rates {
                without_a_burst_grants_are_evenly_spaced
                a_burst_goes_at_once_after_a_rest
                in_no_span_are_more_granted_than_stated
                a_cost_is_so_many_tokens
                a_cost_of_nothing_takes_nothing
                tokens_do_not_return_with_a_release
                a_refill_wakes_the_first_of_the_line
                a_changed_rate_keeps_what_was_consumed
                putting_the_same_rate_again_refills_nothing
                a_faster_rate_wakes_who_waits
                what_was_spent_more_makes_the_next_wait
                what_was_spent_less_is_given_back
                a_correction_wakes_who_waits
                a_correction_never_adds_to_the_burst
                a_token_leaves_no_lease
                a_token_is_waited_for
                only_rates_are_taken_without_a_lease
                several_rates_are_taken_together
            }
            reopen {
                jobs_survive_in_every_state
                leases_live_on_with_a_fresh_ttl
                a_holder_that_died_meanwhile_is_found_out
                fences_rise_across_a_crash
                settings_and_pauses_survive
                what_was_consumed_and_what_rests_survives
                pools_survive_with_their_states
                the_least_recently_used_is_still_next
                keys_survive
                repeats_are_known_after_a_crash
                the_order_of_a_queue_survives
                lines_are_served_after_a_crash
                shares_go_on_after_a_crash
                the_past_of_a_job_survives
                a_cancel_that_was_asked_for_survives
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
            reservation {
                a_heavy_job_is_not_starved_by_light_ones
                what_is_kept_is_kept_for_it
                what_is_beyond_a_reservation_is_free_for_all
                a_reservation_falls_when_its_job_is_called_off
                a_reservation_falls_when_nobody_asks_for_its_queue
                a_reservation_falls_when_its_queue_is_paused
                nothing_is_kept_before_patience_is_over
                a_resource_is_kept_too
                a_job_that_waits_for_a_moment_keeps_nothing
            }
            resources {
                secrets_are_in_a_lease_and_nowhere_else
                a_resource_shows_its_use
                a_banned_resource_is_not_handed_out
                a_cooling_resource_rests_until_its_moment
                restoring_ends_no_lease
                a_resource_is_patched_by_name
                fewer_slots_evict_nobody
                an_added_resource_wakes_who_waits
                adding_again_updates_and_keeps_the_state
                a_deleted_resource_goes_when_it_is_free
                a_resource_that_is_not_there_is_not_found
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
            settle {
                a_late_settle_changes_nothing
                a_foreign_settle_changes_nothing
                a_settled_lease_is_lost_to_extends
                settles_are_answered_in_their_order
                an_empty_settle_is_answered_empty
                a_lease_without_a_job_takes_succeeded_or_released
                a_lease_without_a_job_can_neither_fail_nor_snooze
                a_snooze_until_now_is_refused_and_nothing_is_settled
                follow_ups_are_stored_with_the_settle
                follow_ups_of_a_lost_lease_are_not_stored
                follow_ups_of_a_settle_that_was_made_otherwise_are_not_stored
                a_follow_up_that_is_refused_refuses_the_settle
                a_settle_with_a_follow_up_frees_the_key_first
                a_settle_wakes_the_first_of_the_line
            }
            sync {
                a_sync_makes_the_pool_and_says_what_it_did
                the_same_set_again_changes_nothing
                a_sync_keeps_leases_bans_cooling_and_uses
                a_sync_keeps_the_settings_of_the_pool
                new_data_is_for_the_next_lease
                a_retiring_resource_that_is_named_again_is_available
                an_empty_set_must_be_meant
                an_empty_set_makes_no_pool
                a_set_that_retires_most_must_be_meant
                the_older_of_two_masters_is_refused
                a_sync_wakes_who_waits_for_a_new_one
                a_set_of_thousands_is_one_set
            }
            templates {
                each_member_has_its_own_permits
                a_member_answers_the_settings_of_its_template
                a_limit_of_its_own_replaces_its_template_whole
                a_changed_template_is_for_those_who_wait
                what_a_member_holds_outlives_changes_of_its_setting
                without_a_template_a_member_is_unknown
                the_list_shows_what_is_set_and_what_is_in_use
                a_rate_of_a_template_is_each_members
            }
            time {
                time_in_which_the_engine_was_deaf_does_not_count
                a_lease_reaped_after_deafness_counts_towards_nothing
                a_sign_of_life_after_deafness_makes_a_reap_count
                what_is_due_after_a_leap_is_started
                more_is_due_than_one_tick_carries
                more_leases_die_than_one_tick_carries
                a_clock_that_steps_back_a_little_stops_nothing
                a_clock_that_steps_back_far_is_accepted_once
                a_clock_that_steps_back_far_reaps_whom_it_should
            }
            timeout {
                a_run_that_takes_too_long_fails
                the_last_run_that_takes_too_long_fails_for_good
                a_holder_that_dies_before_the_deadline_is_lost
                each_run_has_the_whole_time
                a_timeout_puts_resources_into_quarantine
            }
            unique {
                keep_answers_the_job_that_is_there
                a_key_is_held_in_every_state_until_the_end
                a_key_is_free_after_every_end
                a_key_until_start_is_free_when_its_first_run_begins
                two_may_run_when_a_key_ends_at_the_start
                a_key_is_held_for_so_long_in_any_case
                a_key_is_held_longer_than_its_time_while_the_job_is_there
                reject_names_the_job_that_is_there
                a_repeat_by_id_is_no_conflict
                replace_gives_the_job_that_is_there_the_new_content
                replace_starts_the_attempts_again
                replace_frees_a_blocked_job
                replace_of_a_running_job_keeps_it
                replace_across_queues_is_refused
                a_key_belongs_to_the_namespace
                a_job_is_named_by_the_key_that_it_holds_now
                a_reminder_is_set_moved_and_called_off_by_its_key
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
                a_caller_who_is_gone_gets_nothing
                many_callers_who_are_gone_poison_nothing
                a_caller_of_needs_who_is_gone_holds_nothing
                a_drained_engine_takes_no_more_callers
            }
        }
    };
}

macro_rules! table {
    ({} $($subject:ident { $($sentence:ident)* })*) => {
        vec![$($(Case {
            name: concat!(stringify!($subject), "::", stringify!($sentence)),
            run: |bench| Box::pin(crate::$subject::$sentence(bench)),
        }),*),*]
    };
}

/// Every sentence, by subject.
pub fn all() -> Vec<Case> {
    every_sentence!([table] {})
}

/// Writes one `#[test]` per sentence, in a module per subject, so that `cargo test` names the rule
/// that is broken. The argument is an expression that makes a [`Factory`](crate::Factory).
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::every_sentence!([$crate::tests_of_sentences] { $factory });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_sentences {
    ({ $factory:expr } $($subject:ident { $($sentence:ident)* })*) => {
        fn conformance_factory() -> impl $crate::Factory {
            $factory
        }
        $(mod $subject {
            $(#[test]
            fn $sentence() {
                let name = concat!(stringify!($subject), "::", stringify!($sentence));
                $crate::check(&super::conformance_factory(), name);
            })*
        })*
    };
}
