//! Tests of one engine through its public API.

use crate::still::store;
use rewheel::{
    Backoff, Backoffs, Category, Jitter, Past, Retry, Retryable, SpillOutcome, Verdict, millis,
    minutes, seconds,
};
use rewheel_core::store::{
    Change, ChangeVerb, KindStore, LeaseStore, OperateStore, ReadStore, Store, StoreError,
};
use rewheel_core::{
    Actor, DueReason, Failure, GiveUp, Job, JobId, KindName, Report, Retain, State, Status,
};
use rewheel_engine::{Engine, EngineSettings, JobContext, JobKind, KindSettings, SubmitError};
use rewheel_stores::MemoryStore;
use rewheel_testkit::FaultyStore;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

type Tested = Result<(), Box<dyn std::error::Error>>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ChargeCard {
    order: u64,
}

impl JobKind for ChargeCard {
    const NAME: &'static str = "charge-card";
}

fn shared(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

/// Waits until a job has ended.
async fn ended(store: &MemoryStore, id: JobId) -> Job {
    loop {
        let job = store.get(id).await.expect("memory").expect("it is kept");
        if !job.state().is_live() {
            return job;
        }
        tokio::time::sleep(millis(5)).await;
    }
}

fn failing() -> Report {
    let failure = Failure::new(Category::Io, Some("ECONNRESET"), "connection reset");
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_retried_by_its_kinds_policy_until_it_succeeds() -> Tested {
    let (store, tries) = (store(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&tries);
    let kind = KindSettings { backoff: Backoff::fixed(seconds(3)), ..KindSettings::default() };
    let engine = Engine::builder(shared(&store))
        .kind("work", kind)
        .raw_handler("work", move |_| {
            let tried = counted.fetch_add(1, Ordering::SeqCst);
            async move { if tried < 2 { failing() } else { Report::Done } }
        })
        .start()
        .await?;
    let receipt = engine.submit_raw("work", b"{}".to_vec()).await?;
    let job = ended(&store, receipt.id).await;
    assert_eq!((job.state(), job.attempt), (State::Succeeded, 3));
    let attempts = store.attempts(receipt.id).await?;
    let told: Vec<_> = attempts.iter().map(|a| (a.attempt, a.decision.as_str(), a.delay)).collect();
    let retried = Some(seconds(3));
    assert_eq!(told, [(1, "retry", retried), (2, "retry", retried), (3, "succeed", None)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn attempts_that_run_out_make_a_dead_letter_or_fail_as_the_kind_says() -> Tested {
    let store = store();
    let kind = KindSettings {
        attempts_max: 2,
        backoff: Backoff::fixed(millis(10)),
        ..KindSettings::default()
    };
    let failed = KindSettings { on_give_up: GiveUp::Fail, ..kind.clone() };
    let engine = Engine::builder(shared(&store))
        .kind("dead", kind)
        .kind("fail", failed)
        .raw_handler("dead", |_| async { failing() })
        .raw_handler("fail", |_| async { failing() })
        .start()
        .await?;
    for (kind, state) in [("dead", State::Dead), ("fail", State::Failed)] {
        let receipt = engine.submit_raw(kind, Vec::new()).await?;
        let job = ended(&store, receipt.id).await;
        assert_eq!((job.state(), job.attempt), (state, 2));
        assert_eq!(job.failure.expect("it failed").code(), Some("ECONNRESET"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_typed_handler_gets_its_job_and_bad_bytes_are_not_retried() -> Tested {
    let store = store();
    let (seen, mut charges) = mpsc::unbounded_channel();
    let engine = Engine::builder(shared(&store))
        .handler(move |ctx: JobContext, job: ChargeCard| {
            let seen = seen.clone();
            async move {
                seen.send((job, ctx.attempt(), ctx.idempotency_key())).map_err(io::Error::other)
            }
        })
        .start()
        .await?;
    engine.submit(ChargeCard { order: 17 }).key("order-17").await?;
    let expected = (ChargeCard { order: 17 }, 1, "order-17".to_owned());
    assert_eq!(charges.recv().await, Some(expected));

    let bad = engine.submit_raw("charge-card", b"{\"order\":\"x\"}".to_vec()).await?;
    let job = ended(&store, bad.id).await;
    assert_eq!((job.state(), job.attempt), (State::Dead, 1));
    assert_eq!(job.failure.expect("it failed").category(), Category::BadPayload);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn panics_timeouts_and_deadlines_are_failures_of_their_job_alone() -> Tested {
    let store = store();
    let once = KindSettings { attempts_max: 1, ..KindSettings::default() };
    let short = KindSettings { attempt_timeout: seconds(2), ..once.clone() };
    let engine = Engine::builder(shared(&store))
        .kind("panics", once)
        .kind("hangs", short)
        .raw_handler("panics", |ctx: JobContext| async move {
            assert!(ctx.attempt() > 100, "no such card");
            Report::Done
        })
        .raw_handler("hangs", |_| async {
            std::future::pending::<()>().await;
            Report::Done
        })
        .start()
        .await?;
    let category = async |id| {
        let failure = ended(&store, id).await.failure.expect("it failed");
        (failure.category(), failure.message().to_owned())
    };
    let panicked = engine.submit_raw("panics", Vec::new()).await?;
    assert_eq!(category(panicked.id).await, (Category::Panic, "no such card".to_owned()));
    let hanging = engine.submit_raw("hangs", Vec::new()).await?;
    assert_eq!(category(hanging.id).await, (Category::Timeout, "no result within 2s".to_owned()));
    let late = engine.submit_raw("hangs", Vec::new()).deadline_in(seconds(1)).await?;
    assert_eq!(category(late.id).await.0, Category::Deadline);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_tells_its_handler_and_ends_cancelled() -> Tested {
    let store = store();
    let (started, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(shared(&store))
        .raw_handler("work", move |ctx: JobContext| {
            let started = started.clone();
            async move {
                let _ = started.send(());
                ctx.cancel().cancelled().await;
                failing()
            }
        })
        .start()
        .await?;
    let receipt = engine.submit_raw("work", Vec::new()).await?;
    starts.recv().await;
    let cancel = [Change::new(receipt.id, ChangeVerb::Cancel)];
    store.change(&cancel, &Actor::new("test"), Retain::default()).await?;
    assert_eq!(ended(&store, receipt.id).await.state(), State::Cancelled);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_back_what_has_not_started_and_uses_no_attempt() -> Tested {
    let store = store();
    let (started, mut starts) = mpsc::unbounded_channel();
    let settings = EngineSettings { concurrency: 2, ..EngineSettings::default() };
    let engine = Engine::builder(shared(&store))
        .settings(settings)
        .raw_handler("work", move |ctx: JobContext| {
            let started = started.clone();
            async move {
                let _ = started.send(ctx.id());
                let quick = ctx.payload() == b"quick";
                tokio::time::sleep(if quick { seconds(1) } else { seconds(25) }).await;
                Report::Done
            }
        })
        .start()
        .await?;
    let later = engine.submit_raw("work", b"quick".to_vec()).delay(seconds(3)).await?.id;
    tokio::time::sleep(millis(10)).await;
    let quick = engine.submit_raw("work", b"quick".to_vec()).await?.id;
    let slow = engine.submit_raw("work", b"slow".to_vec()).await?.id;
    let waiting = engine.submit_raw("work", b"quick".to_vec()).await?.id;
    starts.recv().await;
    starts.recv().await;
    tokio::time::sleep(millis(100)).await;

    let done = engine.shutdown(seconds(5)).await;
    assert_eq!((done.given_back, done.finished, done.abandoned), (2, 1, 1));
    assert_eq!(
        done.to_string(),
        "released 2 jobs that had not started, attempts finished: 1, attempts abandoned because they took too long: 1 (their jobs run again)"
    );
    assert_eq!(ended(&store, quick).await.state(), State::Succeeded);
    for id in [slow, waiting, later] {
        let job = store.get(id).await?.expect("it is there");
        assert_eq!((job.state(), job.attempt, job.takeovers), (State::Scheduled, 0, 0));
    }
    assert!(store.holders().await?.iter().all(|holder| holder.died.is_some()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dead_engines_jobs_pass_to_another() -> Tested {
    let store = store();
    let build = || {
        Engine::builder(shared(&store)).raw_handler("work", |ctx: JobContext| async move {
            let first = ctx.job().takeovers == 0;
            tokio::time::sleep(if first { seconds(20) } else { millis(1) }).await;
            Report::Done
        })
    };
    let first = build().start().await?;
    let receipt = first.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(seconds(1)).await;
    first.kill();
    let _second = build().start().await?;
    let job = ended(&store, receipt.id).await;
    assert_eq!((job.state(), job.attempt, job.takeovers), (State::Succeeded, 1, 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn places_are_shared_out_by_kind() -> Tested {
    let store = store();
    let one = KindSettings { concurrency_max: Some(1), ..KindSettings::default() };
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, high) = (Arc::clone(&running), Arc::clone(&most));
    let engine = Engine::builder(shared(&store))
        .kind("one", one)
        .raw_handler("one", move |_| {
            let (now, high) = (Arc::clone(&now), Arc::clone(&high));
            async move {
                high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(millis(50)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Report::Done
            }
        })
        .start()
        .await?;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(engine.submit_raw("one", Vec::new()).await?.id);
    }
    for id in ids {
        assert_eq!(ended(&store, id).await.state(), State::Succeeded);
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_out_becomes_a_durable_job_with_the_same_key() -> Tested {
    let store = store();
    let kind = KindSettings { backoff: Backoff::fixed(seconds(3)), ..KindSettings::default() };
    let engine = Engine::builder(shared(&store))
        .kind("charge-card", kind)
        .handler(|_: JobContext, _: ChargeCard| async { Ok::<(), io::Error>(()) })
        .start()
        .await?;
    let call = || {
        (|| async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) })
            .retry(Retry::fixed(millis(10)).attempts_max(3))
    };
    let spilled = call().or_spill_to(&engine, (ChargeCard { order: 17 }, "order-17")).await?;
    let SpillOutcome::Spilled(receipt) = spilled else { panic!("it cannot succeed") };
    let job = ended(&store, receipt.id).await;
    assert_eq!(
        (job.state(), job.key.as_ref().expect("it has one").as_str()),
        (State::Succeeded, "order-17")
    );
    assert_eq!(job.attempts_max, Some(8 - 3), "the attempts of the call count");
    assert_eq!((job.attempt, job.attempts_before), (4, 3), "they are part of the number");
    assert_eq!(job.due.since(job.created), seconds(3), "it waits as after any failed attempt");
    let again = call().or_spill_to(&engine, (ChargeCard { order: 17 }, "order-17")).await?;
    assert!(
        matches!(again, SpillOutcome::Spilled(second) if second.duplicate && second.id == receipt.id)
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn bad_input_names_the_field_and_stores_nothing() -> Tested {
    let store = store();
    let engine = Engine::builder(shared(&store))
        .settings(EngineSettings { payload_bytes_max: 10, ..EngineSettings::default() })
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    let says = async |submit: rewheel_engine::Submit<'_>| submit.await.unwrap_err().to_string();
    let work = || engine.submit_raw("work", Vec::new());
    assert_eq!(says(work().priority(10)).await, "priority must be 0..9");
    assert!(says(work().key(&"k".repeat(256))).await.starts_with("key must be 1 to 255 bytes"));
    assert!(says(work().tenant("")).await.starts_with("tenant must be"));
    assert_eq!(says(work().attempts_max(0)).await, "attempts_max must be 1 or more");
    assert!(says(engine.submit_raw("Work", Vec::new())).await.starts_with("kind must have"));
    assert!(says(engine.submit_raw("unknown", Vec::new())).await.contains("kind does not exist"));
    assert!(says(engine.submit_raw("work", vec![0; 11])).await.contains("11 bytes"));
    let late = work().deadline_in(Duration::ZERO).await;
    assert!(matches!(late, Err(SubmitError::Refused(_))));
    assert_eq!(store.books().await?.submitted, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused_at_start() {
    let settings = EngineSettings { concurrency: 0, ..EngineSettings::default() };
    let error = Engine::builder(shared(&store())).settings(settings).start().await.unwrap_err();
    assert_eq!(error.to_string(), "concurrency: must be 1 or more");
    let name = EngineSettings { name: "n".repeat(129), ..EngineSettings::default() };
    let error = Engine::builder(shared(&store())).settings(name).start().await.unwrap_err();
    assert_eq!(error.to_string(), "name: must be 1 to 128 bytes");
    let settings = EngineSettings { concurrency: usize::MAX, ..EngineSettings::default() };
    let error = Engine::builder(shared(&store())).settings(settings).start().await.unwrap_err();
    assert_eq!(error.to_string(), "concurrency: must be 1000000 or fewer");
    let hasty = EngineSettings { statement_timeout: Duration::ZERO, ..EngineSettings::default() };
    let error = Engine::builder(shared(&store())).settings(hasty).start().await.unwrap_err();
    assert_eq!(error.to_string(), "statement_timeout: must be 1ms or longer");
    let kind = KindSettings { attempts_max: 0, ..KindSettings::default() };
    let error = Engine::builder(shared(&store())).kind("work", kind).start().await.unwrap_err();
    assert_eq!(error.to_string(), "kind `work`: attempts_max: must be 1 or more");
    let builder =
        Engine::builder(shared(&store())).raw_handler("Not A Kind", |_| async { failing() });
    assert!(builder.start().await.unwrap_err().to_string().starts_with("kind `Not A Kind` must"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_runner_is_stored_and_left_alone() -> Tested {
    let store = store();
    let engine =
        Engine::builder(shared(&store)).kind("elsewhere", KindSettings::default()).start().await?;
    let receipt = engine.submit_raw("elsewhere", Vec::new()).await?;
    tokio::time::sleep(seconds(60)).await;
    let job = store.get(receipt.id).await?.expect("it is there");
    assert_eq!((job.state(), job.attempt), (State::Scheduled, 0));
    assert!(!engine.runs(&KindName::parse("elsewhere")?));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_asks_its_store_at_most_three_times_a_second() -> Tested {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let store = FaultyStore::with_faults(shared(&store()), move |_verb| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { None })
    });
    let _engine = Engine::builder(Arc::new(store))
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    tokio::time::sleep(seconds(10)).await;
    let before = asked.load(Ordering::SeqCst);
    tokio::time::sleep(seconds(60)).await;
    let statements = asked.load(Ordering::SeqCst) - before;
    assert!(statements <= 180, "{statements} statements in a minute");
    Ok(())
}

/// No node could run it: such a kind would silently wait with another backoff.
#[tokio::test(start_paused = true)]
async fn a_kind_with_a_backoff_that_is_not_registered_does_not_start() -> Tested {
    let backoff = Backoff::custom("payday", |_| seconds(1));
    let kind = KindSettings { backoff, ..KindSettings::default() };
    let store = store();
    let builder = Engine::builder(shared(&store)).kind("work", kind.clone());
    let error = builder.start().await.expect_err("it is not registered");
    let expected = "kind `work`: backoff: `payday` is not registered: register it with EngineBuilder::backoffs";
    assert_eq!(error.to_string(), expected);
    assert_eq!(store.kinds().await?, [], "nothing was stored");
    let engine = Engine::builder(shared(&store)).start().await?;
    let (name, by) = (KindName::parse("work")?, Actor::new("test"));
    let refused = engine.put_kind(&name, &kind, &by).await;
    assert!(matches!(refused, Err(StoreError::Rejected(_))), "{refused:?}");
    let refused = engine.put_kind_if(&name, &kind, None, &by).await;
    assert!(matches!(refused, Err(StoreError::Rejected(_))), "{refused:?}");
    assert_eq!(store.kinds().await?, [], "nothing was stored");
    Ok(())
}

/// The store has the name of a custom backoff. A node that knows it uses its code; another one uses the backoff of the kind, and
/// says so.
#[tokio::test]
async fn a_custom_backoff_is_stored_by_its_name() -> Tested {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let store = rewheel_stores::connect(&url).await?;
    let mut backoffs = Backoffs::new();
    let payday = backoffs.register_custom("payday", |_: &Past| minutes(50))?.max(minutes(60));
    let payday = payday.jitter(Jitter::NONE);
    let failing = |_| async { Report::retry(Failure::new(Category::Io, None, "refused")) };
    let kind = KindSettings { backoff: Backoff::fixed(minutes(7)), ..KindSettings::default() };
    let knows = Engine::builder(Arc::clone(&store))
        .backoffs(backoffs)
        .kind("work", kind)
        .raw_handler("work", failing)
        .start()
        .await?;
    let stranger = Backoff::custom("stranger", |_| seconds(1));
    let error = knows.submit_raw("work", Vec::new()).backoff(stranger).await.unwrap_err();
    assert!(error.to_string().starts_with("backoff `stranger` is not registered"), "{error}");
    let known = waits(&store, knows.submit_raw("work", Vec::new()).backoff(payday).await?.id).await;
    assert_eq!((known.because, known.backoff), (DueReason::Backoff, Some(payday)));
    let later = knows.submit_raw("work", Vec::new()).backoff(payday).delay(minutes(1)).await?.id;
    knows.shutdown(seconds(1)).await;
    let other = Engine::builder(Arc::clone(&store)).raw_handler("work", failing).start().await?;
    other.change(Change::new(later, ChangeVerb::Retry), &Actor::new("test")).await?;
    let unknown = waits(&store, later).await;
    assert_eq!(unknown.because, DueReason::UnknownBackoff);
    let delay = unknown.due.since(store.now().await?);
    assert!(delay > minutes(6) && delay <= minutes(7), "{delay:?}");
    other.shutdown(seconds(1)).await;
    Ok(())
}

/// Waits until a job was tried once and waits for its retry.
async fn waits(store: &Arc<dyn Store>, job: JobId) -> Job {
    loop {
        let found = store.get(job).await.expect("the store answers").expect("the job is kept");
        if found.attempt == 1 && matches!(found.status, Status::Scheduled) {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_without_settings_get_the_defaults_of_the_builder() -> Tested {
    let store = store();
    let start = |defaults: Option<u32>| {
        let own = KindSettings { attempts_max: 2, ..KindSettings::default() };
        let builder = Engine::builder(shared(&store))
            .raw_handler("open", |_| async { Report::Done })
            .raw_handler("own", |_| async { Report::Done })
            .kind("own", own);
        let settings = |attempts_max| KindSettings { attempts_max, ..KindSettings::default() };
        match defaults {
            Some(attempts_max) => builder.kind_defaults(settings(attempts_max)).start(),
            None => builder.start(),
        }
    };
    // The last start has no defaults: the kind keeps its settings.
    for (defaults, expected) in [(Some(5), 5), (Some(6), 6), (None, 6)] {
        let engine = start(defaults).await?;
        let attempts = |name| -> Result<Option<u32>, Box<dyn std::error::Error>> {
            let settings = engine.kind_settings(&KindName::parse(name)?);
            Ok(settings.map(|settings| settings.attempts_max))
        };
        assert_eq!((attempts("open")?, attempts("own")?), (Some(expected), Some(2)));
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test]
async fn defaults_that_cannot_work_are_refused_and_nothing_is_stored() -> Tested {
    let mut backoffs = Backoffs::new();
    let unregistered = backoffs.register_custom("by-queue", |_: &Past| seconds(1))?;
    let usual = KindSettings::default;
    for (defaults, why) in [
        (KindSettings { attempts_max: 0, ..usual() }, "attempts_max: must be 1 or more"),
        (
            KindSettings { attempts_max: 9, attempts_ceiling: Some(8), ..usual() },
            "attempts_ceiling: must not be lower than attempts_max",
        ),
        (
            KindSettings { backoff: unregistered, ..usual() },
            "backoff: `by-queue` is not registered",
        ),
    ] {
        let store = store();
        let builder = Engine::builder(shared(&store)).kind_defaults(defaults);
        let started = builder.raw_handler("open", |_| async { Report::Done }).start().await;
        let error = started.unwrap_err().to_string();
        assert!(error.starts_with(&format!("kind defaults: {why}")), "{error}");
        assert_eq!(store.kinds().await?, []);
    }
    Ok(())
}
