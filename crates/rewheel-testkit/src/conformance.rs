//! What every store must do, by verb.

pub mod insert;

pub mod lease;
pub mod sweep;
pub mod change;
pub mod deadlines;
pub mod kinds;
pub mod list;
pub mod history;

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
