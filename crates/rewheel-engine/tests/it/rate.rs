//! Tests of rate limits of kinds.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use crate::flood::{flood, with_slow_inserts};
use rewheel::{millis, seconds};
use rewheel_core::Report;
use rewheel_core::store::ReadStore;
use rewheel_engine::{Engine, KindSettings};
use rewheel_stores::MemoryStore;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Runs jobs of a kind with a rate of 10 per second on this many engines, and returns when each attempt started.
async fn starts(engines: usize, jobs: usize) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new());
    let starts: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let began = Instant::now();
    let mut fleet = Vec::new();
    for _ in 0..engines {
        let seen = Arc::clone(&starts);
        let settings = KindSettings { rate: Some("10/s".parse()?), ..KindSettings::default() };
        let engine = Engine::builder(Arc::clone(&store) as Arc<dyn rewheel_core::store::Store>)
            .kind("slow", settings)
            .raw_handler("slow", move |_| {
                seen.lock().unwrap().push(began.elapsed());
                async { Report::Done }
            })
            .start()
            .await?;
        fleet.push(engine);
    }
    // All engines know each other.
    tokio::time::sleep(seconds(5)).await;
    for _ in 0..jobs {
        fleet[0].submit_raw("slow", Vec::new()).await?;
    }
    while store.books().await?.live > 0 {
        tokio::time::sleep(millis(10)).await;
    }
    let starts = starts.lock().unwrap().clone();
    Ok(starts)
}

#[tokio::test(start_paused = true)]
async fn a_kind_goes_no_faster_than_its_rate() -> Tested {
    for engines in [1, 3] {
        let mut starts = starts(engines, 60).await?;
        starts.sort_unstable();
        let fastest = starts.windows(31).map(|some| some[30] - some[0]).min().unwrap();
        assert!(fastest >= millis(2_500), "{engines} engines: 31 attempts within {fastest:?}");
        let all = *starts.last().unwrap() - starts[0];
        assert!(all < seconds(12), "{engines} engines: 60 attempts took {all:?}");
    }
    Ok(())
}

/// An insert behind other jobs of its lane starts nothing, so it takes no start of the rate.
#[tokio::test(start_paused = true)]
async fn submits_do_not_use_up_a_rate() -> Tested {
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let store = with_slow_inserts(Arc::new(MemoryStore::new()));
    let settings = KindSettings { rate: Some("20/s".parse()?), ..KindSettings::default() };
    let engine = Engine::builder(store)
        .kind("slow", settings)
        .raw_handler("slow", move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            async { Report::Done }
        })
        .start()
        .await?;
    let _submitters = flood(&engine, "slow", None, millis(10));
    tokio::time::sleep(seconds(5)).await;
    let before = done.load(Ordering::SeqCst);
    tokio::time::sleep(seconds(10)).await;
    let count = done.load(Ordering::SeqCst) - before;
    assert!(count >= 160, "{count} attempts in 10 s at 20/s");
    Ok(())
}
