//! Checks that very long durations do not make an engine panic, stall or lose a job.

use crate::still::store;
use rewheel::{Backoff, Category, Verdict, seconds};
use rewheel_core::store::{KindStore, ReadStore};
use rewheel_core::{Actor, Failure, KindName, Limits, NewKind, Report, State};
use rewheel_engine::{BreakerSettings, Engine, EngineSettings, JobContext, KindSettings};
use std::sync::Arc;
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Durations around every boundary that may cause errors.
const LONG: [Duration; 5] = [
    Duration::MAX,
    Duration::from_secs(u64::MAX),
    Duration::from_millis(u64::MAX),
    Duration::from_secs(u64::MAX / 1_000 + 1),
    Limits::DURATION_MAX,
];

fn failed(verdict: Verdict) -> Report {
    Report::AttemptFailed { verdict, failure: Failure::new(Category::Io, None, "connection reset") }
}

/// Reports what the payload requests, with this duration.
fn says(ctx: &JobContext, long: Duration) -> Report {
    match ctx.payload() {
        b"retry" => failed(Verdict::RetryAfter(long)),
        b"fail" => failed(Verdict::Retry),
        b"snooze" => Report::Snooze(long),
        _ => Report::Done,
    }
}

#[tokio::test(start_paused = true)]
async fn what_handlers_and_submits_say_is_lived_through() -> Tested {
    for long in LONG {
        let store = store();
        let engine = Engine::builder(Arc::new(store.clone()))
            .raw_handler("work", move |ctx: JobContext| async move { says(&ctx, long) })
            .start()
            .await?;
        let mut waiting = Vec::new();
        for payload in ["retry", "snooze"] {
            waiting.push(engine.submit_raw("work", payload.into()).await?.id);
        }
        let slow = engine.submit_raw("work", b"fail".to_vec()).backoff(Backoff::fixed(long));
        let slow = slow.await?.id;
        waiting.push(engine.submit_raw("work", b"done".to_vec()).delay(long).await?.id);
        let patient = engine.submit_raw("work", b"done".to_vec()).deadline_in(long).await?.id;
        tokio::time::sleep(seconds(60)).await;
        for id in waiting {
            let job = store.get(id).await?.expect("it lives");
            assert_eq!(job.state(), State::Scheduled, "{long:?}: {job:?}");
        }
        // An unlimited delay is not possible: such a job is given up.
        let slow = store.get(slow).await?.expect("it is kept").state();
        assert!([State::Scheduled, State::Dead].contains(&slow), "{long:?}: {slow}");
        assert_eq!(store.get(patient).await?.map(|job| job.state()), Some(State::Succeeded));
        engine.shutdown(long).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn settings_that_are_too_long_are_refused_and_stored_ones_are_shortened() -> Tested {
    let store = store();
    for long in LONG.into_iter().filter(|long| *long > Limits::DURATION_MAX) {
        let wrong = KindSettings { attempt_timeout: long, ..KindSettings::default() };
        assert!(wrong.check().is_err());
        let breaker = Some(BreakerSettings { open_for: long, ..BreakerSettings::default() });
        assert!(KindSettings { breaker, ..KindSettings::default() }.check().is_err());
        assert!(
            EngineSettings { overdue_grace: long, ..EngineSettings::default() }.check().is_err()
        );
    }
    // As another version, or a user with a database client, may have written them.
    let stored = r#"{"attempt_timeout":"18446744073709551615s","sticky_max":"18446744073709551615s",
        "keep_succeeded":"18446744073709551615s","retry_after_max":"18446744073709551615s",
        "breaker":{"window":1,"failure_ratio":0.5,"open_for":"18446744073709551615s"}}"#;
    let kind =
        NewKind { name: KindName::parse("work")?, settings: stored.to_owned(), takeovers_max: 3 };
    store.put_kinds(&[kind], &Actor::new("test")).await?;
    let engine = Engine::builder(Arc::new(store.clone()))
        .raw_handler("work", |ctx: JobContext| async move { says(&ctx, Duration::ZERO) })
        .raw_handler("other", |_| async { Report::Done })
        .start()
        .await?;
    // One failure opens the breaker and parks the kind; the parking loop continues.
    let failing = engine.submit_raw("work", b"fail".to_vec()).await?.id;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(store.get(failing).await?.map(|job| job.state()), Some(State::Scheduled));
    let other = engine.submit_raw("other", Vec::new()).await?.id;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(store.get(other).await?.map(|job| job.state()), Some(State::Succeeded));
    engine.shutdown(seconds(1)).await;
    Ok(())
}
