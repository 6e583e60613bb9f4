//! What every store must do, by verb.

pub mod insert;
pub mod keys;
pub mod direct;
pub mod lanes;
pub mod claim;
pub mod settle;
pub mod give_back;
pub mod start;
pub mod held;

/// Expands into one named test for each case: `insert::answers_with_the_job_that_has_the_key`.
///
/// Takes the name of an `async fn() -> Subject` that opens a fresh, empty store.
#[macro_export]
macro_rules! store_conformance {
    ($open:ident) => {
        $crate::store_conformance! { @expand $open
            insert {
                stores_a_job_as_it_was_given,
                stores_everything_that_a_job_says,
                stores_any_bytes_as_payload,
                answers_in_the_order_of_the_jobs,
                answers_when_a_job_is_due,
                takes_an_empty_batch,
                refuses_a_kind_that_nobody_named,
                refuses_a_deadline_that_has_passed,
                refuses_a_deadline_before_the_due,
                refuses_a_payload_that_is_too_large,
                stores_the_others_when_one_is_refused,
                stores_nothing_when_one_is_refused,
                stores_all_where_none_is_refused,
                stores_a_thousand_jobs_at_once,
                takes_a_due_in_the_past,
                takes_a_due_in_the_far_future,
                wakes_a_watcher,
                knows_jobs_that_are_sent_again,
                knows_a_leased_job_that_is_sent_again,
                knows_a_finished_job_that_is_sent_again,
                stores_what_is_missing_of_a_batch_sent_again,
                knows_a_job_with_a_key_that_is_sent_again,
                knows_a_job_sent_again_after_its_deadline,
                rejects_a_known_id_that_is_sent_first,
            }
            keys {
                answers_with_the_job_that_has_the_key,
                only_the_payload_must_be_the_same,
                knows_the_key_of_a_job_at_work,
                knows_the_key_of_a_dead_letter,
                remembers_how_a_job_ended,
                outlives_a_job_that_is_not_kept,
                knows_a_job_sent_again_after_it_is_gone,
                refuses_another_payload,
                tells_tenants_apart,
                tells_kinds_apart,
                tells_look_alikes_apart,
                jobs_without_a_key_are_never_duplicates,
                answers_within_a_batch,
                stores_nothing_of_a_batch_that_reuses_a_key,
                a_refused_job_takes_no_key,
                keeps_the_payload_that_was_submitted,
                creates_one_job_for_racing_inserts,
                expires_a_while_after_the_end,
                stands_for_the_second_job_when_used_again,
                outlives_a_pruned_job,
                does_not_expire_before_the_end,
                does_not_expire_with_a_dead_letter,
                stays_with_a_redriven_job,
                expires_after_a_person_cancelled_the_job,
                is_free_at_once_where_it_is_not_kept,
            }
            direct {
                leases_a_new_job_at_once,
                is_overdue_by_the_jobs_own_timeout,
                is_overdue_from_now_where_the_due_has_passed,
                leases_several_of_one_batch,
                leases_nothing_of_a_paused_kind,
                leases_nothing_of_a_parked_kind,
                does_not_overtake_an_older_due_job,
                looks_at_its_own_lane_only,
                waits_for_due_jobs_only,
                leases_nothing_to_the_dead,
                leases_nothing_that_is_due_later,
                does_not_lease_the_job_of_a_duplicate,
                leases_nothing_where_nothing_is_stored,
                keeps_the_lease_of_an_insert_sent_again,
                is_settled_like_a_claim,
                is_swept_when_the_holder_dies,
                is_swept_when_it_is_overdue,
            }
            lanes {
                come_in_their_order,
                are_read_page_by_page,
                are_read_on_from_behind_an_empty_lane,
                are_those_of_the_kinds_asked_for,
                tell_the_earliest_due,
                move_on_when_the_first_is_claimed,
                are_left_out_without_scheduled_jobs,
                are_there_again_when_a_job_comes_back,
            }
            claim {
                skips_jobs_that_are_not_due,
                takes_what_is_due_within_the_horizon,
                gives_a_job_to_only_one_claimer,
                gives_each_job_to_one_of_racing_claimers,
                takes_the_job_that_was_due_first,
                takes_the_job_that_was_stored_first,
                grows_the_fence,
                changes_nothing_but_the_lease,
                brings_the_whole_job_along,
                fails_for_the_dead,
                works_for_the_silent_that_nobody_buried,
                skips_jobs_whose_deadline_has_passed,
                tells_what_is_left_until_the_deadline,
                is_overdue_by_the_jobs_own_timeout_first,
                is_overdue_from_the_due_where_that_is_later,
                takes_from_the_lane_it_visits,
                skips_jobs_that_are_not_scheduled,
                keeps_to_the_limit_of_a_visit,
                keeps_to_the_limit_of_all_visits,
                visits_lanes_in_the_order_given,
                goes_on_behind_an_empty_lane,
                takes_nothing_without_visits,
                takes_nothing_of_a_paused_kind,
                takes_nothing_of_a_parked_kind,
                gives_the_prober_one_job,
                gives_the_prober_no_second_job,
                keeps_the_right_to_probe_until_there_is_a_job,
                gives_the_prober_nothing_of_a_paused_kind,
            }
            settle {
                ends_a_job_that_succeeded,
                lets_a_job_wait_for_its_retry,
                keeps_why_a_job_waits,
                counts_no_attempt_for_a_snooze,
                keeps_a_dead_letter_for_a_person,
                ends_a_job_that_failed,
                lets_a_job_wait_for_a_person,
                ends_a_job_that_was_cancelled,
                keeps_a_sticky_retry_with_its_holder,
                settles_each_sticky_retry_under_its_own_fence,
                keeps_the_last_failure_of_a_job,
                keeps_what_a_job_was_given_up_for,
                leaves_nothing_of_a_job_that_is_not_kept,
                keeps_a_job_for_as_long_as_was_said,
                answers_in_the_order_of_the_items,
                settles_a_thousand_at_once,
                takes_no_items,
                grows_the_version,
                takes_a_success_after_the_deadline,
                takes_what_is_overdue_but_not_swept,
                wakes_a_watcher_when_it_lets_go,
                records_a_failed_attempt,
                records_attempts_in_order,
                records_an_attempt_that_does_not_count,
                records_nothing_where_nothing_went_wrong,
                records_any_failure,
                keeps_the_records_of_a_job_that_moves,
                obeys_a_wanted_cancel,
                obeys_a_wanted_pause,
                keeps_the_due_of_a_retry_that_was_paused,
                obeys_only_once,
                leaves_nothing_of_a_wanted_cancel_that_is_not_kept,
                answers_again_what_a_job_became,
                answers_gone_where_nothing_was_kept,
                answers_the_same_fence_to_a_repeated_sticky_retry,
                does_not_disturb_who_claimed_meanwhile,
                is_not_kept_by_claiming_it_again,
                does_not_kill_a_redriven_job_again,
                answers_a_batch_that_was_written_in_part,
                applies_one_of_racing_settlements,
                is_lost_after_a_takeover,
                is_lost_after_being_overdue,
                is_lost_after_a_redrive,
                does_not_overwrite_the_next_attempt,
                does_not_change_its_mind,
                is_lost_for_another_holder,
                is_lost_under_another_fence,
                is_lost_for_a_job_that_nobody_claimed,
                finds_nothing_of_an_unknown_job,
                takes_the_last_words_of_the_dead,
                lets_go_of_a_sticky_retry_of_the_dead,
            }
            give_back {
                leaves_no_trace_of_the_claim,
                keeps_the_due,
                keeps_the_place_in_the_lane,
                obeys_what_is_wanted,
                leaves_nothing_of_a_wanted_cancel_that_is_not_kept,
                answers_again_what_it_did,
                does_not_take_away_a_new_lease,
                ends_the_right_to_settle,
                is_lost_for_who_does_not_hold_it,
                works_for_the_dead,
                answers_in_the_order_of_the_items,
                takes_back_a_recorded_start,
                wakes_a_watcher,
            }
            start {
                makes_a_takeover_count,
                may_be_repeated,
                counts_for_its_own_lease_only,
                does_not_count_for_a_sticky_retry_that_waits,
                counts_for_the_next_fence_of_a_sticky_retry,
                is_refused_to_who_does_not_hold_it,
                is_refused_to_the_dead,
                is_refused_when_the_job_is_let_go,
                answers_in_the_order_of_the_items,
                does_not_disturb_the_lease,
            }
            held {
                lists_the_holders_own_leases,
                lists_page_by_page,
                leaves_out_what_is_younger_than_asked_for,
                leaves_out_what_was_let_go,
                lists_a_sticky_retry_under_its_new_fence,
                lists_what_an_insert_leased,
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
