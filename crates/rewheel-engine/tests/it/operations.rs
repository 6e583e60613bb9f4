//! Tests of bulk operations.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use crate::still::store;
use rewheel::{millis, seconds};
use rewheel_core::store::{Change, ChangeVerb, Count, Filter, OperateStore, ReadStore, Store};
use rewheel_core::{
    Actor, Incident, JobId, KindName, Report, Retain, State, Tenant, Timestamp, When,
};
use rewheel_engine::{
    Bulk, BulkVerb, Engine, EngineSettings, JobContext, Operation, OperationState, Selection,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The dependency of the jobs: it refuses calls until it is repaired, and can be repaired for a number of calls.
#[derive(Clone, Default)]
struct Shop {
    /// Number of further calls that succeed.
    mended: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

impl Shop {
    async fn call(self, context: JobContext) -> Report {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let spend = |left: usize| left.checked_sub(1);
        match self.mended.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend) {
            Ok(_) => Report::Done,
            Err(_) => Report::dead(format!("order {} is unknown", context.id())),
        }
    }

    fn mend(&self, calls: usize) {
        self.mended.store(calls, Ordering::SeqCst);
    }
}

async fn engine(store: &Arc<dyn Store>, name: &str, shop: &Shop) -> Engine {
    let shop = shop.clone();
    Engine::builder(Arc::clone(store))
        .settings(EngineSettings { name: name.to_owned(), ..EngineSettings::default() })
        .raw_handler("charge", move |context| shop.clone().call(context))
        .raw_handler("other", |_| async { Report::dead("it never works") })
        .start()
        .await
        .unwrap()
}

fn shared(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

async fn count(store: &MemoryStore, kind: &str, state: State) -> u64 {
    let kinds = vec![KindName::parse(kind).unwrap()];
    let filter = Filter { states: vec![state], kinds, ..Filter::default() };
    match store.count(&filter, 1_000_000).await.unwrap() {
        Count::Exactly(count) | Count::AtLeast(count) => count,
    }
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(millis(20)).await;
    }
    panic!("it never came true");
}

async fn submit(engine: &Engine, kind: &str, jobs: usize) -> Tested {
    for _ in 0..jobs {
        engine.submit_raw(kind, b"{}".to_vec()).await?;
    }
    Ok(())
}

/// Creates jobs that are dead letters.
async fn die(store: &MemoryStore, engine: &Engine, kind: &str, jobs: usize) -> Tested {
    submit(engine, kind, jobs).await?;
    let all = jobs as u64;
    until(async || count(store, kind, State::Dead).await == all).await;
    Ok(())
}

fn of_kind(verb: BulkVerb, kind: &str) -> Bulk {
    let kinds = vec![KindName::parse(kind).unwrap()];
    Bulk::new(verb, Selection::from(Filter { kinds, ..Filter::default() }))
}

fn by() -> Actor {
    Actor::new("ops")
}

async fn ended(engine: &Engine, id: JobId) -> Operation {
    for _ in 0..100_000 {
        let operation = engine.operation(id).await.unwrap().unwrap();
        if matches!(operation.state, OperationState::Done | OperationState::Aborted) {
            return operation;
        }
        tokio::time::sleep(millis(20)).await;
    }
    panic!("it never ended: {:?}", engine.operation(id).await);
}

fn figures(operation: &Operation) -> (OperationState, u64, u64, u64) {
    (operation.state, operation.total, operation.done, operation.failed)
}

#[tokio::test(start_paused = true)]
async fn dead_letters_of_one_kind_are_redriven_and_no_other() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 1_234).await?;
    die(&store, &engine, "other", 3).await?;
    let order = of_kind(BulkVerb::Redrive, "charge");
    let preview = engine.preview(&order).await?;
    assert_eq!((preview.count, preview.sample.len()), (Count::Exactly(1_234), 10));
    assert_eq!(count(&store, "charge", State::Dead).await, 1_234, "a preview changes nothing");

    shop.mend(usize::MAX);
    let operation = engine.operate(&order, &by()).await?;
    assert_eq!(figures(&operation), (OperationState::Running, 1_234, 0, 0));
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 1_234, 1_234, 0));
    assert!(operation.finished.is_some() && operation.reason.is_none());
    until(async || count(&store, "charge", State::Succeeded).await == 1_234).await;
    assert_eq!(count(&store, "other", State::Dead).await, 3);
    let audit = store.audit(Some(preview.sample[0]), None, 10).await?;
    assert_eq!(audit[0].who.as_str(), format!("ops by operation {}", operation.id));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operation_outlives_the_node_that_runs_it() -> Tested {
    let (store, shop) = (store(), Shop::default());
    shop.mend(usize::MAX);
    let first = engine(&shared(&store), "first", &Shop::default()).await;
    die(&store, &first, "charge", 1_000).await?;
    let order = of_kind(BulkVerb::Redrive, "charge").rate("100/s".parse()?);
    let operation = first.operate(&order, &by()).await?;
    until(async || first.operation(operation.id).await.unwrap().unwrap().done >= 200).await;
    let second = engine(&shared(&store), "second", &shop).await;
    first.kill();
    let operation = ended(&second, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 1_000, 1_000, 0));
    Ok(())
}

/// With any lost responses, no job is counted twice or left out.
#[tokio::test(start_paused = true)]
async fn lost_answers_neither_repeat_nor_forget_a_job() -> Tested {
    for verb in [Verb::Change, Verb::Checkpoint, Verb::List] {
        for fault in [Fault::Before, Fault::After] {
            let (store, shop) = (store(), Shop::default());
            let faulty = Arc::new(FaultyStore::new(shared(&store)));
            let engine = engine(&(Arc::clone(&faulty) as Arc<dyn Store>), "one", &shop).await;
            die(&store, &engine, "charge", 1_100).await?;
            shop.mend(usize::MAX);
            let before = shop.calls.load(Ordering::SeqCst);
            let operation = engine.operate(&of_kind(BulkVerb::Redrive, "charge"), &by()).await?;
            // More often than a call is retried.
            for _ in 0..6 {
                faulty.fail_next(verb, fault);
            }
            let operation = ended(&engine, operation.id).await;
            let done = (OperationState::Done, 1_100, 1_100, 0);
            assert_eq!(figures(&operation), done, "{verb:?} {fault:?}");
            until(async || count(&store, "charge", State::Succeeded).await == 1_100).await;
            assert_eq!(shop.calls.load(Ordering::SeqCst) - before, 1_100);
        }
    }
    Ok(())
}

/// A late repetition of a completed change does not redrive a job that has died again since.
#[tokio::test(start_paused = true)]
async fn a_job_that_dies_again_is_redriven_once() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let faulty = Arc::new(FaultyStore::new(shared(&store)));
    let engine = engine(&(Arc::clone(&faulty) as Arc<dyn Store>), "one", &shop).await;
    // It was submitted earlier, but dies after the order was given.
    engine.submit_raw("charge", Vec::new()).delay(seconds(10)).await?;
    tokio::time::sleep(seconds(8)).await;
    die(&store, &engine, "charge", 20).await?;
    let order = of_kind(BulkVerb::Redrive, "charge").rate("5/s".parse()?);
    for _ in 0..6 {
        faulty.fail_next(Verb::Change, Fault::After);
    }
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 20, 20, 0));
    until(async || count(&store, "charge", State::Dead).await == 21).await;
    assert_eq!(shop.calls.load(Ordering::SeqCst), 21 + 20);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_canary_stops_after_the_first_failing_step_and_says_why() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 412).await?;
    shop.mend(8);
    let order = of_kind(BulkVerb::Redrive, "charge").canary(vec![1, 10, 100]);
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    // One succeeded, then three of ten failed.
    assert_eq!(figures(&operation), (OperationState::Aborted, 412, 11, 0));
    let reason = operation.reason.unwrap();
    assert!(
        reason.starts_with("step 2 of 3 of the canary failed: 3 of its 10 jobs failed again")
            && reason.contains("is unknown)")
            && reason.ends_with("jobs redriven in total: 11, not changed: 401"),
        "{reason}"
    );
    assert_eq!(operation.step, Some((2, 3)));
    let canary = operation.canary.unwrap();
    assert_eq!((canary.sizes.as_slice(), canary.redriven), (&[1, 10, 100][..], 10));
    assert_eq!((canary.ok, canary.failed), (7, 3));
    let example = store.get(canary.example.unwrap()).await?.unwrap();
    assert_eq!(example.state(), State::Dead);
    assert_eq!(count(&store, "charge", State::Dead).await, 404);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_goes_well_is_followed_by_all_the_others() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 412).await?;
    shop.mend(usize::MAX);
    let order = of_kind(BulkVerb::Redrive, "charge").canary(vec![1, 10, 100]);
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 412, 412, 0));
    assert_eq!(operation.step, None);
    let canary = operation.canary.unwrap();
    assert_eq!((canary.sizes.as_slice(), canary.redriven), (&[1, 10, 100][..], 0));
    // A canary step that is larger than the number of jobs waits only for these.
    shop.mend(0);
    die(&store, &engine, "charge", 5).await?;
    shop.mend(2);
    let order = of_kind(BulkVerb::Redrive, "charge").canary(vec![10]);
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Aborted, 5, 5, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_kept() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 200).await?;
    let order = of_kind(BulkVerb::Redrive, "charge").rate("20/s".parse()?);
    let began = store.now().await?;
    shop.mend(usize::MAX);
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    let took = operation.finished.unwrap().since(began);
    assert!((seconds(9)..seconds(14)).contains(&took), "{took:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_person_can_stop_it_halfway() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 100).await?;
    shop.mend(usize::MAX);
    let order = of_kind(BulkVerb::Redrive, "charge").rate("10/s".parse()?);
    let operation = engine.operate(&order, &by()).await?;
    until(async || engine.operation(operation.id).await.unwrap().unwrap().done >= 30).await;
    engine.abort(operation.id, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!((operation.state, operation.failed), (OperationState::Aborted, 0));
    assert_eq!(operation.reason.as_deref(), Some("an operator aborted the operation"));
    assert!(operation.done < 60, "{}", operation.done);
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(count(&store, "charge", State::Dead).await, 100 - operation.done);
    assert_eq!(engine.abort(engine.new_id(), &by()).await?, None);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_incident_is_held_released_and_redriven_as_one() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", 30).await?;
    die(&store, &engine, "other", 7).await?;
    let filter = Filter { states: vec![State::Dead], ..Filter::default() };
    let page = store.list(&filter, &rewheel_core::store::PageRequest::first(100)).await?;
    let of = |kind: &str| {
        let job = page.items.iter().find(|job| job.lane.kind.as_str() == kind).unwrap();
        Selection::of_incident(&Incident::of(job).unwrap())
    };
    let redrive = Bulk::new(BulkVerb::Redrive, of("charge"));
    assert_eq!(engine.preview(&redrive).await?.count, Count::Exactly(30));
    shop.mend(usize::MAX);
    let operation = engine.operate(&redrive, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 30, 30, 0));
    assert_eq!(count(&store, "other", State::Dead).await, 7);

    // Jobs that wait after a failure are paused and resumed.
    for job in page.items.iter().filter(|job| job.lane.kind.as_str() == "other").take(4) {
        let redrive = ChangeVerb::Redrive { deadline: None };
        let later = ChangeVerb::Edit(Box::new(rewheel_core::store::Edit {
            due: Some(When::In(seconds(3_600))),
            ..Default::default()
        }));
        for what in [redrive, ChangeVerb::Pause, later, ChangeVerb::Resume] {
            let change = [Change::new(job.id, what)];
            store.change(&change, &by(), Retain::default()).await?;
        }
    }
    for (verb, to) in [(BulkVerb::Pause, State::Paused), (BulkVerb::Resume, State::Scheduled)] {
        let operation = engine.operate(&Bulk::new(verb, of("other")), &by()).await?;
        let operation = ended(&engine, operation.id).await;
        assert_eq!(figures(&operation), (OperationState::Done, 4, 4, 0), "{verb}");
        assert_eq!(count(&store, "other", to).await, 4);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn jobs_whose_deadline_has_passed_are_told_apart_or_get_a_new_one() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    for deadline in [seconds(5), seconds(3_600)] {
        engine.submit_raw("charge", Vec::new()).deadline_in(deadline).await?;
    }
    until(async || count(&store, "charge", State::Dead).await == 2).await;
    tokio::time::sleep(seconds(10)).await;
    let order = of_kind(BulkVerb::Redrive, "charge");
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 2, 1, 1));
    assert_eq!(operation.refused.into_iter().collect::<Vec<_>>(), [("deadline_passed".into(), 1)]);
    until(async || count(&store, "charge", State::Dead).await == 2).await;
    shop.mend(usize::MAX);
    let order = Bulk { deadline: Some(When::In(seconds(60))), ..order };
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 2, 2, 0));
    Ok(())
}

/// With any number of batches per attempt, and any point of interruption.
#[tokio::test(start_paused = true)]
async fn what_is_refused_is_never_taken_for_done() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    for _ in 0..6_000 {
        engine.submit_raw("charge", Vec::new()).deadline_in(seconds(300)).await?;
    }
    until(async || count(&store, "charge", State::Dead).await == 6_000).await;
    tokio::time::sleep(seconds(301)).await;
    engine.submit_raw("charge", Vec::new()).await?;
    until(async || count(&store, "charge", State::Dead).await == 6_001).await;
    shop.mend(usize::MAX);
    // The canary step is one of an odd number.
    let order = of_kind(BulkVerb::Redrive, "charge").canary(vec![1]);
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 6_001, 1, 6_000));
    assert_eq!(operation.refused["deadline_passed"], 6_000);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn live_jobs_are_cancelled_and_neither_dead_letters_nor_operations_are() -> Tested {
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    let acme = Filter { tenant: Some(Tenant::parse("acme")?), ..Filter::default() };
    engine.submit_raw("charge", Vec::new()).tenant("acme").await?;
    until(async || count(&store, "charge", State::Dead).await == 1).await;
    for delay in [seconds(60), seconds(3_600)] {
        engine.submit_raw("charge", Vec::new()).tenant("acme").delay(delay).await?;
        engine.submit_raw("charge", Vec::new()).delay(delay).await?;
    }
    let order = Bulk::new(BulkVerb::Cancel, Selection::from(acme));
    let operation = engine.operate(&order, &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 2, 2, 0));
    let states = [State::Cancelled, State::Dead, State::Scheduled];
    for (state, jobs) in states.into_iter().zip([2, 1, 2]) {
        assert_eq!(count(&store, "charge", state).await, jobs, "{state}");
    }
    // A filter that matches every job does not stop the operation itself.
    let created_after = Some(Timestamp::from_millis(0));
    let all = Selection::from(Filter { created_after, ..Filter::default() });
    let operation = engine.operate(&Bulk::new(BulkVerb::Cancel, all).all(), &by()).await?;
    let operation = ended(&engine, operation.id).await;
    assert_eq!(figures(&operation), (OperationState::Done, 2, 2, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused() -> Tested {
    let store = store();
    let engine = engine(&shared(&store), "one", &Shop::default()).await;
    let dead = |verb| Bulk { ..of_kind(verb, "charge") };
    let in_state = |verb, state| {
        let filter = Filter { states: vec![state], ..Filter::default() };
        Bulk::new(verb, Selection::from(filter))
    };
    let everything = Bulk::new(BulkVerb::Cancel, Selection::default());
    let later = Some(Timestamp::from_millis(4_000_000_000_000));
    let submitted = Filter { created_before: later, ..Filter::default() };
    let submitted = Bulk::new(BulkVerb::Cancel, Selection::from(submitted));
    for order in [everything, submitted, in_state(BulkVerb::Redrive, State::Dead)] {
        let error = engine.operate(&order, &by()).await.unwrap_err().to_string();
        assert!(error.starts_with("filter matches every job"), "{error}");
        // What changes nothing may be about everything.
        assert_eq!(engine.preview(&order).await?.sample, []);
    }
    let own = of_kind(BulkVerb::Cancel, "rewheel.operation");
    for (order, error) in [
        (own, "kind cannot be rewheel.operation: its jobs are internal to the engine"),
        (
            in_state(BulkVerb::Redrive, State::Scheduled),
            "state cannot be scheduled: redrive does not apply to jobs in this state",
        ),
        (
            in_state(BulkVerb::Cancel, State::Succeeded),
            "state cannot be succeeded: cancel does not apply to jobs in this state",
        ),
        (
            dead(BulkVerb::Pause).canary(vec![1]),
            "canary applies only to redrive: remove it from this pause request",
        ),
        (dead(BulkVerb::Redrive).canary(vec![1, 0]), "canary must have steps of 1 to 1000 jobs"),
        (dead(BulkVerb::Redrive).canary(vec![1; 11]), "canary must have 10 steps or fewer"),
    ] {
        assert_eq!(engine.operate(&order, &by()).await.unwrap_err().to_string(), error);
        assert_eq!(engine.preview(&order).await.unwrap_err().to_string(), error);
    }
    let error = engine.submit_raw("rewheel.operation", Vec::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "kind `rewheel.operation` is reserved for the engine");
    assert_eq!(store.books().await?.submitted, 0);
    let builder = Engine::builder(shared(&store));
    let started =
        builder.raw_handler("rewheel.operation", |_| async { Report::Done }).start().await;
    let error = started.unwrap_err().to_string();
    assert!(error.contains("names that begin with `rewheel.` are reserved"), "{error}");
    Ok(())
}

/// An operation makes a few store calls for a batch of jobs: at 5 ms per call a redrive moves thousands of jobs per second.
#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the time of a test is simulated")]
async fn an_operation_takes_a_few_calls_for_many_jobs() -> Tested {
    const JOBS: u64 = 5_000;
    let (store, shop) = (store(), Shop::default());
    let engine = engine(&shared(&store), "one", &shop).await;
    die(&store, &engine, "charge", JOBS as usize).await?;
    engine.shutdown(seconds(1)).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let far = FaultyStore::with_faults(shared(&store), move |verb| {
        let is_of_operation = matches!(
            verb,
            Verb::List | Verb::Change | Verb::Checkpoint | Verb::Get | Verb::Find | Verb::Live
        );
        counted.fetch_add(usize::from(is_of_operation), Ordering::SeqCst);
        Box::pin(async {
            tokio::time::sleep(millis(5)).await;
            None
        })
    });
    // It has no handler for the jobs: only the operation is counted.
    let engine = Engine::builder(Arc::new(far)).start().await?;
    let began = tokio::time::Instant::now();
    let operation = engine.operate(&of_kind(BulkVerb::Redrive, "charge"), &by()).await?;
    until(async || count(&store, "charge", State::Scheduled).await == JOBS).await;
    let (took, calls) = (began.elapsed(), calls.load(Ordering::SeqCst) as u64);
    assert!(calls * 25 <= JOBS, "{calls} calls");
    assert!(took.as_secs_f64() * 5_000.0 <= JOBS as f64, "{JOBS} jobs in {took:?}");
    assert_eq!(figures(&ended(&engine, operation.id).await), (OperationState::Done, JOBS, JOBS, 0));
    Ok(())
}
