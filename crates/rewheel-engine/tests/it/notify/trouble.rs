//! Tests of the other notifications, and of notifiers that fail.

use super::support::{
    Mood, Person, Tested, builder, counts, failing, kind, pass, store, submit, telling,
};
use rewheel::{millis, seconds};
use rewheel_core::{Actor, Report};
use rewheel_engine::notify::{Event, NotifySettings, Route, Severity};
use rewheel_engine::{BreakerSettings, Engine, KindSettings, StartError};
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A notifier that hangs or panics does not affect others.
#[tokio::test(start_paused = true)]
async fn a_broken_notifier_stops_no_job() -> Tested {
    for mood in [Mood::Hangs, Mood::Panics, Mood::Fails] {
        let (store, person, broken) = (store(), Person::new(Mood::Takes), Person::new(mood));
        let engine = telling(&store, &person)
            .notifier("broken", Route::default(), broken.clone())
            .start()
            .await?;
        submit(&engine, 20).await;
        assert_eq!(person.hears(20).await.len(), 20, "{mood:?}");
        pass(1_200).await;
        let counts = &engine.notify_counts()[1];
        assert!(counts.failed >= 20 && counts.sent == 0, "{mood:?}: {counts:?}");
        let tries = broken.calls() as f64 / counts.failed as f64;
        // A panic is not retried.
        let expected = if mood == Mood::Panics { 1.0 } else { 4.0 };
        assert!((tries - expected).abs() < 0.5, "{mood:?}: {tries} tries each");
        broken.set(Mood::Takes);
        pass(300).await;
        assert_eq!(broken.told().len(), 20, "{mood:?}: its loop is gone");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_the_queue_has_no_room_for_is_summed_up() -> Tested {
    let (store, slow) = (store(), Person::new(Mood::TakesAfter(seconds(5))));
    let settings = NotifySettings { queue_max: 3, ..NotifySettings::default() };
    let engine = telling(&store, &slow).notify_settings(settings).start().await?;
    submit(&engine, 10).await;
    pass(60).await;
    let counts = counts(&engine);
    assert_eq!(counts.offered, 10);
    assert_eq!(counts.sent + counts.suppressed, 10, "{counts:?}");
    assert!((3..=5).contains(&counts.sent), "{counts:?}");
    assert_eq!(slow.told().last().unwrap().more, Some(counts.suppressed));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_told_once_for_all_jobs_of_a_holder() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let sleeping = |_| async {
        std::future::pending::<()>().await;
        Report::Done
    };
    let first =
        Engine::builder(Arc::new(store.clone())).raw_handler("sleep", sleeping).start().await?;
    for _ in 0..5 {
        first.submit_raw("sleep", Vec::new()).await?;
    }
    pass(5).await;
    let dead = first.status().holder;
    first.kill();
    let _second = telling(&store, &person).start().await?;
    pass(60).await;
    let told = person.of(Event::Takeover);
    assert_eq!((told.len(), told[0].severity), (1, Severity::Warning));
    assert_eq!((&told[0].kind, told[0].job), (&Some(kind("sleep")), None));
    assert_eq!(told[0].text, format!("5 jobs of sleep were taken over from holder {dead}"));
    Ok(())
}

/// Changes of a busy store cause early renewals: these find the loops of an idle engine between two rests, which is not a stall.
#[tokio::test(start_paused = true)]
async fn an_idle_engine_beside_a_busy_one_is_no_trouble() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let _idle = telling(&store, &person).start().await?;
    let busy = Engine::builder(Arc::new(store.clone()))
        .raw_handler("other", |_| std::future::ready(Report::Done))
        .start()
        .await?;
    for _ in 0..600 {
        busy.submit_raw("other", Vec::new()).await?;
        tokio::time::sleep(millis(100)).await;
    }
    let told = person.told();
    assert!(told.is_empty(), "{told:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_told_at_first_and_when_it_ran_out() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let silent = Arc::new(AtomicBool::new(false));
    let is_silent = Arc::clone(&silent);
    let faulty = FaultyStore::with_faults(Arc::new(store), move |verb| {
        let fails = verb == Verb::Renew && is_silent.load(Ordering::SeqCst);
        Box::pin(async move { fails.then_some(Fault::Before) })
    });
    let _engine = builder(Arc::new(faulty))
        .notifier("person", Route::default(), person.clone())
        .start()
        .await?;
    for _ in 0..2 {
        silent.store(true, Ordering::SeqCst);
        pass(30).await;
        silent.store(false, Ordering::SeqCst);
        pass(30).await;
    }
    let told = person.of(Event::LeaseRenewalFailed);
    let told: Vec<_> = told.iter().map(|n| (n.severity, n.reason.as_deref().unwrap())).collect();
    let once = [(Severity::Warning, "renewal_failed"), (Severity::Error, "lease_ran_out")];
    assert_eq!(told, [once, once].concat());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_store_refuses_is_told() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let faulty = Arc::new(FaultyStore::new(Arc::new(store.clone())));
    let store = Arc::clone(&faulty);
    let engine = Engine::builder(store)
        .raw_handler("work", |_| async { Report::Done })
        .notifier("person", Route::default(), person.clone())
        .start()
        .await?;
    let job = engine.submit_raw("work", Vec::new()).delay(seconds(1)).await?.id;
    faulty.refuse_next(job);
    pass(30).await;
    let told = person.of(Event::PersistFailed);
    assert!(!told.is_empty());
    assert_eq!((told[0].job, told[0].severity), (Some(job), Severity::Critical));
    assert!(told[0].error.is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn housekeeping_that_fails_is_told_once() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let faulty = FaultyStore::with_faults(Arc::new(store), move |verb| {
        let fails = verb == Verb::Deadlines && broken.load(Ordering::SeqCst);
        Box::pin(async move { fails.then_some(Fault::Before) })
    });
    let _engine = builder(Arc::new(faulty))
        .notifier("person", Route::default(), person.clone())
        .start()
        .await?;
    pass(60).await;
    let told = person.of(Event::EngineError);
    assert_eq!((told.len(), told[0].reason.as_deref()), (1, Some("housekeeping")));
    is_broken.store(false, Ordering::SeqCst);
    pass(60).await;
    is_broken.store(true, Ordering::SeqCst);
    pass(60).await;
    assert_eq!(person.of(Event::EngineError).len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_notice_says_why_a_kind_is_unparked() -> Tested {
    for (is_removed, why) in [(false, "a probe succeeded"), (true, "its breaker was removed")] {
        let (store, person) = (store(), Person::new(Mood::Takes));
        let is_down = Arc::new(AtomicBool::new(true));
        let down = Arc::clone(&is_down);
        let breaker = Some(BreakerSettings { window: 5, ..BreakerSettings::default() });
        let settings = KindSettings { attempts_max: 100, breaker, ..KindSettings::default() };
        let engine = Engine::builder(Arc::new(store))
            .kind("work", settings.clone())
            .raw_handler("work", move |_| {
                let is_down = down.load(Ordering::SeqCst);
                async move { if is_down { failing("down") } else { Report::Done } }
            })
            .notifier("person", Route::default(), person.clone())
            .start()
            .await?;
        submit(&engine, 20).await;
        pass(10).await;
        assert_eq!(person.of(Event::KindParked).len(), 1);
        if is_removed {
            let without = KindSettings { breaker: None, ..settings };
            engine.put_kind(&kind("work"), &without, &Actor::new("test")).await?;
        } else {
            is_down.store(false, Ordering::SeqCst);
        }
        pass(60).await;
        let told = person.of(Event::KindUnparked);
        assert!(told.len() == 1 && told[0].text.contains(why), "{told:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused_by_name() {
    let settings = NotifySettings { window: millis(10), ..NotifySettings::default() };
    let started = builder(Arc::new(store())).notify_settings(settings).start().await;
    let error = started.map(|_| ()).unwrap_err();
    assert!(matches!(error, StartError::Setting(_)), "{error:?}");
    assert_eq!(error.to_string(), "window: must be 1s or longer");
}
