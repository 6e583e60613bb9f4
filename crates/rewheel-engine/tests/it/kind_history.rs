//! Tests of the counts per kind and minute that nodes report.

use crate::still::{store, store_with};
use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::store::{ClockOffset, HistoryScan, HistoryStore, Store};
use rewheel_core::{Failure, HistoryPoint, HistorySlot, KindCounts, KindName, Report, Timestamp};
use rewheel_engine::{Engine, EngineSettings, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// An engine with a kind that succeeds after 300 ms, and one that is retried once and then dead.
async fn engine(store: Arc<dyn Store>) -> Result<Engine, Box<dyn std::error::Error>> {
    let engine = Engine::builder(store)
        .kind("broken", KindSettings { attempts_max: 2, ..KindSettings::default() })
        .raw_handler("work", |_| async {
            tokio::time::sleep(millis(300)).await;
            Report::Done
        })
        .raw_handler("broken", |_| async {
            let failure = Failure::new(Category::Io, None, "connection reset");
            Report::AttemptFailed { verdict: Verdict::Retry, failure }
        });
    Ok(engine.start().await?)
}

fn kind(name: &str) -> KindName {
    KindName::parse(name).expect("a name")
}

/// The sum of all points.
fn total(points: &[HistoryPoint], name: &str) -> KindCounts {
    let mut total = KindCounts::default();
    let of_kind = points.iter().filter_map(|point| point.slot.kinds.get(&Some(kind(name))));
    of_kind.for_each(|counts| total.add_after(counts));
    total
}

async fn history(engine: &Engine) -> Result<Vec<HistoryPoint>, Box<dyn std::error::Error>> {
    let kinds = [kind("work"), kind("broken")];
    Ok(engine.history(&kinds, seconds(24 * 3_600)).await?.points)
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_counted_once_in_its_minute() -> Tested {
    let engine = engine(Arc::new(store())).await?;
    for _ in 0..3 {
        engine.submit_raw("work", Vec::new()).await?;
    }
    engine.submit_raw("broken", Vec::new()).await?;
    tokio::time::sleep(seconds(150)).await;
    let points = history(&engine).await?;
    let work = total(&points, "work");
    assert_eq!((work.submitted, work.attempts, work.succeeded), (3, 3, 3));
    assert_eq!((work.concurrency_max, work.dead + work.retried), (3, 0));
    assert_eq!(work.durations[KindCounts::bucket(millis(300))], 3);
    assert_eq!(work.lateness.iter().sum::<u64>(), 3);
    let broken = total(&points, "broken");
    assert_eq!((broken.submitted, broken.attempts, broken.retried, broken.dead), (1, 2, 1, 1));
    let reported = points.iter().filter(|point| !point.is_gap()).count();
    // The store's clock does not begin at a whole minute.
    assert!((3..=4).contains(&reported), "{reported}");
    let active = points.iter().filter(|point| point.slot.kinds.contains_key(&Some(kind("work"))));
    assert_eq!(active.count(), 1, "idle minutes are reported, and have no counts");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_reports_the_last_attempts() -> Tested {
    let store = Arc::new(store());
    let engine = engine(Arc::clone(&store) as Arc<dyn Store>).await?;
    tokio::time::sleep(seconds(1)).await;
    engine.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(millis(100)).await;
    engine.shutdown(seconds(5)).await;
    let rows = rows(&store).await?;
    let mut kinds: BTreeMap<Option<KindName>, KindCounts> = BTreeMap::new();
    for slot in rows.values() {
        slot.kinds.iter().for_each(|(kind, counts)| {
            kinds.entry(kind.clone()).or_default().add_after(counts);
        });
    }
    assert_eq!(kinds[&Some(kind("work"))].succeeded, 1);
    Ok(())
}

async fn rows(
    store: &MemoryStore,
) -> Result<BTreeMap<Timestamp, HistorySlot>, Box<dyn std::error::Error>> {
    let (since, older_than) = (seconds(25 * 3_600), Duration::ZERO);
    let scan = HistoryScan { since, older_than, after: None, limit: 10_000 };
    let rows = store.history(&scan).await?.rows;
    let read = |data: &[u8]| HistorySlot::decode(data).ok_or("a row that cannot be read");
    Ok(rows.iter().map(|row| Ok((row.start, read(&row.data)?))).collect::<Result<_, &str>>()?)
}

/// A node writes a few rows per minute, however many jobs it runs, and old minutes become five-minute rows.
#[tokio::test(start_paused = true)]
async fn the_number_of_statements_does_not_depend_on_the_number_of_jobs() -> Tested {
    let memory = Arc::new(store());
    let calls: Arc<Mutex<BTreeMap<&str, u32>>> = Arc::default();
    let noted = Arc::clone(&calls);
    let counted = FaultyStore::with_faults(Arc::clone(&memory) as Arc<dyn Store>, move |verb| {
        let names =
            [(Verb::ReportHistory, "report"), (Verb::History, "read"), (Verb::FoldHistory, "fold")];
        let name = names.into_iter().find_map(|(one, name)| (one == verb).then_some(name));
        if let (Some(name), Ok(mut calls)) = (name, noted.lock()) {
            *calls.entry(name).or_default() += 1;
        }
        Box::pin(async { None })
    });
    let engine = engine(Arc::new(counted)).await?;
    // Five hours, with ten jobs in each minute of the first one.
    let hours = 5;
    for minute in 0..hours * 60 {
        if minute < 60 {
            for _ in 0..10 {
                engine.submit_raw("work", Vec::new()).await?;
            }
        }
        tokio::time::sleep(seconds(60)).await;
    }
    let calls = calls.lock().map_err(|_| "a lock")?.clone();
    let minutes = hours * 60;
    // Six in a busy minute, one in an idle minute and one at its end.
    assert!(
        calls["report"] >= minutes && calls["report"] <= 60 * 7 + (minutes - 60) * 2,
        "{calls:?}"
    );
    // Two reads every five minutes, and a deletion; each five minutes are merged once.
    assert!(calls["read"] <= 2 * (minutes / 5 + 1), "{calls:?}");
    assert!(calls["fold"] <= 2 * (minutes / 5 + 1) + 6, "{calls:?}");
    let rows = rows(&memory).await?;
    let wide = rows.values().filter(|slot| slot.minutes == 5).count();
    assert!((22..=25).contains(&wide), "{wide} of two hours");
    let jobs: u64 = rows.values().map(|slot| slot.total(&[kind("work")]).succeeded).sum();
    assert_eq!(jobs, 600, "merging loses nothing");
    Ok(())
}

/// Answers that are lost, and a store that is away for some minutes, change no count.
#[tokio::test(start_paused = true)]
async fn reports_that_fail_are_repeated_and_count_once() -> Tested {
    for fault in [Fault::Before, Fault::After, Fault::NoAnswer] {
        let memory = Arc::new(store());
        let fails = Arc::new(AtomicBool::new(true));
        let is_away = Arc::clone(&fails);
        let faulty = FaultyStore::with_faults(Arc::clone(&memory) as Arc<dyn Store>, move |verb| {
            let fails = matches!(verb, Verb::ReportHistory) && is_away.load(Ordering::SeqCst);
            Box::pin(async move { fails.then_some(fault) })
        });
        let engine = engine(Arc::new(faulty)).await?;
        for _ in 0..3 {
            engine.submit_raw("work", Vec::new()).await?;
            tokio::time::sleep(seconds(65)).await;
        }
        assert_eq!(rows(&memory).await?.is_empty(), !fault.is_done(), "{fault:?}");
        fails.store(false, Ordering::SeqCst);
        tokio::time::sleep(seconds(90)).await;
        let points = history(&engine).await?;
        assert_eq!(total(&points, "work").succeeded, 3, "{fault:?}");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

/// The counts of nodes add up.
#[tokio::test(start_paused = true)]
async fn nodes_are_added_up() -> Tested {
    let memory: Arc<dyn Store> = Arc::new(store());
    let mut engines = Vec::new();
    for name in ["node-1", "node-2"] {
        let settings = EngineSettings { name: name.to_owned(), ..EngineSettings::default() };
        let engine = Engine::builder(Arc::clone(&memory))
            .settings(settings)
            .raw_handler("work", |_| async { Report::Done });
        engines.push(engine.start().await?);
    }
    for engine in &engines {
        engine.submit_raw("work", Vec::new()).await?;
    }
    // Later, old rows of both nodes are one row.
    for wait in [30, 3_600] {
        tokio::time::sleep(seconds(wait)).await;
        for engine in &engines {
            let work = total(&history(engine).await?, "work");
            assert_eq!((work.submitted, work.succeeded), (2, 2), "after {wait} s");
        }
    }
    Ok(())
}

/// After the store's clock was set back, each minute of that time comes twice. Nothing that is known of it is replaced.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_loses_no_counts() -> Tested {
    let clock = ClockOffset::default();
    let engine = engine(Arc::new(store_with(clock.clone()))).await?;
    for round in 0..24 {
        engine.submit_raw("work", Vec::new()).await?;
        tokio::time::sleep(seconds(15)).await;
        if round == 11 {
            clock.turn_back(seconds(150));
        }
    }
    tokio::time::sleep(seconds(30)).await;
    let points = history(&engine).await?;
    assert_eq!(total(&points, "work").succeeded, 24);
    Ok(())
}
