//! What every store must do, by verb.

pub mod insert;

pub mod lease;
pub mod sweep;
pub mod change;
pub mod deadlines;
pub mod kinds;
pub mod list;
pub mod history;
pub mod books;
pub mod announce;
pub mod watch;
pub mod histories;
pub mod faults;

/// Expands into one named test for each case: `insert::answers_with_the_job_that_has_the_key`.
///
/// Takes the name of an `async fn() -> Subject` that opens a fresh, empty store.
#[macro_export]
macro_rules! store_conformance {
    ($open:ident) => {
        $crate::store_conformance! { @expand $open
            insert {
                stores_a_job_as_it_was_given,
            }
            lease {
                lists_a_holder_as_it_joined,
                joining_again_changes_nothing,
                the_dead_cannot_join_again,
                counts_renewals,
                the_unknown_cannot_renew,
                one_who_left_cannot_renew,
                one_who_was_buried_cannot_renew,
                one_whose_lease_ran_out_may_renew,
                a_renewal_tells_what_people_want,
                a_renewal_tells_a_batch_at_most,
                a_renewal_tells_the_fence_of_a_sticky_retry,
                a_renewal_tells_it_until_it_is_obeyed,
                leaving_ends_a_life,
                the_unknown_may_leave,
                a_silent_holder_is_buried_once,
                of_two_who_bury_one_succeeds,
                one_who_renewed_since_is_not_buried,
                one_whose_lease_runs_is_not_buried,
                the_dead_bury_nobody,
                a_renewal_and_a_burial_do_not_both_succeed,
                after_an_outage_nobody_is_buried,
                one_who_stays_silent_is_buried_after_a_lease_life,
            }
            sweep {
                takes_the_jobs_of_one_who_was_buried,
                takes_the_jobs_of_one_who_left,
                takes_the_jobs_of_the_unknown,
                leaves_the_jobs_of_the_living,
                takes_what_is_overdue_from_the_living,
                takes_a_sticky_retry_that_was_forgotten,
                frees_no_more_than_asked,
                keeps_due_and_attempt,
                makes_a_late_settlement_match_nothing,
                tells_what_it_freed,
                counts_only_recorded_starts,
                gives_up_a_job_that_takes_its_holders_with_it,
                obeys_the_cap_of_the_kind,
                never_gives_up_a_job_that_was_not_started,
                does_not_charge_the_innocent_for_the_poison,
                obeys_what_people_want,
                obeys_people_before_the_cap,
                drops_what_is_cancelled_where_nothing_is_kept,
                the_dead_sweep_nothing,
                two_who_sweep_free_each_job_once,
                finds_what_a_claim_took_during_the_burial,
                leaves_what_waits_for_its_due,
            }
            change {
                does_to_each_state_what_the_table_says,
                answers_for_each_in_order,
                doing_it_again_changes_nothing,
                a_leased_job_is_wanted_to_change,
                resuming_takes_back_a_wanted_pause,
                a_change_may_name_a_version,
                of_two_who_saw_the_same_version_one_wins,
                retrying_runs_it_now,
                retrying_a_paused_job_resumes_it,
                resuming_keeps_the_due,
                cancelling_ends_a_job,
                cancelling_a_dead_letter_ends_it,
                cancelling_keeps_nothing_where_nothing_is_kept,
                edits_what_it_is_told_to,
                edits_one_thing_at_a_time,
                edits_the_due_by_the_clock_of_the_store,
                another_priority_moves_it_to_another_lane,
                an_earlier_due_is_found_by_a_claim,
                a_leased_job_cannot_be_edited,
                a_payload_too_large_is_refused,
                the_key_remembers_what_was_submitted,
                redriving_keeps_what_was,
                retrying_a_dead_letter_redrives_it,
                redriving_needs_a_deadline_that_lies_ahead,
                retrying_past_the_deadline_needs_another,
                redriving_may_replace_the_deadline,
                success_stays_success,
                a_retry_is_stopped_whoever_comes_first,
                a_paused_retry_keeps_its_backoff,
                a_death_cannot_be_paused,
                an_edit_is_run_or_refused,
                a_cancel_and_a_success_agree,
                an_edit_and_a_claim_agree,
            }
            deadlines {
                ends_a_scheduled_job,
                ends_a_paused_job,
                ends_a_leased_job_after_the_grace_time,
                what_was_done_in_time_counts,
                ends_a_job_of_a_parked_kind,
                ends_a_job_of_a_paused_kind,
                ends_nothing_before_its_time,
                ends_no_more_than_asked,
                nothing_starts_after_its_deadline,
                a_missed_deadline_is_no_attempt,
                a_new_deadline_counts_afresh,
            }
            kinds {
                reads_kinds_as_they_were_written,
                writing_again_replaces_the_settings,
                writing_leaves_pause_and_park_alone,
                an_unknown_kind_is_not_found,
                a_paused_kind_gives_nothing,
                a_resumed_kind_goes_on,
                what_runs_in_a_paused_kind_is_settled,
                pausing_again_changes_nothing,
                writing_the_same_leaves_no_trace,
                a_parked_kind_gives_nothing,
                parking_needs_the_latest_generation,
                of_two_who_park_one_does,
                parking_again_frees_the_right_to_probe,
                probing_needs_a_parked_kind_and_a_living_prober,
                of_two_probers_one_wins,
                a_prober_gets_one_job_for_each_right,
                the_right_to_probe_dies_with_its_holder,
                time_never_unparks,
                an_unparked_kind_goes_on,
                unparking_needs_the_latest_generation,
                a_pause_outlives_a_park,
            }
            list {
                finds_a_job_in_every_state,
                keeps_what_a_job_says_in_every_state,
                finds_nothing_that_is_not_there,
                lists_the_newest_first,
                lists_everything_but_the_payload,
                pages_have_no_gaps,
                pages_have_no_gaps_while_jobs_move,
                a_cursor_survives_as_text,
                a_page_may_be_short_and_go_on,
                a_page_is_bounded,
                counts_what_the_filter_lets_through,
                counts_at_least_what_it_looked_at,
                tallies_by_kind_and_state,
                tallies_the_earliest_due,
                filters_by_state,
                filters_by_kind,
                filters_by_tenant,
                filters_by_category,
                filters_by_text,
                filters_by_text_in_any_case,
                filters_by_text_literally,
                filters_by_due,
                filters_by_creation,
                filters_by_all_of_it,
                filters_by_the_last_failure,
            }
            history {
                remembers_a_failed_attempt,
                remembers_attempts_in_order,
                remembers_attempts_across_a_redrive,
                remembers_attempts_across_a_takeover,
                numbers_a_snooze_like_what_follows,
                keeps_the_history_of_a_job_that_succeeded,
                tells_the_latest_of_a_long_history,
                logs_who_changed_what,
                logs_a_redrive,
                logs_what_an_edit_changed,
                logs_only_what_an_edit_changed,
                logs_what_is_wanted_of_a_leased_job,
                logs_nothing_that_was_refused,
                logs_what_was_done_to_a_kind,
                pages_the_log_from_its_end,
            }
            books {
                begin_empty,
                balance_after_every_verb,
                balance_after_a_deadline,
                do_not_count_what_was_not_stored,
                count_what_was_not_kept_as_pruned,
                count_what_was_given_back_cancelled_as_pruned,
                prune_deletes_what_ended_long_ago,
                prune_deletes_every_final_state,
                prune_keeps_dead_letters_and_the_living,
                prune_deletes_keys_in_their_own_time,
                prune_deletes_keys_of_jobs_that_are_gone,
                prune_keeps_the_key_of_a_redriven_job,
                prune_deletes_old_audit_entries,
                prune_forgets_the_long_dead,
                prune_deletes_no_more_than_asked,
                prune_adds_up_the_ledger,
            }
            announce {
                tells_a_dead_letter_until_it_was_announced,
                announcing_again_changes_nothing,
                tells_a_job_that_the_sweep_gave_up,
                tells_a_job_that_missed_its_deadline,
                tells_the_oldest_death_first,
                does_not_tell_what_is_no_longer_dead,
                tells_a_second_death,
                a_late_announcement_does_not_silence_a_second_death,
                an_edit_is_no_second_death,
            }
            watch {
                an_insert_wakes_one_who_waits,
                an_insert_wakes_one_who_waits_later,
                what_is_given_back_wakes,
                a_retry_that_is_let_go_wakes,
                a_sweep_wakes,
                what_people_let_run_wakes,
                what_people_want_wakes,
                a_change_of_a_kind_wakes,
                every_watcher_is_woken,
                many_changes_wake_a_few_times,
                a_wait_that_was_dropped_loses_nothing,
            }
            histories {
                a_claim_that_arrives_after_its_holder_is_forgotten,
                a_claim_whose_reply_is_lost,
                a_sticky_retry_that_is_repeated,
                a_fence_that_two_holders_name,
                a_poison_job_beside_a_thousand,
                a_store_that_was_away,
                a_direct_insert_that_must_wait,
                a_kind_whose_prober_dies,
                a_change_while_another_runs_it,
                a_dead_letter_of_long_ago,
                a_key_that_two_submit,
                a_flush_with_what_databases_refuse,
                a_crash_before_the_announcement,
                a_prune_that_crashes,
                a_deadline_that_nobody_would_meet,
            }
            faults {
                an_insert_happens_once,
                a_direct_insert_happens_once,
                a_lost_claim_is_found_and_given_back,
                a_success_happens_once,
                a_success_that_is_not_kept_happens_once,
                a_retry_happens_once,
                a_retry_repeated_late_changes_nothing,
                a_sticky_retry_happens_once,
                a_death_happens_once,
                giving_back_happens_once,
                a_change_happens_once,
                a_change_with_a_version_happens_once,
                a_renewal_may_be_repeated,
                a_start_may_be_repeated,
                a_sweep_may_be_repeated,
                a_closed_store_says_so,
                one_bad_job_does_not_hold_up_an_insert,
                one_bad_job_does_not_hold_up_a_flush,
            }
        }
    };
    (@expand $open:ident $($group:ident { $($case:ident),+ $(,)? })+) => {
        $(mod $group { $(
            #[tokio::test]
            async fn $case() {
                let subject = super::$open().await;
                $crate::conformance::$group::$case(&subject).await;
            }
        )+ })+
    };
}
