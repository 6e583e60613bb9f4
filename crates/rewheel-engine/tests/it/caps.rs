//! Tests of the cap on a tenant's live jobs.

#![expect(clippy::unwrap_used, reason = "test code")]

use rewheel::{Random, millis, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, IfRefused, Insert, Inserted, OperateStore, ReadStore, Refusal, Store,
};
use rewheel_core::{Actor, JobId, Key, KindName, NewJob, Retain, Tenant};
use rewheel_engine::{Engine, KindSettings, StartError, SubmitError, TenantSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

type Tested = Result<(), Box<dyn std::error::Error>>;

const CAP: usize = 100;

fn capped(jobs_max: u64) -> TenantSettings {
    TenantSettings { jobs_max: Some(jobs_max), ..TenantSettings::default() }
}

/// An engine that runs nothing: its jobs stay live.
async fn engine(store: Arc<dyn Store>) -> Engine {
    let builder = Engine::builder(store).kind("work", KindSettings::default());
    builder.tenant("acme", capped(CAP as u64)).start().await.unwrap()
}

fn job(engine: &Engine, tenant: &str, key: Option<&str>) -> NewJob {
    NewJob {
        tenant: Some(Tenant::parse(tenant).unwrap()),
        key: key.map(|key| Key::parse(key).unwrap()),
        ..NewJob::new(engine.new_id(), KindName::parse("work").unwrap(), Vec::new())
    }
}

async fn fill(engine: &Engine, count: usize) {
    let jobs: Vec<NewJob> = (0..count).map(|_| job(engine, "acme", None)).collect();
    let answers = engine.insert(&Insert::new(&jobs)).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Inserted::Created { .. })));
}

fn is_full(answer: &Inserted) -> bool {
    *answer == Inserted::Refused(Refusal::TenantFull { jobs_max: CAP as u64 })
}

async fn is_refused(engine: &Engine) -> bool {
    match engine.submit_raw("work", Vec::new()).tenant("acme").await {
        Err(SubmitError::Refused(Refusal::TenantFull { jobs_max: 100 })) => true,
        Ok(_) => false,
        Err(other) => panic!("{other}"),
    }
}

async fn cancel(store: &MemoryStore, jobs: &[JobId]) {
    let cancel = |job: &JobId| Change::new(*job, ChangeVerb::Cancel);
    let changes: Vec<Change> = jobs.iter().map(cancel).collect();
    let keep = Retain { job: seconds(1), key: seconds(1) };
    store.change(&changes, &Actor::new("test"), keep).await.unwrap();
}

/// With any delays, and any lost responses.
#[tokio::test(start_paused = true)]
async fn three_engines_that_submit_at_once_never_exceed_a_cap() -> Tested {
    let store = Arc::new(MemoryStore::new());
    let mut submitters = JoinSet::new();
    let known: Arc<Mutex<Vec<JobId>>> = Arc::default();
    for nth in 0..3 {
        let random = Random::seeded(nth);
        let weather = move |verb: Verb| -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>> {
            let (wait, luck) = (millis(random.next() % 40), random.next() % 8);
            Box::pin(async move {
                tokio::time::sleep(wait).await;
                let is_lost = verb == Verb::Insert && luck == 0;
                is_lost.then_some(Fault::After)
            })
        };
        let store = FaultyStore::with_faults(Arc::clone(&store) as Arc<dyn Store>, weather);
        let engine = Arc::new(engine(Arc::new(store)).await);
        for task in 0..4 {
            let (engine, known) = (Arc::clone(&engine), Arc::clone(&known));
            submitters.spawn(async move {
                loop {
                    let count = if task == 0 { 7 } else { 1 };
                    let jobs: Vec<NewJob> =
                        (0..count).map(|_| job(&engine, "acme", None)).collect();
                    known.lock().unwrap().extend(jobs.iter().map(|job| job.id));
                    let _ = engine.insert(&Insert::new(&jobs)).await;
                    tokio::time::sleep(millis(5)).await;
                }
            });
        }
    }
    let mut was_full = 0;
    for round in 0..30_000_u32 {
        tokio::time::sleep(millis(1)).await;
        let live = usize::try_from(store.books().await?.live)?;
        assert!(live <= CAP, "{live} live jobs in round {round}");
        was_full += u32::from(live == CAP);
        if round % 5_000 == 4_999 {
            // Some end, and others take their part of the cap.
            let jobs: Vec<JobId> = known.lock().unwrap().drain(..).take(2_000).collect();
            cancel(&store, &jobs).await;
        }
    }
    assert!(was_full > 500, "it was full for {was_full} ms of 30,000");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_full_tenant_is_refused_until_jobs_end() -> Tested {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(Arc::clone(&store) as Arc<dyn Store>).await;
    fill(&engine, CAP - 2).await;
    let jobs: Vec<NewJob> = (0..2).map(|_| job(&engine, "acme", None)).collect();
    engine.insert(&Insert::new(&jobs)).await?;
    assert!(is_refused(&engine).await);
    // Other tenants are not affected.
    engine.submit_raw("work", Vec::new()).tenant("other").await?;
    engine.submit_raw("work", Vec::new()).await?;

    cancel(&store, &jobs.iter().map(|job| job.id).collect::<Vec<_>>()).await;
    tokio::time::sleep(seconds(1)).await;
    let refused = [is_refused(&engine).await, is_refused(&engine).await, is_refused(&engine).await];
    assert_eq!(refused, [false, false, true]);
    Ok(())
}

/// A repeated submit must learn that the job exists.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_known_is_answered_at_the_cap() -> Tested {
    let engine = engine(Arc::new(MemoryStore::new())).await;
    let known = engine.submit_raw("work", Vec::new()).tenant("acme").key("k").await?;
    fill(&engine, CAP - 1).await;
    assert!(is_refused(&engine).await);
    let again = engine.submit_raw("work", Vec::new()).tenant("acme").key("k").await?;
    assert_eq!((again.id, again.duplicate), (known.id, true));
    let other = engine.submit_raw("work", b"x".to_vec()).tenant("acme").key("k").await.unwrap_err();
    assert!(matches!(other, SubmitError::Refused(Refusal::KeyReused { .. })), "{other}");
    let new = engine.submit_raw("work", Vec::new()).tenant("acme").key("new").await.unwrap_err();
    assert!(matches!(new, SubmitError::Refused(Refusal::TenantFull { .. })), "{new}");
    Ok(())
}

/// A job whose response was lost is found when it is sent again, and counts as live.
#[tokio::test(start_paused = true)]
async fn a_job_whose_answer_was_lost_takes_its_room() -> Tested {
    let faulty = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let engine = engine(Arc::clone(&faulty) as Arc<dyn Store>).await;
    fill(&engine, CAP - 1).await;
    faulty.fail_next(Verb::Insert, Fault::After);
    assert!(!is_refused(&engine).await);
    assert!(is_refused(&engine).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_stored_as_far_as_it_fits_or_not_at_all() -> Tested {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(Arc::clone(&store) as Arc<dyn Store>).await;
    let known = engine.submit_raw("work", Vec::new()).tenant("acme").key("k").await?;
    fill(&engine, CAP - 3).await;
    let batch = || {
        let one = |tenant, key| job(&engine, tenant, key);
        [
            one("acme", Some("k")),
            one("acme", None),
            one("other", None),
            one("acme", Some("new")),
            one("acme", None),
        ]
    };
    let jobs = batch();
    let nothing = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = engine.insert(&nothing).await?;
    assert!(matches!(answers[0], Inserted::Duplicate { job, .. } if job == known.id));
    let left_out = |answer: &Inserted| *answer == Inserted::LeftOut;
    assert!(answers[1..4].iter().all(left_out) && is_full(&answers[4]), "{answers:?}");
    assert_eq!(store.books().await?.live, CAP as u64 - 2);

    let jobs = batch();
    let answers = engine.insert(&Insert::new(&jobs)).await?;
    assert!(matches!(answers[0], Inserted::Duplicate { job, .. } if job == known.id));
    let created = |answer: &Inserted| matches!(answer, Inserted::Created { .. });
    assert!(answers[1..4].iter().all(created) && is_full(&answers[4]), "{answers:?}");
    assert_eq!(store.books().await?.live, CAP as u64 + 1);
    Ok(())
}

/// A reservation that is not used becomes available to others after some time.
#[tokio::test(start_paused = true)]
async fn room_that_is_not_used_is_given_back() -> Tested {
    let store = Arc::new(MemoryStore::new());
    let one = engine(Arc::clone(&store) as Arc<dyn Store>).await;
    let other = engine(Arc::clone(&store) as Arc<dyn Store>).await;
    // It reserves more than it needs.
    assert!(!is_refused(&one).await);
    let jobs: Vec<NewJob> = (0..CAP).map(|_| job(&other, "acme", None)).collect();
    let created = |answers: Vec<Inserted>| {
        answers.iter().filter(|answer| matches!(answer, Inserted::Created { .. })).count()
    };
    let first = created(other.insert(&Insert::new(&jobs)).await?);
    assert!((CAP / 4..CAP - 1).contains(&first), "{first}");
    tokio::time::sleep(seconds(11)).await;
    let jobs: Vec<NewJob> = (0..CAP).map(|_| job(&other, "acme", None)).collect();
    assert_eq!(created(other.insert(&Insert::new(&jobs)).await?), CAP - 1 - first);
    Ok(())
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_by_name() {
    let start = |name: &str, settings| {
        Engine::builder(Arc::new(MemoryStore::new())).tenant(name, settings).start()
    };
    let error = start("acme", capped(0)).await.unwrap_err();
    assert!(matches!(&error, StartError::TenantSetting { .. }));
    assert!(error.to_string().starts_with("tenant `acme`: jobs_max: must be 1"), "{error}");
    let error = start("a\nb", capped(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "tenant `a\nb` must be 1 to 128 bytes without control characters"
    );
}
