//! Attacks: what a hostile or careless client sends, replayed against a real server on every durable store.
//!
//! Each case is an async function that gets an [`Attack`]: a fresh server process with its own store. The list at the end of
//! this file runs each case on SQLite and, with the feature `test-postgres`, on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

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
                    crate::$group::$case(crate::Attack::new(folder, store)).await;
                }
            )+ })+
        }

        #[cfg(feature = "test-postgres")]
        mod postgres {
            $(mod $group { $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (folder, schema) = (tempfile::tempdir().unwrap(), rewheel_testkit::Schema::fresh());
                    crate::$group::$case(crate::Attack::new(folder, schema.url().to_owned())).await;
                }
            )+ })+
        }
    };
}

attacks! {
    payloads { reach_workers_byte_for_byte }
    requests {
        that_never_end_leave_room_for_small_submits,
        that_parse_to_much_more_than_was_sent_are_refused,
        by_a_name_that_others_decide_about_are_refused,
        with_a_revoked_token_are_refused_at_once,
        with_a_quoted_key_are_those_without_quotes,
    }
}
