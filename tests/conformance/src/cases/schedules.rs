//! Sentences about schedules.

/// Adds its sentences to the earlier ones, and passes them all to the next table.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences_of_schedules {
    ([$($then:tt)+] { $($first:tt)* } $($before:tt)*) => {
        $crate::sentences_of_flows! {
            [$($then)+] { $($first)* }
            $($before)*
            catch_up {
                after_an_outage_last_fires_once_the_newest
                after_an_outage_all_fires_each_up_to_its_bound
                after_an_outage_none_fires_nothing_but_a_moment_of_the_last_minute
                skip_skips_while_a_job_of_it_is_unfinished
                queue_fires_as_soon_as_the_job_before_has_ended
                with_all_each_that_waits_fires_one_after_the_other
                run_now_makes_a_job_beside_the_plan
                run_now_answers_an_unfinished_job_and_makes_it_ready
                run_now_works_while_it_is_paused
            }
            schedule_changes {
                a_schedule_that_is_deleted_leaves_its_job_alone
                a_schedule_that_is_made_again_counts_its_old_job
                what_falls_into_a_pause_is_never_made_up
                a_pause_holds_for_cron_too
                a_change_of_the_timing_drops_what_was_due
                a_change_of_the_job_alone_moves_no_moment
                a_patch_changes_what_it_names_of_a_schedule
                next_in_moves_the_next_moment_once
                the_word_of_a_job_from_before_a_change_means_nothing
                next_in_beyond_the_end_ends_the_schedule
                a_clock_that_is_set_back_fires_no_moment_twice
                a_schedule_survives_a_crash
            }
            schedule_sets {
                a_sync_adds_updates_deletes_and_leaves_state_alone
                a_set_that_is_probably_not_meant_is_refused
                an_id_of_another_owner_refuses_the_whole_set
                one_bad_item_refuses_the_whole_set
                ten_thousand_intervals_are_spread_over_their_period
            }
            schedule_stats {
                stats_count_schedules_and_those_that_are_paused_now
                a_moment_that_waits_for_its_own_job_counts_as_due
            }
            schedules {
                a_schedule_makes_one_job_at_each_of_its_moments
                the_job_of_a_moment_has_an_id_made_of_both
                what_a_moment_makes_is_as_it_was_set
                a_moment_whose_id_is_taken_stores_nothing
                five_moments_are_shown_and_they_are_those_that_fire
                an_interval_with_a_start_has_its_moments_from_there
                an_interval_without_a_start_has_a_phase_of_its_own
                a_start_of_a_minute_ago_fires_at_once_and_an_older_one_does_not
                no_moment_lies_before_the_start_or_after_the_end
                a_schedule_past_its_end_is_shown_as_ended_and_stays
                jitter_moves_the_job_and_not_its_id
                the_job_of_a_moment_takes_the_defaults_of_that_moment
                a_job_whose_need_is_gone_by_the_moment_waits
                a_job_that_does_not_run_within_its_expires_in_is_cancelled
                a_full_queue_skips_the_moment_and_counts_it
                more_is_due_than_one_fire_decides
                schedules_are_listed_by_their_ids
                what_is_not_a_timing_is_refused_with_its_place
            }
        }
    };
}
