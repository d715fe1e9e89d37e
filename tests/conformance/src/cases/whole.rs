//! Sentences about the whole: order, fairness, time, crashes, the audit.

/// Adds its sentences to the earlier ones, and passes them all to the macro that uses them.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_whole {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $($then)+! {
            { $($first)* }
            $($before)*
            all_or_nothing {
                what_waits_holds_nothing
                looking_consumes_no_tokens
                everything_returns_in_one_step
                opposite_orders_of_needs_do_not_deadlock
            }
            at_once {
                a_bad_push_harms_no_other
                pushes_that_are_repeated_at_once_are_the_same_jobs
                pushes_at_once_show_each_its_own_job
                of_pushes_at_once_one_takes_the_key
                pushes_at_once_fill_a_queue_to_its_bound
                a_push_that_is_given_up_harms_no_other
                a_bad_settle_harms_no_other
                of_settles_at_once_one_ends_the_lease
                extends_at_once_are_answered_apart
            }
            audit {
                an_audit_checks_what_there_is
                an_audit_changes_nothing
            }
            crowd {
                many_workers_run_each_job_once_and_never_more_than_the_cap
                what_frees_at_once_serves_as_many_as_fit
                a_hundred_queues_at_one_door_are_all_served
                many_callers_pass_a_lock_on
                a_lock_excludes_while_callers_come_and_go
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
                a_group_that_ran_alone_owes_nothing
                a_group_owes_nothing_after_a_batch_that_emptied_its_queue
                a_group_that_waits_at_a_need_keeps_the_turns_of_others
                a_batch_shares_like_single_calls
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
                a_push_that_replaced_is_known_after_a_crash
                the_order_of_a_queue_survives
                lines_are_served_after_a_crash
                shares_go_on_after_a_crash
                the_past_of_a_job_survives
                a_cancel_that_was_asked_for_survives
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
            time {
                time_in_which_the_engine_was_deaf_does_not_count
                a_lease_reaped_after_deafness_counts
                a_sign_of_life_after_deafness_makes_a_reap_count
                what_is_due_after_a_leap_is_started
                more_is_due_than_one_tick_carries
                more_leases_die_than_one_tick_carries
                a_clock_that_leaps_ahead_ends_no_lease_early
                leaps_in_a_row_end_no_lease_early
                a_clock_that_drifts_is_not_taken_for_one_that_leaps
                a_clock_that_steps_back_a_little_stops_nothing
                a_clock_that_steps_back_far_is_accepted_once
                a_clock_that_steps_back_far_reaps_whom_it_should
            }
        }
    };
}
