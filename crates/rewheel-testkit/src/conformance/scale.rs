//! Reads whose cost must not grow with what they do not touch.

use crate::subject::{Subject, seconds};
use crate::threads::at_once;
use rewheel_core::store::Sample;
use rewheel_core::{State, When};
use std::sync::Arc;
use std::time::Duration;

/// A sample says the same as a tally, also of kinds without jobs, and how old it is.
pub async fn a_sample_is_what_a_tally_counts(subject: &Subject) {
    assert_eq!(subject.store.sample().await.unwrap(), None);
    for state in [State::Dead, State::Leased, State::Paused, State::Succeeded, State::Scheduled] {
        subject.job_in("charge", state).await;
    }
    subject.kinds(&["refund"]).await;
    assert!(subject.store.take_sample().await.unwrap());
    subject.clock.advance(seconds(7));
    let sample = subject.store.sample().await.unwrap().unwrap();
    assert_eq!(sample.tallies, subject.store.tally().await.unwrap());
    assert_eq!((sample.tallies.len(), sample.jobs()), (2, 4));
    assert!(sample.age >= seconds(7), "{:?}", sample.age);
}

/// Nodes that ask for a sample at the same time count once; the next count waits for its interval.
pub async fn a_sample_is_taken_by_one_node_at_a_time(subject: &Subject) {
    subject.submit("charge").await;
    let ask = || subject.store.take_sample();
    let taken = at_once(8, |_| {
        let store = Arc::clone(&subject.store);
        async move { store.take_sample().await.unwrap() }
    })
    .await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
    subject.submit("charge").await;
    subject.clock.advance(Sample::INTERVAL_MIN - seconds(2));
    assert!(!ask().await.unwrap());
    assert_eq!(subject.store.sample().await.unwrap().unwrap().jobs(), 1);
    subject.clock.advance(seconds(2));
    assert!(ask().await.unwrap());
    assert_eq!(subject.store.sample().await.unwrap().unwrap().jobs(), 2);
}

/// A store is counted at once if it has no more jobs than may be counted, dead letters included.
pub async fn a_small_store_is_counted_now(subject: &Subject) {
    subject.job_in("charge", State::Dead).await;
    subject.job_in("charge", State::Succeeded).await;
    subject.insert(&subject.jobs("charge", 4)).await;
    let sample = subject.store.sample_now(5).await.unwrap().expect("there are five");
    assert_eq!(sample.tallies, subject.store.tally().await.unwrap());
    assert_eq!((sample.jobs(), sample.age), (5, Duration::ZERO));
    assert_eq!(subject.store.sample_now(4).await.unwrap(), None);
}

/// Jobs that one claim takes by the hundred are tallied as leased, and their due is not waited for.
pub async fn a_large_claim_is_tallied_as_leased(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let mut jobs = subject.jobs("charge", 300);
    jobs[299].due = When::In(seconds(3_600));
    let later = jobs[299].id;
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["charge"], 299).await.len(), 299);
    let tallies = subject.store.tally().await.unwrap();
    let count = |state: State| tallies[0].jobs[&state];
    assert_eq!((count(State::Scheduled), count(State::Leased)), (1, 299));
    assert_eq!(tallies[0].oldest_due, Some(subject.get(later).await.due));
}
