//! Lists every case by its verb.

/// Expands into one named test for each case: `insert::answers_with_the_job_that_has_the_key`.
///
/// Takes the name of an `async fn() -> Subject` that opens a fresh, empty store.
#[macro_export]
macro_rules! store_conformance {
    ($open:ident) => {
        $crate::store_conformance! { @expand $open
            insert {
                stores_a_job_as_it_was_given, stores_everything_that_a_job_says, stores_any_bytes_as_payload,
                answers_in_the_order_of_the_jobs, answers_when_a_job_is_due, takes_an_empty_batch,
                refuses_a_kind_that_does_not_exist, refuses_a_deadline_that_has_passed,
                refuses_a_deadline_before_the_due, refuses_a_payload_that_is_too_large,
                rejects_more_jobs_than_an_insert_may_hold, stores_the_others_when_one_is_refused,
                stores_nothing_when_one_is_refused, stores_all_where_none_is_refused,
                stores_a_thousand_jobs_at_once, takes_a_due_in_the_past, takes_a_due_in_the_far_future,
                wakes_a_watcher, knows_jobs_that_are_sent_again, knows_a_leased_job_that_is_sent_again,
                knows_a_finished_job_that_is_sent_again, stores_what_is_missing_of_a_batch_sent_again,
                knows_a_job_with_a_key_that_is_sent_again, knows_a_job_sent_again_after_its_deadline,
                rejects_a_known_id_that_is_sent_first,
            }
            keys {
                answers_with_the_job_that_has_the_key, answers_with_the_job_after_its_deadline,
                only_the_payload_must_be_the_same, knows_the_key_of_a_job_at_work, knows_the_key_of_a_dead_letter,
                remembers_how_a_job_ended, outlives_a_job_that_is_not_kept, knows_a_job_sent_again_after_it_is_gone,
                refuses_another_payload, tells_tenants_apart, tells_kinds_apart, tells_look_alikes_apart,
                jobs_without_a_key_are_never_duplicates, answers_within_a_batch,
                stores_nothing_of_a_batch_that_reuses_a_key, a_refused_job_takes_no_key,
                keeps_the_payload_that_was_submitted, creates_one_job_for_racing_inserts,
                expires_a_while_after_the_end, stands_for_the_second_job_when_used_again, outlives_a_pruned_job,
                does_not_expire_before_the_end, does_not_expire_with_a_dead_letter, stays_with_a_redriven_job,
                expires_after_a_person_cancelled_the_job, is_free_at_once_where_it_is_not_kept,
            }
            duplicates {
                a_claimed_job_gives_up_its_key, a_waiting_job_keeps_its_key, an_old_job_ends_without_its_key,
                an_ended_job_gives_up_its_key, a_redriven_job_stays_without_its_key, a_claimed_job_is_not_replaced,
                a_follow_up_takes_the_key_of_its_parent, replaces_what_a_waiting_job_runs, writes_the_audit_log,
                a_replaced_job_is_claimed_from_its_new_lane, a_paused_job_stays_paused, the_key_knows_the_new_payload,
                a_refused_submit_replaces_nothing, a_submit_sent_again_answers_as_before, replaces_within_a_batch,
                a_batch_finds_stored_jobs, a_debounced_job_is_not_claimed_early, each_submit_postpones_the_job,
                a_debounced_job_is_postponed_up_to_its_limit, the_last_submit_says_whether_a_job_is_debounced,
                a_debounced_submit_takes_the_key_of_a_claimed_job, debounced_jobs_wait_for_the_last_old_holder,
                racing_submits_replace_one_job, submits_that_race_with_claims_lose_nothing,
                submits_that_race_with_operators_lose_nothing, racing_batches_do_not_deadlock,
            }
            direct {
                leases_a_new_job_at_once, is_overdue_by_the_jobs_own_timeout,
                is_overdue_from_now_where_the_due_has_passed, leases_several_of_one_batch,
                leases_nothing_of_a_paused_kind, leases_nothing_of_a_parked_kind,
                does_not_overtake_an_older_due_job, looks_at_its_own_lane_only, waits_for_due_jobs_only,
                leases_nothing_to_the_dead, leases_nothing_that_is_due_later, does_not_lease_the_job_of_a_duplicate,
                leases_nothing_where_nothing_is_stored, keeps_the_lease_of_an_insert_sent_again,
                is_settled_like_a_claim, is_swept_when_the_holder_dies, is_swept_when_it_is_overdue,
            }
            reserve {
                counts_the_live_jobs_of_a_tenant, gives_the_same_room_to_one_only, keeps_what_is_on_its_way,
                has_room_again_when_jobs_ended, frees_what_the_dead_had, tells_tenants_apart,
                serves_racing_holders_one_after_the_other,
            }
            lanes {
                come_in_their_order, are_read_page_by_page, are_read_on_from_behind_an_empty_lane,
                are_those_of_the_kinds_asked_for, tell_the_earliest_due, move_on_when_the_first_is_claimed,
                keep_their_shard, tell_the_shards_of_a_batch_apart, are_left_out_without_scheduled_jobs,
                are_there_again_when_a_job_comes_back, are_read_by_name,
            }
            claim {
                skips_jobs_that_are_not_due, takes_what_is_due_within_the_horizon, gives_a_job_to_only_one_claimer,
                gives_each_job_to_one_of_racing_claimers, takes_the_job_that_was_due_first,
                takes_the_job_that_was_stored_first, grows_the_fence, changes_nothing_but_the_lease,
                brings_the_whole_job_along, fails_for_the_dead, works_for_an_overdue_holder_that_is_not_expired,
                skips_jobs_whose_deadline_has_passed, tells_what_is_left_until_the_deadline,
                is_overdue_by_the_jobs_own_timeout_first, is_overdue_from_the_due_where_that_is_later,
                takes_from_the_lane_it_visits, skips_jobs_that_are_not_scheduled, keeps_to_the_limit_of_a_visit,
                keeps_to_the_limit_of_all_visits, visits_lanes_in_the_order_given, goes_on_behind_an_empty_lane,
                takes_nothing_without_visits, takes_nothing_of_a_paused_kind, takes_nothing_of_a_parked_kind,
                gives_the_prober_one_job, gives_the_prober_no_second_job,
                keeps_the_right_to_probe_until_there_is_a_job, gives_the_prober_nothing_of_a_paused_kind,
            }
            claim_limited {
                leases_as_a_claim_does, keeps_the_limits_of_visits_and_claim, refuses_the_dead,
                takes_nothing_of_a_closed_kind, gives_the_prober_one_job_within_the_limit,
                leases_no_more_than_may_be, counts_the_leases_of_every_claim, counts_a_job_once,
                frees_the_slot_of_a_job_that_is_let_go, frees_the_slots_of_jobs_that_are_swept,
                keeps_the_limit_of_a_tenant, keeps_both_limits_of_a_lane, gives_unused_slots_to_the_next_lane,
                leaves_other_lanes_alone, keeps_the_smallest_limit, tells_a_kind_from_a_tenant,
                waits_for_nothing_without_jobs, starts_one_job_in_an_interval, does_not_save_up_starts,
                counts_a_changed_interval_from_the_last_start, takes_no_start_without_a_job,
                keeps_the_rate_when_jobs_are_let_go, keeps_rate_and_slots, goes_on_when_the_clock_was_set_back,
                outlives_a_prune, racing_claims_never_exceed_the_slots, settling_meanwhile_frees_no_slot_early,
                racing_claims_start_one_job, racing_claims_of_several_limits_all_answer,
            }
            settle {
                ends_a_job_that_succeeded, lets_a_job_wait_for_its_retry, keeps_why_a_job_waits,
                counts_no_attempt_for_a_snooze, keeps_a_dead_letter_for_a_person, ends_a_job_that_failed,
                lets_a_job_wait_for_a_person, ends_a_job_that_was_cancelled, keeps_a_sticky_retry_with_its_holder,
                settles_each_sticky_retry_under_its_own_fence, keeps_the_last_failure_of_a_job,
                keeps_what_a_job_was_given_up_for, leaves_nothing_of_a_job_that_is_not_kept,
                keeps_a_job_for_as_long_as_was_said, answers_in_the_order_of_the_items, settles_a_thousand_at_once,
                takes_no_items, grows_the_version, takes_a_success_after_the_deadline,
                takes_what_is_overdue_but_not_swept, wakes_a_watcher_when_it_lets_go, records_a_failed_attempt,
                records_attempts_in_order, drops_records_in_the_middle_of_a_long_history,
                records_an_attempt_that_does_not_count, records_nothing_where_nothing_went_wrong,
                records_any_failure, keeps_the_records_of_a_job_that_moves, obeys_a_wanted_cancel,
                obeys_a_wanted_pause, keeps_the_due_of_a_retry_that_was_paused, obeys_only_once,
                leaves_nothing_of_a_wanted_cancel_that_is_not_kept, answers_again_what_a_job_became,
                answers_gone_where_nothing_was_kept, answers_the_same_fence_to_a_repeated_sticky_retry,
                does_not_disturb_who_claimed_meanwhile, is_not_kept_by_claiming_it_again,
                does_not_kill_a_redriven_job_again, answers_a_batch_that_was_written_in_part,
                applies_one_of_racing_settlements, is_lost_after_a_takeover, is_lost_after_being_overdue,
                is_lost_after_a_redrive, does_not_overwrite_the_next_attempt, does_not_change_its_mind,
                is_lost_for_another_holder, is_lost_under_another_fence, is_lost_for_a_job_that_was_not_claimed,
                finds_nothing_of_an_unknown_job, takes_the_last_words_of_the_dead,
                lets_go_of_a_sticky_retry_of_the_dead,
            }
            follow_ups {
                exist_once_the_settle_counted, ride_on_every_decision, are_submitted_once_by_a_repeated_settle,
                are_submitted_once_by_a_batch_that_repeats, do_not_exist_if_the_settle_was_lost,
                do_not_exist_if_the_job_is_gone, exist_where_a_success_comes_before_a_cancel,
                have_the_tenant_of_their_parent, with_a_known_key_are_the_job_that_has_it,
                of_a_whole_batch_are_stored, are_listed_by_their_parent, are_listed_without_a_look_at_other_jobs,
                wake_a_watcher_of_their_lane,
                can_be_cancelled, of_an_unknown_kind_become_dead_letters, with_a_reused_key_become_dead_letters,
                that_come_too_late_become_dead_letters, that_are_too_large_become_dead_letters,
                beyond_the_sixteenth_become_dead_letters, beyond_the_bytes_become_dead_letters,
                with_a_known_id_are_not_stored_again, with_a_strange_backoff_cost_nothing,
                wait_for_the_last_old_holder, end_by_a_decision, end_by_takeovers, end_by_the_deadline,
                end_by_a_cancel,
            }
            results {
                are_stored_with_the_success, that_are_dropped_leave_the_reason, are_only_of_kept_successes,
                stay_the_first_if_the_settle_is_repeated, of_a_lost_lease_are_not_stored,
                of_a_batch_belong_to_their_jobs, are_pruned_with_their_jobs, a_success_is_on_record,
                successes_of_a_batch_have_their_own_records, only_a_success_is_on_record_as_one,
                ended_leaves_out_live_jobs,
            }
            schedules {
                fire_in_one_settle, fire_nothing_if_the_settle_was_lost, change_their_payload_with_every_decision,
                are_changed_by_the_engine, free_their_name_when_they_are_removed,
            }
            groups {
                run_one_at_a_time_in_order, of_one_insert_keep_its_order, keep_the_place_of_a_replaced_job, wait_for_the_due_of_the_first,
                are_apart_by_kind_tenant_and_key, take_no_direct_path, have_turns_that_grow, have_turns_that_are_not_below_the_time,
                are_due_from_their_release_on, are_checked_line_by_line, go_on_after_every_decision,
                of_a_whole_batch_go_on, go_on_once_after_a_repeated_settle, keep_their_head_while_it_lives,
                go_on_after_takeovers, go_on_after_a_deadline, go_on_after_a_wanted_cancel, take_follow_ups,
                wait_for_the_last_old_holder, lose_it_if_an_old_holder_lives, keep_old_holders_out, wait_for_a_paused_head, wait_for_a_member_that_was_paused,
                cannot_be_overtaken_by_a_change, go_on_after_a_cancel, go_on_after_a_dead_letter,
                wait_for_a_dead_letter_if_the_kind_says_so, follow_a_changed_setting, count_while_they_wait,
                are_listed_by_their_key, go_on_while_a_job_is_stored, never_have_two_leases,
            }
            every_feature {
                lasts_after_a_success, lasts_after_a_failure, lasts_in_a_dead_letter, lasts_after_takeovers,
                lasts_after_the_deadline, lasts_after_a_cancel_while_it_waits, lasts_after_a_cancel_while_it_runs,
            }
            give_back {
                leaves_no_trace_of_the_claim, keeps_the_due, keeps_the_place_in_the_lane, obeys_what_is_wanted,
                leaves_nothing_of_a_wanted_cancel_that_is_not_kept, answers_again_what_it_did,
                does_not_take_away_a_new_lease, ends_the_right_to_settle, is_lost_for_who_does_not_hold_it,
                works_for_the_dead, answers_in_the_order_of_the_items, takes_back_a_recorded_start, wakes_a_watcher,
            }
            start {
                makes_a_takeover_count, may_be_repeated, counts_for_its_own_lease_only,
                does_not_count_for_a_sticky_retry_that_waits, counts_for_the_next_fence_of_a_sticky_retry,
                is_refused_to_who_does_not_hold_it, is_refused_to_the_dead, is_refused_when_the_job_is_let_go,
                answers_in_the_order_of_the_items, does_not_disturb_the_lease,
            }
            checkpoint {
                is_what_the_next_attempt_gets, is_refused_to_who_does_not_hold_it,
                is_refused_when_the_job_is_let_go, does_not_disturb_the_lease, leaves_the_key_as_it_was,
                outlives_the_holder_and_the_job, may_be_repeated, refuses_what_is_too_large,
            }
            extend {
                keeps_a_job_from_being_overdue, takes_no_time_away, has_a_total_that_it_does_not_pass,
                is_refused_to_who_does_not_hold_it, may_be_repeated,
            }
            held {
                lists_the_holders_own_leases, lists_page_by_page, leaves_out_what_is_younger_than_asked_for,
                lists_everything_when_the_clock_was_set_back, leaves_out_what_was_let_go,
                lists_a_sticky_retry_under_its_new_fence, lists_what_an_insert_leased,
            }
            lease {
                lists_a_holder_as_it_joined, each_worker_is_in_two_shares_of_engines,
                remembers_who_created_a_worker, joining_again_changes_nothing, the_dead_cannot_join_again,
                counts_renewals, the_unknown_cannot_renew, one_who_left_cannot_renew,
                one_who_was_expired_cannot_renew, one_whose_lease_ran_out_may_renew,
                a_renewal_tells_what_people_want, a_renewal_tells_a_batch_at_most,
                a_renewal_tells_the_fence_of_a_sticky_retry, a_renewal_tells_it_until_it_is_obeyed,
                leaving_ends_a_life, the_unknown_may_leave, a_silent_holder_is_expired_once,
                of_two_who_expire_one_succeeds, one_who_renewed_since_is_not_expired,
                one_whose_lease_runs_is_not_expired, a_dead_holder_expires_no_other,
                a_renewal_and_a_expiry_do_not_both_succeed, after_an_outage_no_holder_is_expired,
                one_who_stays_silent_is_expired_after_a_lease_life,
            }
            sweep {
                takes_the_jobs_of_one_who_was_expired, takes_the_jobs_of_one_who_left,
                takes_the_jobs_of_the_unknown, leaves_the_jobs_of_the_living, takes_what_is_overdue_from_the_living,
                takes_what_is_overdue_beside_jobs_that_were_extended,
                leaves_what_only_a_jump_of_the_clock_made_overdue,
                takes_the_jobs_of_the_dead_after_the_clock_jumped, takes_a_sticky_retry_that_was_forgotten,
                frees_no_more_than_asked, keeps_due_and_attempt, tells_what_it_freed,
                makes_a_late_settlement_match_nothing, counts_only_recorded_starts,
                gives_up_a_job_that_takes_its_holders_with_it, obeys_the_cap_of_the_kind,
                never_gives_up_a_job_that_was_not_started, does_not_charge_the_innocent_for_the_poison,
                obeys_what_people_want, obeys_people_before_the_cap, drops_what_is_cancelled_where_nothing_is_kept,
                the_dead_sweep_nothing, two_who_sweep_free_each_job_once, finds_what_a_claim_took_during_the_expiry,
                leaves_what_waits_for_its_due,
            }
            change {
                does_to_each_state_what_the_table_says, answers_for_each_in_order, doing_it_again_changes_nothing,
                a_leased_job_is_wanted_to_change, resuming_takes_back_a_wanted_pause, a_change_may_name_a_version,
                a_reserved_job_is_only_aborted, other_jobs_are_not_aborted,
                of_two_who_saw_the_same_version_one_wins, retrying_runs_it_now, retrying_a_paused_job_resumes_it,
                resuming_keeps_the_due, cancelling_ends_a_job, cancelling_a_dead_letter_ends_it,
                cancelling_keeps_nothing_where_nothing_is_kept, edits_what_it_is_told_to, edits_one_thing_at_a_time,
                edits_the_due_by_the_clock_of_the_store, another_priority_moves_it_to_another_lane,
                an_earlier_due_is_found_by_a_claim, a_leased_job_cannot_be_edited, a_payload_too_large_is_refused,
                the_key_remembers_what_was_submitted, redriving_keeps_what_was, retrying_a_dead_letter_redrives_it,
                redriving_needs_a_deadline_that_lies_ahead, retrying_past_the_deadline_needs_another,
                redriving_may_replace_the_deadline, success_stays_success, a_retry_is_stopped_in_either_order,
                a_paused_retry_keeps_its_backoff, a_death_cannot_be_paused, an_edit_is_run_or_refused,
                a_cancel_and_a_success_agree, an_edit_and_a_claim_agree,
            }
            deadlines {
                ends_a_scheduled_job, ends_a_paused_job, ends_a_leased_job_after_the_grace_time,
                what_was_done_in_time_counts, ends_a_job_of_a_parked_kind, ends_a_job_of_a_paused_kind,
                ends_nothing_before_its_time, ends_no_more_than_asked, nothing_starts_after_its_deadline,
                a_missed_deadline_is_no_attempt, a_new_deadline_counts_afresh,
            }
            kinds {
                reads_kinds_as_they_were_written, writing_again_replaces_the_settings,
                writing_leaves_pause_and_park_alone, an_unknown_kind_is_not_found, a_paused_kind_gives_nothing,
                a_resumed_kind_goes_on, what_runs_in_a_paused_kind_is_settled, pausing_again_changes_nothing,
                writing_the_same_leaves_no_trace, writing_another_secret_is_a_change,
                people_change_the_version_of_a_kind, an_edit_of_a_kind_may_name_a_version,
                of_two_who_edit_a_kind_one_does, deletes_a_kind_without_unfinished_jobs,
                keeps_a_kind_that_has_unfinished_jobs, a_parked_kind_gives_nothing,
                parking_needs_the_latest_generation, of_two_who_park_one_does,
                parking_again_frees_the_right_to_probe, probing_needs_a_parked_kind_and_a_living_prober,
                of_two_probers_one_wins, a_prober_gets_one_job_for_each_right,
                the_right_to_probe_dies_with_its_holder, time_never_unparks, an_unparked_kind_goes_on,
                unparking_needs_the_latest_generation, a_pause_outlives_a_park,
            }
            evidence {
                one_suspect_of_several_holders_parks_nothing, two_suspects_park_a_kind, the_only_holder_parks_alone,
                a_worker_has_no_say, a_suspicion_dies_with_its_holder, a_suspicion_is_taken_back,
                a_person_parks_a_kind_for_good, a_person_keeps_a_kind_from_parking, a_hold_parks_a_kind_until_then,
                a_person_ends_a_hold,
            }
            budgets {
                grants_what_others_earned, answers_for_each_kind_in_order, grants_a_floor_by_the_stores_clock,
                savings_melt, computes_as_a_pool_does, nothing_is_granted_twice, the_largest_ask_is_answered,
            }
            list {
                finds_a_job_in_every_state, finds_live_jobs_by_their_ids, keeps_what_a_job_says_in_every_state,
                keeps_what_a_cancelled_job_says, finds_nothing_that_is_not_there, finds_the_jobs_of_a_key,
                finds_the_job_of_a_key_in_every_state, a_cursor_names_no_job_that_is_kept_back, reads_what_failed,
                reads_a_bounded_number_of_failures, lists_the_newest_first, lists_everything_but_the_payload,
                pages_have_no_gaps, a_page_ends_when_its_time_is_over, pages_have_no_gaps_while_jobs_move, a_cursor_survives_as_text,
                a_page_may_be_short_and_go_on, a_page_is_bounded, counts_what_the_filter_lets_through,
                counts_at_least_what_it_looked_at, tallies_by_kind_and_state, tallies_the_earliest_due,
                filters_by_state, filters_by_kind, filters_by_tenant, filters_by_category, filters_by_text,
                filters_by_text_in_any_case, filters_by_text_literally, filters_by_due, filters_by_creation,
                filters_by_all_of_it, filters_by_the_last_failure, filters_by_code, filters_by_incident, filters_by_reason,
                filters_by_attempts, filters_by_holder,
            }
            history {
                remembers_a_failed_attempt, remembers_attempts_in_order, remembers_attempts_across_a_redrive,
                remembers_attempts_across_a_takeover, numbers_a_snooze_like_what_follows,
                keeps_the_history_of_a_job_that_succeeded, tells_the_first_and_the_latest_of_a_long_history,
                logs_who_changed_what, logs_a_redrive, logs_what_an_edit_changed, logs_only_what_an_edit_changed,
                logs_what_is_wanted_of_a_leased_job, logs_nothing_that_was_refused, logs_what_was_done_to_a_kind,
                pages_the_log_from_its_end,
            }
            audit {
                notes_a_takeover, notes_a_takeover_from_the_living, notes_every_takeover_of_a_node,
                notes_who_killed_its_holders, notes_an_end_that_is_no_success, notes_nothing_of_what_goes_well,
                notes_that_a_wish_was_obeyed, notes_a_missed_deadline, notes_an_end_once,
                notes_what_ended_badly_of_a_flush, notes_an_end_of_what_is_not_kept,
                takes_entries_of_unknown_actors,
            }
            books {
                begin_empty, balance_after_every_verb, balance_after_a_deadline, do_not_count_what_was_not_stored,
                count_what_was_not_kept_as_pruned, count_what_was_given_back_cancelled_as_pruned,
                prune_deletes_what_ended_long_ago, prune_deletes_every_final_state,
                prune_keeps_dead_letters_and_the_living, prune_deletes_keys_in_their_own_time,
                prune_deletes_keys_of_jobs_that_are_gone, prune_keeps_the_key_of_a_redriven_job,
                prune_deletes_old_audit_entries, prune_forgets_the_long_dead, prune_deletes_no_more_than_asked,
                prune_adds_up_the_ledger,
            }
            scale {
                a_sample_is_what_a_tally_counts, a_sample_is_taken_by_one_node_at_a_time,
                a_small_store_is_counted_now, a_small_count_has_every_acknowledged_change,
                a_large_claim_is_tallied_as_leased, finds_jobs_in_every_state,
                changes_many_jobs_in_every_state, reads_the_kinds_that_changed,
            }
            kind_history {
                begins_empty, a_report_replaces_the_previous_one, rows_are_read_page_by_page, rows_are_selected_by_age,
                minutes_of_another_time_are_ignored, a_fold_replaces_its_rows, a_fold_of_other_rows_is_refused,
                racing_folds_merge_once, expired_rows_are_deleted,
            }
            announce {
                tells_a_dead_letter_until_it_was_announced, announcing_again_changes_nothing,
                tells_a_job_that_the_sweep_gave_up, tells_a_job_that_missed_its_deadline,
                tells_the_oldest_death_first, does_not_tell_what_is_no_longer_dead, tells_a_second_death,
                a_late_announcement_does_not_silence_a_second_death, an_edit_is_no_second_death,
            }
            watch {
                an_insert_wakes_one_who_waits, an_insert_wakes_one_who_waits_later, what_is_given_back_wakes,
                a_retry_that_is_let_go_wakes, a_sweep_wakes, what_people_let_run_wakes, what_people_want_wakes,
                a_change_of_a_kind_wakes, every_watcher_is_woken, many_changes_wake_a_few_times,
                a_wait_that_was_dropped_loses_nothing, whatever_makes_a_job_claimable_reports_its_lane,
                what_is_reported_is_no_unreported_change,
            }
            tokens {
                stores_a_token_as_it_was_given, stores_a_token_once, refuses_a_name_that_is_taken,
                gives_a_name_to_only_one, revokes_a_token_once, tells_what_is_left_of_a_token,
                forgets_tokens_that_ended_long_ago,
                forgets_short_tokens_soon,
            }
            histories {
                a_claim_that_arrives_after_its_holder_is_forgotten, a_claim_whose_reply_is_lost,
                a_sticky_retry_that_is_repeated, a_fence_that_two_holders_name, a_poison_job_beside_a_thousand,
                a_store_that_was_away, a_direct_insert_that_must_wait, a_kind_whose_prober_dies,
                a_change_while_another_runs_it, a_dead_letter_of_long_ago, a_key_that_two_submit,
                a_flush_with_what_databases_refuse, a_crash_before_the_announcement, a_prune_that_crashes,
                a_deadline_that_cannot_be_met,
            }
            faults {
                an_insert_happens_once, a_direct_insert_happens_once, a_lost_claim_is_found_and_given_back,
                a_lost_limited_claim_keeps_its_slots, a_success_happens_once,
                a_success_that_is_not_kept_happens_once, a_retry_happens_once,
                a_retry_repeated_late_changes_nothing, a_sticky_retry_happens_once, a_death_happens_once,
                giving_back_happens_once, a_change_happens_once, a_change_with_a_version_happens_once,
                a_renewal_may_be_repeated, a_start_may_be_repeated, a_sweep_may_be_repeated, a_closed_store_says_so,
                one_bad_job_does_not_hold_up_an_insert, one_bad_job_does_not_hold_up_a_flush,
            }
            extremes {
                an_attempt_may_take_for_ever, a_lease_is_no_longer_than_the_kind_allows, a_retry_may_wait_for_ever,
                the_longest_times_do_not_wrap, the_largest_numbers_match_nothing, the_largest_limit_is_no_limit,
                a_limit_of_zero_does_nothing, large_limits_that_meet_are_all_served,
                a_custom_backoff_breaks_no_row, a_snooze_leaves_nothing_behind, small_prunes_add_up_the_ledger,
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
