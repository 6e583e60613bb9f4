//! Checks that extreme durations do not make an engine panic, stall or lose a job.

use crate::still::store;
use proptest::prelude::*;
use rewheel::{Backoff, Category, Verdict, millis, seconds};
use rewheel_core::store::{KindStore, ReadStore};
use rewheel_core::{
    Actor, Failure, KindName, Limits, NewJob, NewKind, Report, State, When, WorkerOwner,
};
use rewheel_engine::meters::Value;
use rewheel_engine::notify::NotifySettings;
use rewheel_engine::{
    BreakerSettings, BudgetSettings, Engine, EngineSettings, FollowUp, JobContext, KindSettings,
    Rate, RunnerKind, Schedule, TenantSettings, Timing, WorkerResult,
};
use rewheel_stores::MemoryStore;
use std::collections::BTreeSet;
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
    let kind = NewKind {
        name: KindName::parse("work")?,
        settings: stored.to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
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

/// A setting that takes a duration.
type Set<T> = (&'static str, fn(&mut T, Duration));

const OF_ENGINES: [Set<EngineSettings>; 9] = [
    ("lease_ttl", |to, time| to.lease_ttl = time),
    ("horizon", |to, time| to.horizon = time),
    ("poll", |to, time| to.poll = time),
    ("overdue_grace", |to, time| to.overdue_grace = time),
    ("statement_timeout", |to, time| to.statement_timeout = time),
    ("housekeeping", |to, time| to.housekeeping = time),
    ("retention_ended", |to, time| to.retention_ended = time),
    ("retention_keys", |to, time| to.retention_keys = time),
    ("retention_audit", |to, time| to.retention_audit = time),
];

const OF_NOTICES: [Set<NotifySettings>; 2] =
    [("window", |to, time| to.window = time), ("timeout", |to, time| to.timeout = time)];

const OF_KINDS: [Set<KindSettings>; 10] = [
    ("attempt_timeout", |to, time| to.attempt_timeout = time),
    ("attempt_timeout_ceiling", |to, time| to.attempt_timeout_ceiling = Some(time)),
    ("delay_floor", |to, time| to.delay_floor = Some(time)),
    ("sticky_max", |to, time| to.sticky_max = time),
    ("keep_succeeded", |to, time| to.keep_succeeded = time),
    ("retry_after_max", |to, time| to.retry_after_max = time),
    ("backoff", |to, time| to.backoff = Backoff::fixed(time)),
    ("open_for", |to, time| {
        let breaker = BreakerSettings { window: 1, failure_ratio: 0.5, open_for: time };
        to.breaker = Some(breaker);
    }),
    ("rate", |to, time| to.rate = rate(time)),
    ("retry_budget", |to, time| {
        to.retry_budget = rate(time).map(|floor| BudgetSettings { ratio: 0.1, floor });
    }),
];

/// A rate whose period can be this long: others cannot be created.
fn rate(time: Duration) -> Option<Rate> {
    let is_period = !time.is_zero() && time <= seconds(86_400);
    is_period.then(|| Rate::new(3, time))
}

fn durations() -> impl Strategy<Value = Duration> {
    let mut extremes = vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(999),
        millis(1),
        seconds(86_400),
        Duration::from_nanos(u64::MAX),
        Duration::from_millis(u64::MAX / 2),
        Limits::DURATION_MAX + Duration::from_nanos(1),
    ];
    extremes.extend(LONG);
    prop_oneof![
        4 => prop::sample::select(extremes),
        2 => (0..100_000_u64).prop_map(Duration::from_millis),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => any::<u64>().prop_map(Duration::from_millis),
        1 => (any::<u64>(), 0..1_000_000_000_u32)
            .prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

/// Runs a test in a runtime whose time is simulated.
fn simulated(test: impl Future<Output = Tested>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let ended = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(test));
    assert!(ended.is_ok(), "{ended:?}");
}

/// Checks that no loop of an engine has failed or was restarted.
fn check_loops(engine: &Engine) {
    assert_eq!(engine.status().failed, None);
    let readings = engine.meters(None);
    let restarts = readings.iter().find(|one| one.meter.name == "rewheel.engine.loop.restarts");
    let samples = restarts.iter().flat_map(|reading| &reading.samples);
    let panicked: Vec<_> = samples.filter(|one| !matches!(one.value, Value::Count(0))).collect();
    assert!(panicked.is_empty(), "{panicked:?}");
}

/// Runs jobs that end in every way, for two seconds.
async fn live_through(
    store: MemoryStore,
    builder: rewheel_engine::EngineBuilder,
    time: Duration,
) -> Tested {
    let engine = builder
        .raw_handler("work", move |ctx: JobContext| async move { says(&ctx, time) })
        .start()
        .await?;
    let mut jobs = Vec::new();
    for payload in ["done", "fail", "retry", "snooze"] {
        jobs.push(engine.submit_raw("work", payload.into()).tenant("acme").await?.id);
    }
    tokio::time::sleep(seconds(2)).await;
    check_loops(&engine);
    for job in jobs {
        // A job that is not kept for any time may be gone.
        let job = store.get(job).await?;
        assert!(job.is_none_or(|job| job.state() != State::Leased || job.attempt < 10_000));
    }
    engine.shutdown(time).await;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn each_setting_of_an_engine_is_refused_or_works(
        setting in prop::sample::select(OF_ENGINES.to_vec()), time in durations(),
    ) {
        let mut settings = EngineSettings::default();
        setting.1(&mut settings, time);
        if let Err(error) = settings.check() {
            prop_assert!(error.to_string().contains(setting.0), "{}", error);
            return Ok(());
        }
        simulated(async {
            let store = store();
            let builder = Engine::builder(Arc::new(store.clone())).settings(settings);
            live_through(store, builder, seconds(1)).await
        });
    }

    #[test]
    fn each_setting_of_a_kind_is_refused_or_works(
        setting in prop::sample::select(OF_KINDS.to_vec()), time in durations(),
    ) {
        let mut settings = KindSettings::default();
        setting.1(&mut settings, time);
        if let Err(error) = settings.check() {
            prop_assert!(error.to_string().contains(setting.0), "{}", error);
            return Ok(());
        }
        simulated(async {
            let store = store();
            let tenant = TenantSettings { rate: rate(time), ..TenantSettings::default() };
            let builder = Engine::builder(Arc::new(store.clone()));
            let builder = builder.kind("work", settings).tenant("acme", tenant);
            live_through(store, builder, time).await
        });
    }

    #[test]
    fn each_setting_of_notices_is_refused_or_works(
        setting in prop::sample::select(OF_NOTICES.to_vec()), time in durations(),
    ) {
        let mut settings = NotifySettings::default();
        setting.1(&mut settings, time);
        if let Err(error) = settings.check() {
            prop_assert!(error.to_string().contains(setting.0), "{}", error);
            return Ok(());
        }
        simulated(async {
            let store = store();
            let builder = Engine::builder(Arc::new(store.clone())).notify_settings(settings);
            live_through(store, builder, seconds(1)).await
        });
    }

    #[test]
    fn each_option_of_a_job_is_refused_or_works(option in 0..4_usize, time in durations()) {
        simulated(async {
            let store = store();
            let engine = Engine::builder(Arc::new(store.clone()))
                .raw_handler("work", move |ctx: JobContext| async move { says(&ctx, time) })
                .start()
                .await?;
            for payload in ["done", "fail", "retry", "snooze"] {
                let submit = engine.submit_raw("work", payload.into());
                let submitted = match option {
                    0 => submit.delay(time).await,
                    1 => submit.deadline_in(time).await,
                    2 => submit.attempt_timeout(time).await,
                    _ => submit.backoff(Backoff::fixed(time)).await,
                };
                match submitted {
                    Ok(job) => assert!(store.get(job.id).await?.is_some()),
                    Err(error) => assert!(error.to_string().len() > 10, "{error}"),
                }
            }
            tokio::time::sleep(seconds(2)).await;
            check_loops(&engine);
            engine.shutdown(time).await;
            Ok(())
        });
    }

    #[test]
    fn each_duration_of_a_debounce_is_refused_or_works(
        time in durations(), other in durations(), has_limit in any::<bool>(),
    ) {
        simulated(async {
            let store = store();
            let engine = Engine::builder(Arc::new(store.clone()))
                .raw_handler("work", move |ctx: JobContext| async move {
                    let next = FollowUp::raw("next", Vec::new()).key("page-7");
                    let next = match has_limit {
                        true => next.debounce_up_to(time, other),
                        false => next.debounce(time),
                    };
                    match ctx.submit(next) {
                        Ok(_) => Report::Done,
                        Err(error) => Report::dead(error.to_string()),
                    }
                })
                .raw_handler("next", |_| async { Report::Done })
                .start()
                .await?;
            // The second submit postpones the job of the first.
            for payload in ["1", "2"] {
                let submit = engine.submit_raw("work", payload.into()).key("page-7");
                let submitted = match has_limit {
                    true => submit.debounce_up_to(time, other).await,
                    false => submit.debounce(time).await,
                };
                match submitted {
                    Ok(job) => assert!(store.get(job.id).await?.is_some()),
                    Err(error) => assert!(error.to_string().contains("debounce"), "{error}"),
                }
            }
            engine.submit_raw("work", b"plain".to_vec()).await?;
            tokio::time::sleep(seconds(2)).await;
            check_loops(&engine);
            engine.shutdown(seconds(1)).await;
            Ok(())
        });
    }

    #[test]
    fn each_duration_of_a_schedule_is_refused_or_works(option in 0..5_usize, time in durations()) {
        simulated(async {
            let store = store();
            let engine = Engine::builder(Arc::new(store.clone()))
                .raw_handler("work", |_| async { Report::Done })
                .start()
                .await?;
            let job = NewJob::new(engine.new_id(), KindName::parse("work")?, Vec::new());
            let (mut every, mut job) = (seconds(1), job);
            match option {
                0 => every = time,
                1 => job.due = When::In(time),
                2 => job.deadline = Some(When::In(time)),
                3 => job.attempt_timeout = Some(time),
                _ => job.backoff = Some(Backoff::fixed(time)),
            }
            let schedule = Timing::every(every).and_then(|timing| Schedule::new(timing, job));
            let put = match schedule {
                Ok(schedule) => engine.put_schedule("tick", &schedule, &Actor::new("ops")).await,
                Err(error) => Err(error),
            };
            tokio::time::sleep(seconds(5)).await;
            check_loops(&engine);
            match put {
                Ok(put) => {
                    let status = engine.schedule("tick").await?.ok_or("it was put")?;
                    assert_eq!((status.state, status.id), (State::Scheduled, put.id));
                    // It fires, unless its period is longer.
                    let has_fired = status.fired > 0 || status.skipped > 0;
                    assert!(has_fired || every > seconds(4), "{status:?}");
                }
                Err(error) => {
                    assert!(error.to_string().len() > 10, "{error}");
                    assert_eq!(engine.schedule("tick").await?, None);
                }
            }
            engine.shutdown(seconds(1)).await;
            Ok(())
        });
    }

    #[test]
    fn each_time_of_a_wait_for_a_result_ends_or_lasts(time in durations()) {
        simulated(async {
            let store = store();
            let kind = KindSettings { result: true, ..KindSettings::default() };
            let engine = Engine::builder(Arc::new(store.clone()))
                .kind("work", kind)
                .raw_handler("work", |ctx: JobContext| async move {
                    let _ = ctx.set_result("text/plain", b"17".to_vec());
                    Report::Done
                })
                .start()
                .await?;
            let done = engine.submit_raw("work", Vec::new()).await?.id;
            tokio::time::sleep(seconds(2)).await;
            assert_eq!(engine.result(done, time).await?.body, b"17");
            let later = engine.submit_raw("work", Vec::new()).delay(seconds(60)).await?.id;
            let waited = tokio::time::timeout(seconds(30), engine.result(later, time)).await;
            assert!(!matches!(waited, Ok(Ok(_))), "{waited:?}");
            assert!(waited.is_ok() || time > seconds(29), "{waited:?}");
            check_loops(&engine);
            engine.shutdown(seconds(1)).await;
            Ok(())
        });
    }

    #[test]
    fn each_duration_of_a_worker_is_refused_or_works(time in durations(), other in durations()) {
        simulated(async {
            let store = store();
            let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
            let builder = Engine::builder(Arc::new(store.clone())).kind("work", kind);
            let engine = builder.start().await?;
            let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
            let reports = [
                Report::Done,
                Report::snooze(time),
                Report::retry_after(time, Failure::new(Category::Throttled, None, "busy")),
                failed(Verdict::Retry),
            ];
            for report in reports {
                engine.submit_raw("work", Vec::new()).await?;
                let leased = worker.claim(&[KindName::parse("work")?], 1).await?;
                let lease = leased[0].lease();
                if let Some(overdue) = worker.extend(lease, time).await? {
                    assert!(overdue >= store.now().await?, "{overdue:?}");
                }
                let job = BTreeSet::from([lease.job]);
                worker.heartbeat(&job, Some(other)).await?;
                worker.settle(vec![WorkerResult { lease, report, took: other, follow_ups: Vec::new(), result: None, code: None }]).await?;
            }
            worker.heartbeat(&BTreeSet::new(), Some(time)).await?;
            check_loops(&engine);
            engine.shutdown(time).await;
            Ok(())
        });
    }
}
