//! Replays requests of hostile or careless clients against a real server, on every durable store.
//!
//! Each case is an async function that gets an [`Attack`]: a fresh server process with its own store. The list at the end of
//! this file runs each case on SQLite and, with the feature `test-postgres`, on PostgreSQL.

mod server;
mod payloads;
mod workers;
mod submits;
mod access;
mod output;
mod rest;
mod requests;

use self::server::Attack;

macro_rules! attacks {
    ($($group:ident { $($case:ident),+ $(,)? })+) => {
        mod sqlite {
            $(mod $group { $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let folder = tempfile::tempdir().unwrap();
                    let store = format!("sqlite://{}", folder.path().join("rewheel.db").display());
                    crate::attacks::$group::$case(crate::attacks::Attack::new(folder, store)).await;
                }
            )+ })+
        }

        #[cfg(feature = "test-postgres")]
        mod postgres {
            $(mod $group { $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (folder, schema) = (tempfile::tempdir().unwrap(), rewheel_testkit::Schema::fresh());
                    crate::attacks::$group::$case(crate::attacks::Attack::new(folder, schema.url().to_owned())).await;
                }
            )+ })+
        }
    };
}

attacks! {
    payloads { reach_workers_byte_for_byte, that_parsers_refuse_do_not_get_in }
    workers {
        act_only_for_themselves,
        do_not_act_for_engines,
        hear_that_they_expired,
        leave_and_give_back_their_jobs,
        get_more_time_within_the_ceiling,
    }
    submits { are_refused_above_the_ceilings, leave_a_bounded_history }
    output {
        database_files_are_private,
        text_of_callees_is_only_text,
        secrets_of_urls_reach_only_the_callee,
        kinds_of_rest_stay_below_the_ceiling,
        retries_of_a_notice_keep_their_id,
    }
    access {
        a_cursor_tells_nothing_of_other_tenants,
        a_submitter_who_repeats_a_key_learns_nothing_new,
        no_token_rewrites_an_operation,
        secrets_are_kept_and_not_sent_elsewhere,
    }
    rest {
        an_order_for_everything_must_say_so,
        everything_is_changed_where_it_is_said,
        a_key_leads_to_its_job,
        a_stale_change_is_refused_by_every_verb,
        a_stale_change_of_a_kind_is_refused,
        every_list_is_read_to_its_end,
        incidents_are_bounded_and_say_so,
        kinds_are_patched_and_deleted,
    }
    requests {
        that_never_end_leave_room_for_small_submits,
        that_parse_to_much_more_than_was_sent_are_refused,
        by_a_name_that_others_decide_about_are_refused,
        with_a_revoked_token_are_refused_at_once,
        with_a_quoted_key_are_those_without_quotes,
    }
}
