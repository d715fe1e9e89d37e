//! Sentences about the needs of jobs and callers: limits, locks, pools.

/// Adds its sentences to the earlier ones, and passes them all to the next table.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_needs {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_whole! {
            [$($then)+] { $($first)* }
            $($before)*
            gaps {
                a_permit_rests_after_its_release
                a_heavy_lease_rests_with_its_weight
                each_permit_rests_by_itself
                a_released_job_rests_no_permit
                a_lease_without_a_job_always_rests_its_permit
                every_other_end_rests_the_permit
                resting_permits_count_under_a_lowered_cap
            }
            gauge_failures {
                a_gauge_that_cannot_be_read_keeps_its_last_value_until_it_is_stale_then_holds_or_keeps
                while_a_stale_reading_is_kept_a_rest_lasts_its_lag
                without_a_process_that_reads_the_reading_ages
                who_cannot_read_leaves_it_to_another
            }
            gauges {
                work_outside_takes_permits_as_soon_as_it_is_read
                a_start_that_the_gauge_does_not_show_yet_is_not_counted_twice_for_longer_than_lag
                a_run_that_ended_before_its_lease_did_never_lets_one_more_in
                a_run_whose_holder_died_is_counted_until_it_is_over
                a_jobs_own_lost_run_is_its_permit
                a_run_of_ones_own_is_no_way_past_the_rest_of_a_limit
                all_whose_worker_died_go_on_with_their_runs
                a_lost_run_waits_while_its_limit_is_over_its_cap_or_closed
                a_freed_permit_comes_back_with_the_next_reading_which_is_asked_at_once
                nothing_is_granted_on_a_limit_whose_gauge_was_just_set_before_it_was_read_once
                nothing_is_granted_after_an_idle_hour_before_the_gauge_was_read
                an_answer_to_an_old_claim_is_dropped_and_no_claim_is_made_while_one_is_open
                an_observation_of_a_limit_with_a_gauge_is_refused
                taking_the_gauge_away_ends_all_rests
                of_a_gap_and_a_reading_the_later_ends_the_rest
                of_ids_each_run_counts_that_no_live_lease_explains
                beside_the_next_run_of_its_job_a_dead_holders_run_counts
                a_password_in_a_gauges_address_is_nowhere_shown
                a_gauge_needs_a_concurrency_and_a_limit_of_its_own
                the_same_gauge_again_keeps_what_was_read
                nobody_reserves_a_limit_that_waits_for_a_reading
                rests_and_what_was_read_outlive_a_crash
            }
            payload_needs {
                a_queues_need_takes_a_field_of_each_payload
                a_payload_without_the_field_is_refused_by_name
                a_template_must_name_a_field_of_the_payload
                a_patched_job_gets_the_needs_of_its_new_payload
                a_schedules_jobs_have_the_needs_of_their_payload
            }
            quarantines {
                a_permit_rests_after_every_end_that_is_no_settle
                a_permit_that_was_settled_rests_no_quarantine
                of_gap_and_quarantine_the_later_end_counts
                who_waits_for_a_resting_permit_is_told_and_served
                a_quarantine_comes_with_a_template_and_needs_a_concurrency
                a_shorter_quarantine_cuts_rests_that_have_begun
                nobody_reserves_what_rests_alone_keep_closed
                a_quarantine_is_patched_shown_and_taken_away
                of_many_that_end_together_those_rest_that_nobody_settled
            }
            limits {
                never_more_than_the_cap_are_held
                several_are_granted_beside_work_outside
                weights_are_added_up
                a_lowered_cap_evicts_nobody_and_drains
                a_raised_cap_wakes_as_many_as_fit
                a_closed_limit_makes_jobs_wait
                a_weight_that_never_fits_any_more_leaves_the_line
                jobs_of_a_deleted_limit_wait_until_it_is_there_again
                a_queue_whose_own_limit_is_deleted_is_open
                what_was_held_counts_when_a_limit_is_back
                a_waiting_call_is_served_when_its_limit_is_made
                a_limit_shows_who_holds_it
                a_limit_shows_how_many_stand_in_its_line
                settings_are_put_whole_and_patched_by_name
                a_patch_that_leaves_nothing_is_refused
                a_patch_of_what_is_not_set_is_refused_and_makes_nothing
                a_limit_that_is_not_there_is_not_found
                work_outside_fills_a_limit
                an_observation_holds_for_so_long
                work_outside_beyond_the_cap_evicts_nobody
                a_second_delete_forgets_an_observation
                an_observation_of_a_deleted_limit_ends_in_a_day
            }
            place {
                groups_stand_in_a_line_by_their_turns
                shares_decide_the_places
                priorities_go_before_groups_in_a_line
                queues_of_one_line_take_turns_by_name
                a_ready_job_is_behind_those_that_are_granted_first
                a_group_that_had_turns_stands_behind_one_that_had_none
                a_caller_is_told_its_own_place
            }
            locks {
                a_lock_needs_no_preparation
                a_lock_is_not_reentrant
                the_template_of_locks_cannot_be_deleted_but_changed
                a_lock_of_its_own_is_a_semaphore
                jobs_and_callers_share_a_lock
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
                a_paused_limit_can_be_resumed
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
                a_patch_of_a_pool_that_is_not_there_is_refused_and_makes_nothing
                changed_settings_leave_the_resources
                a_pool_in_use_is_not_deleted
                a_pool_that_is_not_there_is_not_found
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
            sync {
                a_sync_makes_the_pool_and_says_what_it_did
                the_same_set_again_changes_nothing
                a_sync_keeps_leases_bans_cooling_and_uses
                what_a_sync_drops_and_names_again_is_banned_and_cools_as_before
                a_rest_goes_on_while_a_resource_is_not_there
                a_ban_is_forgotten_with_its_resource_by_hand_with_its_pool_and_in_time
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
        }
    };
}
