//! Checks that dead letters are announced until a notifier accepts them.

use super::support::{
    Mood, Person, Tested, all_announced, builder, counts, failing, kind, one_attempt, pass, store,
    submit, telling, unannounced,
};
use rewheel::{Category, seconds};
use rewheel_core::store::{Insert, LeaseStore};
use rewheel_core::{
    Failure, Format, HolderId, NewHolder, NewJob, Report, Role, Tenant, Timestamp, WorkerOwner,
};
use rewheel_engine::notify::{Event, NotifySettings, Route, Severity};
use rewheel_engine::{Engine, EngineSettings};
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_told_once_with_what_a_person_needs() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let engine = telling(&store, &person).kind("work", one_attempt()).start().await?;
    let job = engine.submit_raw("work", Vec::new()).tenant("shop").key("order-17").await?.id;
    person.hears(1).await;
    all_announced(&store).await;
    pass(300).await;
    let told = person.told();
    assert_eq!(told.len(), 1);
    let notice = &told[0];
    assert_eq!((notice.event, notice.severity), (Event::DeadLetter, Severity::Error));
    assert_eq!((notice.job, notice.attempt), (Some(job), Some(1)));
    assert_eq!(
        (&notice.kind, &notice.tenant),
        (&Some(kind("work")), &Some(Tenant::parse("shop")?))
    );
    assert_eq!(notice.holder, Some(engine.status().holder));
    assert_eq!(notice.reason.as_deref(), Some("attempts_exhausted"));
    assert_eq!(notice.error.as_deref(), Some("io ECONNRESET: reset; password=***"));
    assert_eq!(
        (notice.attributes["category"].as_str(), &*notice.attributes["key"]),
        ("io", "order-17")
    );
    let expected = format!("job {job} of work is dead after 1 attempt: no attempts left");
    assert_eq!(notice.text, expected);
    assert!((1_700_000_000_000..1_700_000_300_000).contains(&notice.at.as_millis()));
    let counts = counts(&engine);
    assert_eq!((counts.offered, counts.sent, counts.suppressed, counts.failed), (1, 1, 0, 0));
    Ok(())
}

/// The job's own number of attempts counts, and only attempts since it was last redriven.
#[tokio::test(start_paused = true)]
async fn why_a_job_died_is_told_by_its_own_attempts() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("idle", one_attempt())
        .raw_handler("work", |_| async { failing("reset") })
        .raw_handler("bad", |_| async {
            Report::Dead(Failure::new(Category::Unknown, None, "no such order"))
        })
        .notifier("person", Route::default(), person.clone())
        .start()
        .await?;
    engine.submit_raw("work", Vec::new()).attempts_max(2).await?;
    engine.submit_raw("bad", Vec::new()).attempts_max(2).await?;
    engine.submit_raw("idle", Vec::new()).deadline_in(seconds(1)).await?;
    let mut told: Vec<_> = person.hears(3).await;
    told.sort_by_key(|notice| notice.reason.clone());
    let told: Vec<_> =
        told.iter().map(|n| (n.reason.as_deref().unwrap(), n.attempt.unwrap())).collect();
    assert_eq!(told, [("attempts_exhausted", 2), ("deadline", 0), ("not_retryable", 1)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_engine_without_notifiers_asks_the_store_nothing_for_them() -> Tested {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let faulty = FaultyStore::with_faults(Arc::new(store()), move |verb| {
        let is_asked = matches!(verb, Verb::Unannounced | Verb::Announce);
        counted.fetch_add(usize::from(is_asked), Ordering::SeqCst);
        Box::pin(async { None })
    });
    let engine = builder(Arc::new(faulty)).start().await?;
    submit(&engine, 3).await;
    pass(60).await;
    engine.shutdown(seconds(1)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(engine.notify_counts(), []);
    Ok(())
}

/// A bounded number of messages, exact counts, and all letters are marked as announced.
#[tokio::test(start_paused = true)]
async fn ten_thousand_dead_letters_are_fifty_messages_and_a_summary() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let engine = telling(&store, &person)
        .settings(EngineSettings { concurrency: 10_000, ..EngineSettings::default() })
        .start()
        .await?;
    let mut jobs: Vec<NewJob> = Vec::new();
    for _ in 0..10_000 {
        jobs.push(engine.submit_raw("work", Vec::new()).into_job()?);
    }
    engine.insert(&Insert::new(&jobs)).await?;
    person.hears(51).await;
    all_announced(&store).await;
    pass(120).await;
    let told = person.told();
    assert_eq!((told.len(), person.of(Event::DeadLetter).len()), (51, 50));
    assert_eq!((told[50].event, told[50].more), (Event::Summary, Some(9_950)));
    assert_eq!(
        told[50].text,
        "9950 more notifications in the last 30s, not sent one by one: 9950 dead_letter events of kind work"
    );
    let counts = counts(&engine);
    assert_eq!((counts.offered, counts.sent, counts.suppressed), (10_000, 50, 9_950));
    assert_eq!((counts.failed, counts.summaries, counts.waiting()), (0, 1, 0));
    Ok(())
}

/// Suppressed letters are not marked as announced before their summary was delivered.
#[tokio::test(start_paused = true)]
async fn suppressed_letters_are_announced_with_their_summary() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let settings = NotifySettings { window_max: 2, ..NotifySettings::default() };
    let engine = telling(&store, &person).notify_settings(settings).start().await?;
    submit(&engine, 5).await;
    person.hears(2).await;
    pass(20).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (2, 3));
    pass(15).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (3, 0));
    assert_eq!(person.told()[2].more, Some(3));
    Ok(())
}

/// The process dies after the job was settled, before it was announced.
#[tokio::test(start_paused = true)]
async fn a_letter_is_told_although_its_engine_died_before_it_could() -> Tested {
    let (store, deaf) = (store(), Person::new(Mood::Hangs));
    let first = telling(&store, &deaf).start().await?;
    submit(&first, 1).await;
    while unannounced(&store).await == 0 {
        pass(1).await;
    }
    first.kill();
    drop(first);
    assert_eq!((deaf.told().len(), unannounced(&store).await), (0, 1));

    let person = Person::new(Mood::Takes);
    let _second = telling(&store, &person).start().await?;
    pass(60).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (1, 0));
    Ok(())
}

/// Workers have no notifiers: engines do not wait for a worker to send a notice.
#[tokio::test(start_paused = true)]
async fn a_letter_does_not_wait_for_workers() -> Tested {
    let (store, deaf) = (store(), Person::new(Mood::Hangs));
    let first = telling(&store, &deaf).start().await?;
    submit(&first, 1).await;
    while unannounced(&store).await == 0 {
        pass(1).await;
    }
    first.kill();
    let random = rewheel::Random::seeded(7);
    for _ in 0..50 {
        let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &random);
        let role = Role::Worker { owner: WorkerOwner::NoToken };
        let lease_ttl = seconds(36_000);
        store
            .join(&NewHolder { id, name: "w".to_owned(), role, lease_ttl, format: Format::CURRENT })
            .await?;
    }
    let person = Person::new(Mood::Takes);
    let _second = telling(&store, &person).start().await?;
    pass(60).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (1, 0));
    Ok(())
}

/// The store is unavailable exactly when it should mark the letter as announced.
#[tokio::test(start_paused = true)]
async fn a_letter_that_was_told_is_not_told_again_while_the_store_cannot_note_it() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let faulty = Arc::new(FaultyStore::new(Arc::new(store.clone())));
    for _ in 0..20 {
        faulty.fail_next(Verb::Announce, Fault::Before);
    }
    let engine =
        builder(faulty).notifier("person", Route::default(), person.clone()).start().await?;
    submit(&engine, 1).await;
    person.hears(1).await;
    pass(10).await;
    assert_eq!(unannounced(&store).await, 1);
    all_announced(&store).await;
    pass(300).await;
    assert_eq!(person.told().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_was_away_is_told_later_and_the_others_only_once() -> Tested {
    let (store, person, away) = (store(), Person::new(Mood::Takes), Person::new(Mood::Fails));
    let engine =
        telling(&store, &person).notifier("away", Route::default(), away.clone()).start().await?;
    submit(&engine, 3).await;
    pass(600).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (3, 3));
    let failed = engine.notify_counts()[1].failed;
    assert!((15..=30).contains(&failed), "tried {failed} times in 10 minutes");
    away.set(Mood::Takes);
    all_announced(&store).await;
    pass(300).await;
    assert_eq!((person.told().len(), away.told().len()), (3, 3));
    let counts = &engine.notify_counts()[1];
    assert_eq!((counts.sent, counts.waiting()), (3, 0));
    Ok(())
}

/// Letters of a summary that was not delivered are not announced.
#[tokio::test(start_paused = true)]
async fn letters_whose_summary_failed_are_offered_again() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let settings = NotifySettings { window_max: 1, ..NotifySettings::default() };
    let engine = telling(&store, &person).notify_settings(settings).start().await?;
    submit(&engine, 4).await;
    person.hears(1).await;
    person.set(Mood::Fails);
    pass(50).await;
    assert_eq!((counts(&engine).summaries_failed, unannounced(&store).await), (1, 3));
    person.set(Mood::Takes);
    all_announced(&store).await;
    let counts = counts(&engine);
    assert_eq!((person.of(Event::DeadLetter).len(), person.told().len()), (2, 3));
    assert_eq!(person.told()[2].more, Some(2));
    assert_eq!(counts.offered, counts.sent + counts.suppressed + counts.failed);
    Ok(())
}

/// A notifier that never works must not keep later notices from the others.
#[tokio::test(start_paused = true)]
async fn a_notifier_that_refuses_everything_does_not_hold_up_the_others_for_ever() -> Tested {
    let (store, person, broken) = (store(), Person::new(Mood::Takes), Person::new(Mood::Refuses));
    let wide =
        NotifySettings { window_max: 1_000_000, queue_max: 100_000, ..NotifySettings::default() };
    let engine = telling(&store, &person)
        .notifier("broken", Route::default(), broken)
        .notify_settings(wide)
        .start()
        .await?;
    for _ in 0..2 {
        let jobs: Result<Vec<NewJob>, _> =
            (0..5_500).map(|_| engine.submit_raw("work", Vec::new()).into_job()).collect();
        engine.insert(&Insert::new(&jobs?)).await?;
    }
    pass(600).await;
    assert_eq!(person.told().len(), 11_000);
    assert!(unannounced(&store).await <= 10_000);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_letter_goes_where_its_route_leads() -> Tested {
    let store = store();
    let people = [(); 4].map(|()| Person::new(Mood::Takes));
    let routes = [
        Route { events: vec![Event::NotRetryable], ..Route::default() },
        Route { tenants: vec![Tenant::parse("shop")?], ..Route::default() },
        Route { kinds: vec![kind("mail")], ..Route::default() },
        Route { severity: Severity::Critical, ..Route::default() },
    ];
    let mut engine = builder(Arc::new(store.clone()));
    for (person, route) in people.iter().zip(routes) {
        engine = engine.notifier("person", route, person.clone());
    }
    let engine = engine.start().await?;
    engine.submit_raw("work", Vec::new()).tenant("shop").await?;
    engine.submit_raw("work", Vec::new()).tenant("bank").await?;
    pass(30).await;
    assert_eq!(people.map(|person| person.told().len()), [2, 1, 0, 0]);
    assert_eq!(unannounced(&store).await, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_no_route_takes_is_not_kept_for_ever() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let route = Route { events: vec![Event::KindParked], ..Route::default() };
    let engine =
        builder(Arc::new(store.clone())).notifier("person", route, person.clone()).start().await?;
    submit(&engine, 1).await;
    pass(30).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (0, 0));
    Ok(())
}
