//! Tests of submits that say what to do about another job with the same key.

use crate::still::store;
use rewheel::{millis, seconds};
use rewheel_core::store::{Filter, PageRequest, ReadStore};
use rewheel_core::{Job, JobId, Key, OnDuplicate, Report, State, UniqueUntil};
use rewheel_engine::{Engine, FollowUp, JobContext, Submit, SubmitError};
use rewheel_stores::MemoryStore;
use std::sync::{Arc, Mutex};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// What ran, in order.
type Ran = Arc<Mutex<Vec<String>>>;

/// An engine with the kind `index`, which takes a second.
async fn indexing(store: &MemoryStore) -> Result<(Engine, Ran), Box<dyn std::error::Error>> {
    let ran = Ran::default();
    let runs = Arc::clone(&ran);
    let index = move |ctx: JobContext| {
        let text = String::from_utf8_lossy(ctx.payload()).into_owned();
        runs.lock().expect("nothing panics with it").push(text);
        async {
            tokio::time::sleep(seconds(1)).await;
            Report::Done
        }
    };
    let engine = Engine::builder(Arc::new(store.clone())).raw_handler("index", index);
    Ok((engine.start().await?, ran))
}

fn index<'a>(engine: &'a Engine, text: &str) -> Submit<'a> {
    engine.submit_raw("index", text.as_bytes().to_vec()).key("page-7")
}

fn keyless(engine: &Engine) -> Submit<'_> {
    engine.submit_raw("index", Vec::new())
}

async fn ended(store: &MemoryStore, id: JobId) -> Job {
    loop {
        let job = store.get(id).await.expect("memory").expect("it is kept");
        if !job.state().is_live() {
            return job;
        }
        tokio::time::sleep(millis(5)).await;
    }
}

fn what_ran(ran: &Ran) -> Vec<String> {
    ran.lock().expect("nothing panics with it").clone()
}

#[tokio::test(start_paused = true)]
async fn a_debounced_job_runs_once_with_the_last_payload() -> Tested {
    let store = store();
    let (engine, ran) = indexing(&store).await?;
    let first = index(&engine, "H").debounce(seconds(2)).await?;
    assert!(!first.duplicate && !first.replaced);
    for text in ["He", "Hel", "Hell", "Hello"] {
        // Longer than it takes an engine to claim a job within its horizon.
        tokio::time::sleep(millis(1_500)).await;
        let again = index(&engine, text).debounce(seconds(2)).await?;
        assert_eq!((again.id, again.duplicate, again.replaced), (first.id, true, true));
        assert!(what_ran(&ran).is_empty());
    }
    let job = ended(&store, first.id).await;
    assert_eq!(what_ran(&ran), ["Hello"]);
    assert_eq!((job.state(), job.attempt), (State::Succeeded, 1));
    let next = index(&engine, "Hello!").debounce(seconds(2)).await?;
    assert!(next.id != first.id && !next.duplicate);
    ended(&store, next.id).await;
    assert_eq!(what_ran(&ran), ["Hello", "Hello!"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_debounced_job_runs_in_time_although_submits_never_pause() -> Tested {
    let store = store();
    let (engine, ran) = indexing(&store).await?;
    let first = index(&engine, "0").debounce_up_to(seconds(2), seconds(5)).await?;
    let mut number = 0;
    while what_ran(&ran).is_empty() {
        number += 1;
        assert!(number < 20, "it never runs");
        tokio::time::sleep(millis(500)).await;
        index(&engine, &number.to_string()).debounce_up_to(seconds(2), seconds(5)).await?;
    }
    let job = ended(&store, first.id).await;
    assert_eq!(job.due, job.created.plus(seconds(5)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_running_job_does_not_block_its_key() -> Tested {
    let store = store();
    let (engine, ran) = indexing(&store).await?;
    let first = index(&engine, "1").await?;
    while what_ran(&ran).is_empty() {
        tokio::time::sleep(millis(5)).await;
    }
    let refused = index(&engine, "2").on_duplicate(OnDuplicate::Replace).await;
    assert!(matches!(refused, Err(SubmitError::Refused(_))), "{refused:?}");
    let second = index(&engine, "2").unique_until(UniqueUntil::Claimed).await?;
    assert!(second.id != first.id && !second.duplicate);
    ended(&store, second.id).await;
    assert_eq!(what_ran(&ran), ["1", "2"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_combined_names_its_field() -> Tested {
    let store = store();
    let (engine, _) = indexing(&store).await?;
    let delay = seconds(2);
    for (submit, named) in [
        (keyless(&engine).debounce(delay), "debounce"),
        (keyless(&engine).on_duplicate(OnDuplicate::Replace), "on_duplicate"),
        (keyless(&engine).unique_until(UniqueUntil::Claimed), "unique_until"),
        (index(&engine, "").unique_until(UniqueUntil::Ended).debounce(delay), "debounce"),
        (index(&engine, "").debounce(delay).unique_until(UniqueUntil::Ended), "debounce"),
        (index(&engine, "").debounce(delay).on_duplicate(OnDuplicate::Answer), "debounce"),
        (index(&engine, "").debounce(seconds(0)), "debounce"),
        (index(&engine, "").debounce_up_to(delay, seconds(1)), "debounce"),
        (index(&engine, "").delay(delay).debounce(delay), "debounce"),
        (index(&engine, "").debounce(delay).delay(delay), "debounce"),
    ] {
        match submit.await {
            Err(SubmitError::Field { field, .. }) => assert_eq!(field, named),
            other => panic!("{named}: {other:?}"),
        }
    }
    assert_eq!(store.books().await?.submitted, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_debounces_follow_ups_and_a_wrong_one_costs_it_nothing() -> Tested {
    let store = store();
    let save = |ctx: JobContext| async move {
        let wrong = ctx.submit(FollowUp::raw("index", Vec::new()).debounce(seconds(2)));
        assert!(matches!(wrong, Err(SubmitError::Field { field: "debounce", .. })), "{wrong:?}");
        let text = ctx.payload().to_vec();
        ctx.submit(FollowUp::raw("index", text).key("page-7").debounce(seconds(2)))?;
        Ok::<(), Report>(())
    };
    let ran = Ran::default();
    let runs = Arc::clone(&ran);
    let index = move |ctx: JobContext| {
        let text = String::from_utf8_lossy(ctx.payload()).into_owned();
        runs.lock().expect("nothing panics with it").push(text);
        async { Report::Done }
    };
    let engine = Engine::builder(Arc::new(store.clone()));
    let engine = engine.raw_handler("save", save).raw_handler("index", index).start().await?;
    for text in ["1", "2", "3"] {
        let saved = engine.submit_raw("save", text.as_bytes().to_vec()).await?;
        assert_eq!(ended(&store, saved.id).await.state(), State::Succeeded);
    }
    let filter = Filter { key: Key::parse("page-7").ok(), ..Filter::default() };
    let jobs = store.list(&filter, &PageRequest::first(10)).await?.items;
    assert_eq!(jobs.len(), 1);
    ended(&store, jobs[0].id).await;
    assert_eq!(what_ran(&ran), ["3"]);
    Ok(())
}
