//! Jobs that no engine checked when they were stored stay within the limits of their kind.

use rewheel::{Backoff, Category, millis, seconds};
use rewheel_core::store::{Insert, Store};
use rewheel_core::{Failure, Job, JobId, KindName, NewJob, Report, State, Status, WorkerOwner};
use rewheel_engine::{Engine, EngineSettings, KindSettings, RunnerKind};
use std::sync::Arc;
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Longer than any test runs: a job that waits so long was not limited.
const LONG: Duration = seconds(36_500 * 24 * 3_600);

const HOUR: Duration = seconds(3_600);

/// The jobs of the test, each with one value beyond its limit.
struct Jobs {
    attempts_max: JobId,
    attempt_timeout: JobId,
    backoff: JobId,
    of_worker: JobId,
}

async fn engine(store: &Arc<dyn Store>) -> Result<Engine, Box<dyn std::error::Error>> {
    let settings = |change: fn(&mut KindSettings)| {
        let mut settings = KindSettings { attempts_max: 2, ..KindSettings::default() };
        settings.backoff = Backoff::fixed(Duration::ZERO);
        change(&mut settings);
        settings
    };
    let many = settings(|kind| kind.attempts_ceiling = Some(3));
    let slow = settings(|kind| {
        (kind.attempts_max, kind.attempt_timeout) = (1, millis(20));
        kind.attempt_timeout_ceiling = Some(millis(50));
    });
    let fast = settings(|kind| {
        (kind.backoff, kind.delay_floor) = (Backoff::fixed(HOUR), Some(HOUR));
    });
    let remote = settings(|kind| {
        kind.runner = RunnerKind::Worker;
        kind.attempt_timeout_ceiling = Some(HOUR);
    });
    let fails = |_| async { Report::retry(Failure::new(Category::Io, None, "connection reset")) };
    let builder = Engine::builder(Arc::clone(store))
        .settings(EngineSettings { poll: millis(20), ..EngineSettings::default() })
        .kind("many", many)
        .kind("slow", slow)
        .kind("fast", fast)
        .kind("remote", remote)
        .raw_handler("many", fails)
        .raw_handler("slow", |_| std::future::pending::<Report>())
        .raw_handler("fast", fails);
    Ok(builder.start().await?)
}

/// Waits until a stored job is as expected.
async fn until(
    store: &Arc<dyn Store>,
    id: JobId,
    is: impl Fn(&Job) -> bool,
) -> Result<Job, Box<dyn std::error::Error>> {
    let look = async {
        loop {
            match store.get(id).await? {
                Some(job) if is(&job) => return Ok(job),
                Some(_) | None => tokio::time::sleep(millis(20)).await,
            }
        }
    };
    tokio::time::timeout(seconds(120), look).await?
}

async fn stay_within_limits(store: &Arc<dyn Store>, engine: Engine, jobs: Jobs) -> Tested {
    let dead = |job: &Job| job.state() == State::Dead;
    assert_eq!(until(store, jobs.attempts_max, dead).await?.attempt, 3);

    let cut = until(store, jobs.attempt_timeout, dead).await?;
    assert_eq!(cut.failure.map(|failure| failure.category()), Some(Category::Timeout));

    let before = store.now().await?;
    let again = |job: &Job| job.attempt == 1 && job.state() == State::Scheduled;
    let waits = until(store, jobs.backoff, again).await?;
    assert!(waits.due.since(before) > HOUR / 2, "it is due {:?}", waits.due);

    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    let claimed = worker.claim(&[KindName::parse("remote")?], 1).await?;
    assert_eq!(claimed.iter().map(|one| one.job.id).collect::<Vec<_>>(), [jobs.of_worker]);
    // The server cannot stop the worker. Another node takes over the job when it has passed its time limit.
    let Status::Leased { overdue, .. } = claimed[0].job.status else { panic!("{claimed:?}") };
    assert!(overdue.since(before) < HOUR * 2, "it is overdue {overdue:?}");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Stores jobs without an engine, as another program with access to the store would.
async fn insert(
    store: &Arc<dyn Store>,
    engine: &Engine,
) -> Result<Jobs, Box<dyn std::error::Error>> {
    let job = |kind: &str| -> Result<NewJob, Box<dyn std::error::Error>> {
        Ok(NewJob::new(engine.new_id(), KindName::parse(kind)?, b"{}".to_vec()))
    };
    let new = [
        NewJob { attempts_max: Some(u32::MAX), ..job("many")? },
        NewJob { attempt_timeout: Some(LONG), ..job("slow")? },
        NewJob { backoff: Some(Backoff::fixed(Duration::ZERO)), ..job("fast")? },
        NewJob { attempt_timeout: Some(LONG), ..job("remote")? },
    ];
    store.insert(&Insert::new(&new)).await?;
    let [attempts_max, attempt_timeout, backoff, of_worker] = new.map(|job| job.id);
    Ok(Jobs { attempts_max, attempt_timeout, backoff, of_worker })
}

async fn inserted_without_an_engine(url: &str) -> Tested {
    let store = rewheel_stores::connect(url).await?;
    let engine = engine(&store).await?;
    let jobs = insert(&store, &engine).await?;
    stay_within_limits(&store, engine, jobs).await
}

#[tokio::test]
async fn rows_in_memory_stay_within_the_limits_of_their_kind() -> Tested {
    inserted_without_an_engine("memory://").await
}

#[tokio::test]
async fn rows_of_sqlite_stay_within_the_limits_of_their_kind() -> Tested {
    let folder = tempfile::tempdir()?;
    inserted_without_an_engine(&format!("sqlite://{}", folder.path().join("rewheel.db").display()))
        .await
}

#[cfg(feature = "test-postgres")]
#[tokio::test]
async fn jobs_submitted_by_sql_stay_within_the_limits_of_their_kind() -> Tested {
    let schema = rewheel_testkit::Schema::fresh();
    let store = rewheel_stores::connect(schema.url()).await?;
    let engine = engine(&store).await?;
    let client = schema.connect().await;
    let name = schema.name();
    let mut jobs = Vec::new();
    for arguments in [
        "'many', '{}', attempts_max => 2147483647",
        "'slow', '{}', attempt_timeout => '36500 days'",
        // The function takes no backoff, but a user may write the row.
        "'fast', '{}', delay => '1 hour'",
        "'remote', '{}', attempt_timeout => '36500 days'",
    ] {
        let sql = format!("SELECT {name}.rewheel_submit({arguments})::text");
        let id: String = client.query_one(&sql, &[]).await?.get(0);
        jobs.push(id.parse::<JobId>()?);
    }
    let sql = format!(
        "UPDATE {name}.jobs SET backoff = 'fixed 0ms', due_ms = {name}.now_ms() WHERE id = '{}'",
        jobs[2]
    );
    assert_eq!(client.execute(&sql, &[]).await?, 1);
    let [attempts_max, attempt_timeout, backoff, of_worker] = jobs[..] else {
        return Err("four jobs".into());
    };
    stay_within_limits(&store, engine, Jobs { attempts_max, attempt_timeout, backoff, of_worker })
        .await
}
