//! Tests of one engine with a single fault; each test is a defect that was once found.

use crate::still::store;
use rewheel::{Category, Clock, Verdict, millis, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, ClockOffset, KindStore, LeaseStore, OperateStore, ReadStore,
};
use rewheel_core::{
    Actor, Failure, Job, JobId, KindChange, KindName, Report, Retain, State, Timestamp,
};
use rewheel_engine::{Engine, EngineSettings, JobContext, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::mpsc;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn faulty(store: &MemoryStore) -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Arc::new(store.clone())))
}

async fn job(store: &MemoryStore, id: JobId) -> Job {
    store.get(id).await.expect("memory").expect("it is kept")
}

fn failing() -> Report {
    let failure = Failure::new(Category::Io, None, "connection reset");
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

#[tokio::test(start_paused = true)]
async fn a_settle_that_is_never_answered_is_repeated() -> Tested {
    let store = store();
    let faulty = faulty(&store);
    faulty.fail_next(Verb::Settle, Fault::NoAnswer);
    let engine = Engine::builder(faulty)
        .settings(EngineSettings { concurrency: 1, ..EngineSettings::default() })
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    engine.submit_raw("work", Vec::new()).await?;
    let second = engine.submit_raw("work", Vec::new()).await?.id;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(job(&store, second).await.state(), State::Succeeded);
    assert_eq!(engine.status().concurrency_free, 1);
    Ok(())
}

/// Starts an engine whose lease can be made to expire.
async fn renewing(
    store: &MemoryStore,
    handler: impl Fn(JobContext) -> Report + Send + Sync + 'static,
) -> Result<(Engine, Arc<AtomicBool>), Box<dyn std::error::Error>> {
    let silent = Arc::new(AtomicBool::new(false));
    let is_silent = Arc::clone(&silent);
    let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        let fails = verb == Verb::Renew && is_silent.load(Ordering::SeqCst);
        Box::pin(async move { fails.then_some(Fault::Before) })
    });
    let settings = EngineSettings { horizon: seconds(90), ..EngineSettings::default() };
    let handler = Arc::new(handler);
    let engine = Engine::builder(Arc::new(faulty))
        .settings(settings)
        .raw_handler("work", move |ctx: JobContext| {
            let handler = Arc::clone(&handler);
            async move {
                if ctx.payload() == b"slow" {
                    ctx.cancel().cancelled().await;
                }
                handler(ctx)
            }
        })
        .start()
        .await?;
    Ok((engine, silent))
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waited_through_a_doubtful_time_is_not_told_to_stop() -> Tested {
    let store = store();
    let (told, mut stopped) = mpsc::unbounded_channel();
    let (engine, silent) = renewing(&store, move |ctx| {
        let _ = told.send(ctx.cancel().is_cancelled());
        Report::Done
    })
    .await?;
    engine.submit_raw("work", Vec::new()).delay(seconds(60)).await?;
    tokio::time::sleep(seconds(2)).await;
    silent.store(true, Ordering::SeqCst);
    tokio::time::sleep(seconds(30)).await;
    assert!(engine.status().lease_expired);
    silent.store(false, Ordering::SeqCst);
    assert_eq!(stopped.recv().await, Some(false));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_stops_when_the_engine_tells_it_to_is_not_charged() -> Tested {
    let store = store();
    let (engine, silent) = renewing(&store, |_| failing()).await?;
    let doubted = engine.submit_raw("work", b"slow".to_vec()).attempts_max(1).await?.id;
    silent.store(true, Ordering::SeqCst);
    tokio::time::sleep(seconds(20)).await;
    silent.store(false, Ordering::SeqCst);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!((job(&store, doubted).await.attempt, engine.status().lease_expired), (0, false));
    engine.shutdown(seconds(1)).await;
    let job = job(&store, doubted).await;
    assert_eq!((job.state(), job.attempt, job.takeovers), (State::Scheduled, 0, 0));
    Ok(())
}

/// Not only after one or two statement timeouts.
#[tokio::test(start_paused = true)]
async fn a_job_whose_claim_got_no_answer_runs_soon() -> Tested {
    for verb in [Verb::Claim, Verb::Insert] {
        let store = store();
        let faulty = faulty(&store);
        faulty.fail_next(verb, Fault::NoAnswer);
        let (run, mut runs) = mpsc::unbounded_channel();
        let engine = Engine::builder(faulty)
            .raw_handler("work", move |_| {
                let _ = run.send(());
                async { Report::Done }
            })
            .start()
            .await?;
        let delay = if verb == Verb::Claim { seconds(2) } else { seconds(0) };
        let submit = engine.submit_raw("work", Vec::new()).delay(delay);
        let _ = tokio::time::timeout(seconds(1), submit).await;
        let ran = tokio::time::timeout(delay + seconds(13), runs.recv()).await;
        assert_eq!(ran, Ok(Some(())), "{verb:?}");
        assert!(runs.try_recv().is_err(), "it ran twice");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_back_what_was_leased_without_an_answer() -> Tested {
    for verb in [Verb::Claim, Verb::Insert] {
        let store = store();
        let faulty = faulty(&store);
        faulty.fail_next(verb, Fault::NoAnswer);
        let engine = Engine::builder(faulty)
            .without_self_audit()
            .raw_handler("work", |_| async { Report::Done })
            .start()
            .await?;
        let delay = if verb == Verb::Claim { seconds(2) } else { seconds(0) };
        let submit = engine.submit_raw("work", Vec::new()).delay(delay);
        let _ = tokio::time::timeout(seconds(1), submit).await;
        tokio::time::sleep(millis(100)).await;
        let page = rewheel_core::store::PageRequest::first(10);
        let id = store.list(&rewheel_core::store::Filter::default(), &page).await?.items[0].id;
        assert_eq!(job(&store, id).await.state(), State::Leased, "{verb:?}");
        let done = engine.shutdown(seconds(1)).await;
        let job = job(&store, id).await;
        assert_eq!((job.state(), job.takeovers, done.given_back), (State::Scheduled, 0, 1));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_is_renewed_though_nothing_happens() -> Tested {
    let settings = EngineSettings { lease_ttl: millis(300), ..EngineSettings::default() };
    let engine = Engine::builder(faulty(&store())).settings(settings).start().await?;
    for _ in 0..500 {
        tokio::time::sleep(millis(10)).await;
        assert!(!engine.status().lease_expired);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_though_the_store_is_slow_to_name_other_holders() -> Tested {
    let store = store();
    let slow = FaultyStore::with_faults(Arc::new(store.clone()), |verb| {
        let is_slow = matches!(verb, Verb::Holders | Verb::Sweep);
        Box::pin(async move {
            tokio::time::sleep(if is_slow { seconds(60) } else { millis(0) }).await;
            None
        })
    });
    let _engine = Engine::builder(Arc::new(slow)).start().await?;
    for _ in 0..60 {
        tokio::time::sleep(seconds(1)).await;
        assert!(store.holders().await?.iter().all(|holder| !holder.expired));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn lanes_that_give_nothing_do_not_hold_up_the_others() -> Tested {
    let store = store();
    let engine = Engine::builder(faulty(&store))
        .raw_handler("paused", |_| async { Report::Done })
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    let paused = KindName::parse("paused")?;
    store.change_kind(&paused, &KindChange::Pause, &Actor::new("test")).await?;
    for tenant in 0..100 {
        let job = engine.submit_raw("paused", Vec::new()).tenant(&format!("t{tenant}"));
        job.priority(9).await?;
    }
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(engine.submit_raw("work", Vec::new()).delay(seconds(3)).await?.id);
    }
    tokio::time::sleep(millis(2_900)).await;
    for id in ids {
        assert_eq!(job(&store, id).await.state(), State::Leased);
    }
    Ok(())
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_cut_is_settled_all_the_same() -> Tested {
    let store = store();
    let kind = KindSettings { attempts_max: 1, attempt_timeout: seconds(2), ..Default::default() };
    let engine = Engine::builder(faulty(&store))
        .kind("work", kind)
        .raw_handler("work", |_| async {
            let _grenade = Grenade;
            std::future::pending::<Report>().await
        })
        .start()
        .await?;
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    tokio::time::sleep(seconds(3)).await;
    let job = job(&store, id).await;
    assert_eq!((job.state(), job.attempt, job.takeovers), (State::Dead, 1, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn new_settings_of_a_kind_do_not_free_places_that_are_taken() -> Tested {
    let store = store();
    let one = KindSettings { concurrency_max: Some(1), ..KindSettings::default() };
    let (started, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(faulty(&store))
        .kind("one", one.clone())
        .raw_handler("one", move |_| {
            let _ = started.send(());
            std::future::pending::<Report>()
        })
        .start()
        .await?;
    engine.submit_raw("one", Vec::new()).await?;
    engine.submit_raw("one", Vec::new()).await?;
    starts.recv().await;
    let other = KindSettings { attempts_max: 5, ..one };
    engine.put_kind(&KindName::parse("one")?, &other, &Actor::new("test")).await?;
    tokio::time::sleep(seconds(5)).await;
    assert!(starts.try_recv().is_err(), "two run at once");
    Ok(())
}

/// The store's clock jumps ahead by an hour: running jobs look overdue, but their holder is alive.
#[tokio::test(start_paused = true)]
async fn a_store_whose_clock_jumps_ahead_takes_no_job_from_a_living_holder() -> Tested {
    let clock = ClockOffset::default();
    let started = Clock::system().now();
    let time = move || {
        let passed = Clock::system().now().since(started);
        Timestamp::from_millis(1_700_000_000_000).plus(passed)
    };
    let store = MemoryStore::with_time(time, clock.clone());
    let (runs, mut began) = mpsc::unbounded_channel();
    let settings = KindSettings { attempt_timeout: seconds(600), ..KindSettings::default() };
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("work", settings)
        .raw_handler("work", move |_| {
            let _ = runs.send(());
            async {
                tokio::time::sleep(seconds(300)).await;
                Report::Done
            }
        })
        .start()
        .await?;
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    assert_eq!(began.recv().await, Some(()));
    tokio::time::sleep(seconds(60)).await;
    clock.advance(seconds(3_600));
    tokio::time::sleep(seconds(239)).await;
    let leased = job(&store, id).await;
    assert_eq!((leased.state(), leased.takeovers), (State::Leased, 0));
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(job(&store, id).await.state(), State::Succeeded);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_suspect_whose_next_takeover_is_its_last_runs_without_another() -> Tested {
    let store = store();
    let kind = KindSettings { takeovers_max: 1, ..KindSettings::default() };
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let build = || {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        Engine::builder(faulty(&store)).kind("work", kind.clone()).raw_handler(
            "work",
            move |ctx: JobContext| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                async move {
                    if ctx.job().takeovers == 0 {
                        std::future::pending::<()>().await;
                    }
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(millis(500)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Report::Done
                }
            },
        )
    };
    let first = build().start().await?;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(first.submit_raw("work", Vec::new()).await?.id);
    }
    first.kill();
    let _second = build().start().await?;
    tokio::time::sleep(seconds(40)).await;
    for id in ids {
        assert_eq!(job(&store, id).await.state(), State::Succeeded);
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_store_refuses_becomes_a_dead_letter() -> Tested {
    let (store, runs) = (store(), Arc::new(AtomicU32::new(0)));
    let (faulty, counted) = (faulty(&store), Arc::clone(&runs));
    let refusing = Arc::clone(&faulty);
    let engine = Engine::builder(Arc::<FaultyStore>::clone(&faulty))
        .raw_handler("work", move |ctx: JobContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            refusing.refuse_next(ctx.id());
            async { Report::Done }
        })
        .start()
        .await?;
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    tokio::time::sleep(seconds(300)).await;
    let job = job(&store, id).await;
    assert_eq!((job.state(), job.attempt, runs.load(Ordering::SeqCst)), (State::Dead, 1, 1));
    assert_eq!(job.failure.expect("it says why").code(), Some("result_refused"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_running_handler_within_a_fifteenth_of_the_lease() -> Tested {
    let store = store();
    let (started, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::new(store.clone()))
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
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    starts.recv().await;
    tokio::time::sleep(millis(1_500)).await;
    let cancel = [Change::new(id, ChangeVerb::Cancel)];
    store.change(&cancel, &Actor::new("test"), Retain::default()).await?;
    tokio::time::sleep(millis(100)).await;
    assert_eq!(job(&store, id).await.state(), State::Cancelled);
    Ok(())
}
