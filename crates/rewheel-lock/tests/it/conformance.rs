//! The conformance suite that every backend passes.

pub(crate) mod exclusion;
pub(crate) mod token;
pub(crate) mod lost;
pub(crate) mod release;
pub(crate) mod line;
pub(crate) mod reentrancy;
pub(crate) mod verbs;

/// Expands into one named test for each case.
///
/// Takes the name of an `async fn() -> Subject` that opens fresh, empty locks.
macro_rules! lock_conformance {
    ($open:ident) => {
        lock_conformance! { @expand $open
            exclusion {
                one_of_many_tasks_holds_a_lock,
                names_are_independent,
                busy_says_who_holds_the_lock,
                a_wait_that_is_over_leaves_the_line,
            }
            token {
                grows_over_release_expiry_and_a_new_connection,
                grows_when_the_clock_goes_back,
                keeps_the_late_write_of_a_paused_holder_out,
                of_many_grants_are_all_different,
            }
            lost {
                a_lost_lock_cancels_the_work,
                a_paused_holder_does_not_continue_its_work,
                a_late_release_does_not_release_the_new_holder,
                renewals_keep_a_lock,
                a_released_lock_counts_as_lost_for_its_users,
            }
            release {
                after_success_and_error,
                after_a_panic,
                after_a_guard_or_a_run_is_dropped,
                wakes_a_request_of_another_process,
            }
            line {
                serves_requests_in_order,
                a_dead_request_does_not_block_the_line,
                a_dropped_request_leaves_the_line,
                a_request_that_does_not_wait_does_not_overtake,
                has_a_limit,
            }
            reentrancy {
                a_task_with_a_guard_is_refused,
                code_inside_of_run_is_refused,
                other_tasks_and_branches_wait,
            }
            verbs {
                asking_twice_is_one_lock,
                an_expired_lock_can_be_renewed_until_it_is_taken,
                strangers_change_nothing,
                a_clock_that_goes_back_does_not_keep_a_dead_holder,
                walk_like_the_reference,
            }
        }
    };
    (@expand $open:ident $($group:ident { $($case:ident),+ $(,)? })+) => {
        $(mod $group { $(
            #[tokio::test]
            async fn $case() {
                let subject = super::$open().await;
                crate::conformance::$group::$case(&subject).await;
            }
        )+ })+
    };
}
