//! Tests of jobs that an attempt submits with its result.

use crate::still::store;
use rewheel::{Backoff, Category, Verdict, millis, seconds};
use rewheel_core::store::{Filter, LeaseStore, PageRequest, ReadStore, Refusal};
use rewheel_core::{
    Failure, Format, HolderId, Job, JobId, KindName, Limits, NewHolder, NewJob, Report, Role,
    State, Timestamp, WorkerOwner,
};
use rewheel_engine::{
    Engine, EngineBuilder, FollowUp, JobContext, KindSettings, RunnerKind, SubmitError,
    WorkerResult, WorkerSettled,
};
use rewheel_stores::MemoryStore;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// An engine with the kind `mail`, which works.
fn builder(store: &MemoryStore) -> EngineBuilder {
    let quick = KindSettings {
        attempts_max: 3,
        attempt_timeout: seconds(10),
        backoff: Backoff::fixed(millis(50)),
        ..KindSettings::default()
    };
    Engine::builder(Arc::new(store.clone()))
        .kind("charge", quick.clone())
        .kind("mail", quick)
        .raw_handler("mail", |_| async { Report::Done })
}

fn mail() -> FollowUp {
    FollowUp::raw("mail", b"{}".to_vec())
}

fn failing() -> Report {
    let failure = Failure::new(Category::Io, None, "connection reset");
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
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

async fn children(store: &MemoryStore, parent: JobId) -> Vec<Job> {
    let filter = Filter { parent: Some(parent), ..Filter::default() };
    store.list(&filter, &PageRequest::first(100)).await.expect("memory").items
}

#[tokio::test(start_paused = true)]
async fn a_success_submits_what_its_handler_collected() -> Tested {
    let store = store();
    let seen = store.clone();
    let charge = move |ctx: JobContext| {
        let store = seen.clone();
        async move {
            ctx.submit(mail().key("receipt").delay(seconds(5)).priority(7))?;
            // Nothing is stored before the attempt ends.
            assert!(children(&store, ctx.id()).await.is_empty());
            Ok::<(), Report>(())
        }
    };
    let engine = builder(&store).raw_handler("charge", charge).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).tenant("acme").await?;
    assert_eq!(ended(&store, job.id).await.state(), State::Succeeded);
    let [child] = children(&store, job.id).await.try_into().expect("one job");
    assert_eq!((child.parent, child.lane.priority.get()), (Some(job.id), 7));
    assert_eq!(child.lane.tenant.as_ref().map(ToString::to_string).as_deref(), Some("acme"));
    assert_eq!(child.key.as_ref().map(ToString::to_string).as_deref(), Some("receipt"));
    assert!(child.due >= child.created.plus(seconds(5)));
    assert_eq!(ended(&store, child.id).await.state(), State::Succeeded);
    assert_eq!(store.books().await?.missing(), 0);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// How the first attempt goes wrong.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Fails,
    Panics,
    IsCut,
    Dies,
    FailsForGood,
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_goes_wrong_submits_nothing() -> Tested {
    for wrong in [Wrong::Fails, Wrong::Panics, Wrong::IsCut, Wrong::Dies, Wrong::FailsForGood] {
        let (store, attempts) = (store(), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&attempts);
        let charge = move |ctx: JobContext| {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                ctx.submit(mail())?;
                match wrong {
                    _ if !first => Ok::<Report, Report>(Report::Done),
                    Wrong::Fails => Ok(failing()),
                    Wrong::Panics => panic!("planned"),
                    Wrong::IsCut => std::future::pending().await,
                    Wrong::Dies => Ok(Report::dead("no such card")),
                    Wrong::FailsForGood => Ok(Report::FailJob("no such card".into())),
                }
            }
        };
        let engine = builder(&store).raw_handler("charge", charge).start().await?;
        let job = engine.submit_raw("charge", Vec::new()).await?;
        let state = ended(&store, job.id).await.state();
        let retried = usize::from(state == State::Succeeded);
        assert_eq!(attempts.load(Ordering::SeqCst), 1 + u32::from(retried == 1), "{wrong:?}");
        let found = children(&store, job.id).await;
        assert_eq!(found.len(), retried, "{wrong:?}: only the attempt that worked submits");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_snooze_submits_what_its_attempt_collected() -> Tested {
    let (store, attempts) = (store(), Arc::new(AtomicU32::new(0)));
    let charge = move |ctx: JobContext| {
        let number = attempts.fetch_add(1, Ordering::SeqCst);
        async move {
            ctx.submit(mail())?;
            let report = if number < 2 { Report::snooze(seconds(60)) } else { Report::Done };
            Ok::<Report, Report>(report)
        }
    };
    let engine = builder(&store).raw_handler("charge", charge).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    assert_eq!(ended(&store, job.id).await.state(), State::Succeeded);
    assert_eq!(children(&store, job.id).await.len(), 3);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Runs an attempt that submits these jobs. Returns the error of the last one.
async fn refusal(store: &MemoryStore, jobs: Vec<FollowUp>) -> Option<SubmitError> {
    let (jobs, error) = (Arc::new(Mutex::new(jobs)), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&error);
    let charge = move |ctx: JobContext| {
        for job in jobs.lock().expect("nothing panics with it").drain(..) {
            *told.lock().expect("nothing panics with it") = ctx.submit(job).err();
        }
        async { Report::Done }
    };
    let engine = builder(store).raw_handler("charge", charge).start().await.expect("it starts");
    let job = engine.submit_raw("charge", Vec::new()).await.expect("stored");
    assert_eq!(ended(store, job.id).await.state(), State::Succeeded);
    engine.shutdown(seconds(1)).await;
    error.lock().expect("nothing panics with it").take()
}

#[tokio::test(start_paused = true)]
async fn the_seventeenth_and_too_many_bytes_are_refused_at_once() -> Tested {
    let all = |count: usize| (0..count).map(|_| mail()).collect::<Vec<_>>();
    assert!(refusal(&store(), all(Limits::FOLLOW_UPS_MAX)).await.is_none());
    let store = store();
    let error = refusal(&store, all(Limits::FOLLOW_UPS_MAX + 1)).await;
    let text = error.expect("the 17th is refused").to_string();
    assert!(text.contains("follow_ups must be 16 or fewer"), "{text}");
    let kept = store.list(&Filter::default(), &PageRequest::first(100)).await?.items;
    assert_eq!(kept.iter().filter(|job| job.parent.is_some()).count(), Limits::FOLLOW_UPS_MAX);
    let half = || FollowUp::raw("mail", vec![b'1'; Limits::FOLLOW_UPS_BYTES_MAX / 2]);
    let error = refusal(&self::store(), vec![half(), half(), mail()]).await;
    let text = error.expect("too many bytes").to_string();
    assert!(text.contains("the limit is 262144"), "{text}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_job_is_refused_at_once() {
    for (job, wrong) in [
        (FollowUp::raw("No!", Vec::new()), "kind"),
        (FollowUp::raw("rewheel.operation", Vec::new()), "kind"),
        (FollowUp::raw("fax", Vec::new()), "the kind does not exist"),
        (mail().key(""), "key"),
        (mail().priority(10), "priority"),
        (mail().attempts_max(0), "attempts_max"),
        (mail().attempts_max(5_000), "attempts_max"),
        (mail().attempt_timeout(Duration::ZERO), "attempt_timeout"),
    ] {
        let error = refusal(&store(), vec![job]).await.expect(wrong).to_string();
        assert!(error.contains(wrong), "{wrong}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_has_ended_submits_nothing_more() -> Tested {
    let (store, kept) = (store(), Arc::new(Mutex::new(None)));
    let keeps = Arc::clone(&kept);
    let charge = move |ctx: JobContext| {
        *keeps.lock().expect("nothing panics with it") = Some(ctx);
        async { Report::Done }
    };
    let engine = builder(&store).raw_handler("charge", charge).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    ended(&store, job.id).await;
    let ctx = kept.lock().expect("nothing panics with it").take().expect("it ran");
    let error = ctx.submit(mail()).expect_err("it is too late").to_string();
    assert!(error.contains("the attempt has ended"), "{error}");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// While a node of an older release lives, a handler hears of it, and no dead letter appears.
#[tokio::test(start_paused = true)]
async fn an_older_node_is_named() -> Tested {
    let store = store();
    let id = HolderId::new(Timestamp::from_millis(1), &rewheel::Random::seeded(7));
    let (name, role, format) = ("old-1".to_owned(), Role::Engine, Format::FIRST);
    store.join(&NewHolder { id, name, role, lease_ttl: seconds(3_600), format }).await?;
    let error = refusal(&store, vec![mail()]).await.expect("it is refused");
    let named = SubmitError::Refused(Refusal::HolderTooOld { holder: "old-1".to_owned() });
    assert_eq!(error.to_string(), named.to_string());
    store.leave(id).await?;
    assert!(refusal(&store, vec![mail()]).await.is_none());
    Ok(())
}

/// A kind that is deleted between submit and settle costs the parent nothing: the job becomes a dead letter.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_becomes_a_dead_letter() -> Tested {
    let store = store();
    let key = "order-17";
    let charge = move |ctx: JobContext| async move {
        ctx.submit(mail().key(key))?;
        ctx.submit(FollowUp::raw("mail", b"other".to_vec()).key(key))?;
        Ok::<(), Report>(())
    };
    let engine = builder(&store).raw_handler("charge", charge).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    assert_eq!(ended(&store, job.id).await.state(), State::Succeeded);
    let found = children(&store, job.id).await;
    let dead: Vec<_> = found.iter().filter(|job| job.state() == State::Dead).collect();
    assert_eq!((found.len(), dead.len()), (2, 1));
    let code = dead[0].failure.as_ref().and_then(Failure::code);
    assert_eq!(code, Some(Failure::FOLLOW_UP_REFUSED));
    assert_eq!(store.books().await?.missing(), 0);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_workers_result_submits_jobs_once() -> Tested {
    let store = store();
    let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let engine = builder(&store).kind("remote", kind).start().await?;
    let job = engine.submit_raw("remote", b"1".to_vec()).tenant("acme").await?;
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    let leased = worker.claim(&[KindName::parse("remote")?], 1).await?;
    let child = NewJob::new(engine.new_id(), KindName::parse("mail")?, b"{}".to_vec());
    worker.check_follow_up(&child).await?;
    let unknown = NewJob { kind: KindName::parse("fax")?, ..child.clone() };
    let error = worker.check_follow_up(&unknown).await.expect_err("no such kind");
    assert!(matches!(error, SubmitError::Refused(Refusal::UnknownKind)), "{error}");
    let (lease, took) = (leased[0].lease(), Duration::ZERO);
    let done = WorkerResult {
        lease,
        report: Report::Done,
        took,
        follow_ups: vec![child.clone()],
        result: None,
        code: None,
    };
    let succeeded = [WorkerSettled::Settled(State::Succeeded)];
    assert_eq!(worker.settle(vec![done.clone()]).await?, succeeded);
    assert_eq!(worker.settle(vec![done]).await?, succeeded, "the answer was lost");
    let [found] = children(&store, job.id).await.try_into().expect("one job");
    assert_eq!(found.id, child.id);
    assert_eq!(found.lane.tenant.as_ref().map(ToString::to_string).as_deref(), Some("acme"));
    // A failed attempt submits nothing.
    let job = engine.submit_raw("remote", b"1".to_vec()).await?;
    let leased = worker.claim(&[KindName::parse("remote")?], 1).await?;
    let (lease, id) = (leased[0].lease(), engine.new_id());
    let failed = WorkerResult {
        lease,
        report: failing(),
        took,
        follow_ups: vec![NewJob { id, ..child }],
        result: None,
        code: None,
    };
    worker.settle(vec![failed]).await?;
    assert!(children(&store, job.id).await.is_empty());
    engine.shutdown(seconds(1)).await;
    Ok(())
}
