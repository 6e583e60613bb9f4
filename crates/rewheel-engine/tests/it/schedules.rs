//! Tests of schedules.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::still::{store, store_with};
use rewheel::{Backoff, minutes, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, Changed, ClockOffset, Filter, Insert, Inserted, PageRequest, ReadStore as _,
};
use rewheel_core::{
    Actor, Job, JobId, Key, KindName, NewJob, Report, ShardKey, State, Tenant, Timestamp, When,
};
use rewheel_engine::notify::{Event, Notice, Notifier, NotifyError, Route};
use rewheel_engine::{
    CatchUp, Engine, EngineBuilder, EngineSettings, FollowUp, KindSettings, Overlap, Schedule,
    ScheduleChange, ScheduleChanged, ScheduleError, ScheduleStatus,
};
use rewheel_stores::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn ops() -> Actor {
    Actor::new("ops")
}

fn builder(store: &MemoryStore) -> EngineBuilder {
    Engine::builder(Arc::new(store.clone())).raw_handler("report", |_| async { Report::Done })
}

fn report() -> FollowUp {
    FollowUp::raw("report", b"{}".to_vec())
}

fn each_minute() -> Schedule {
    Schedule::every(minutes(1), report()).unwrap()
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

async fn children(store: &MemoryStore, parent: JobId) -> Vec<Job> {
    let filter = Filter { parent: Some(parent), ..Filter::default() };
    let mut jobs = store.list(&filter, &PageRequest::first(1_000)).await.unwrap().items;
    jobs.sort_by_key(|job| job.instant);
    jobs
}

async fn read(engine: &Engine, name: &str) -> ScheduleStatus {
    engine.schedule(name).await.unwrap().unwrap()
}

fn millis(at: Timestamp) -> i64 {
    at.as_millis()
}

#[tokio::test(start_paused = true)]
async fn each_instant_submits_one_job_with_the_instant() -> Tested {
    let store = store();
    let seen: Arc<Mutex<Vec<Option<Timestamp>>>> = Arc::default();
    let told = Arc::clone(&seen);
    let engine = Engine::builder(Arc::new(store.clone()))
        .raw_handler("report", move |ctx| {
            told.lock().unwrap().push(ctx.instant());
            async { Report::Done }
        })
        .start()
        .await?;
    let schedule = each_minute().tenant(Tenant::parse("shop")?);
    let put = engine.put_schedule("minutely", &schedule, &ops()).await?;
    assert_eq!((put.next.len(), put.last, put.fired), (5, None, 0));
    assert!(put.next.windows(2).all(|pair| millis(pair[1]) - millis(pair[0]) == 60_000));
    pass(minutes(10)).await;
    let jobs = children(&store, put.id).await;
    let instants: Vec<Timestamp> = jobs.iter().filter_map(|job| job.instant).collect();
    assert_eq!(instants.len(), 10);
    assert_eq!(instants[..5], put.next);
    assert!(instants.windows(2).all(|pair| millis(pair[1]) - millis(pair[0]) == 60_000));
    assert!(jobs.iter().all(|job| job.lane.tenant.as_ref().unwrap().as_str() == "shop"));
    // Fired within a second after the instant.
    assert!(
        jobs.iter()
            .all(|job| (0..1_100).contains(&(millis(job.created) - millis(job.instant.unwrap()))))
    );
    assert_eq!(*seen.lock().unwrap(), instants.iter().copied().map(Some).collect::<Vec<_>>());
    let status = read(&engine, "minutely").await;
    let last = status.last.unwrap();
    assert_eq!((status.fired, status.skipped, status.missed), (10, 0, 0));
    assert_eq!((last.instant, last.job), (instants[9], jobs[9].id));
    Ok(())
}

/// What the job of a schedule says is stored with the schedule, and each of its jobs has it.
#[tokio::test(start_paused = true)]
async fn jobs_have_every_setting_of_the_schedule() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let job = report()
        .group_key("customer-7")
        .shard_key("eu")
        .priority(8)
        .attempts_max(3)
        .attempt_timeout(seconds(7))
        .backoff(Backoff::fixed(seconds(2)));
    let schedule = Schedule::every(minutes(1), job)?;
    let put = engine.put_schedule("minutely", &schedule, &ops()).await?;
    assert_eq!(put.schedule.job.group_key, schedule.job.group_key);
    pass(seconds(90)).await;
    let jobs = children(&store, put.id).await;
    let job = jobs.first().unwrap();
    assert_eq!(job.group.as_ref().unwrap().key.as_str(), "customer-7");
    assert_eq!(job.shard_key.as_ref().unwrap().as_str(), "eu");
    assert_eq!((job.lane.priority.get(), job.attempts_max), (8, Some(3)));
    assert_eq!(job.attempt_timeout, Some(seconds(7)));
    assert_eq!(job.backoff, Some(Backoff::fixed(seconds(2))));
    Ok(())
}

/// Two engines and restarts: the next engine continues where the last one stopped.
#[tokio::test(start_paused = true)]
async fn a_killed_node_loses_and_repeats_no_instant() -> Tested {
    let store = store();
    let first = builder(&store).start().await?;
    let id = first.put_schedule("minutely", &each_minute(), &ops()).await?.id;
    for _ in 0..5 {
        let next = builder(&store).start().await?;
        pass(seconds(90)).await;
        next.kill();
    }
    pass(minutes(3)).await;
    let jobs = children(&store, id).await;
    let instants: BTreeSet<_> = jobs.iter().map(|job| job.instant.unwrap()).collect();
    assert_eq!(instants.len(), jobs.len());
    let status = read(&first, "minutely").await;
    assert_eq!(status.fired, jobs.len() as u64);
    assert!(status.fired + status.missed >= 10, "{status:?}");
    Ok(())
}

struct Told(Arc<Mutex<Vec<Notice>>>);

#[async_trait::async_trait]
impl Notifier for Told {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        self.0.lock().unwrap().push(notice.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn instants_without_any_engine_are_missed_or_caught_up_once() -> Tested {
    for (catch_up, fired, missed) in [(CatchUp::None, 0, 5), (CatchUp::One, 1, 4)] {
        let store = store();
        let engine = builder(&store).start().await?;
        let hourly = Schedule::every(minutes(60), report())?.catch_up(catch_up);
        let put = engine.put_schedule("hourly", &hourly, &ops()).await?;
        engine.shutdown(seconds(1)).await;
        // Five instants pass, and the last is ten minutes ago.
        let now = store.now().await?;
        let left = Duration::from_millis(u64::try_from(millis(put.next[4]) - millis(now))?);
        pass(left + minutes(10)).await;
        let told = Arc::<Mutex<Vec<Notice>>>::default();
        let engine = builder(&store)
            .notifier("person", Route::default(), Told(Arc::clone(&told)))
            .start()
            .await?;
        pass(seconds(30)).await;
        let status = read(&engine, "hourly").await;
        assert_eq!(
            (status.fired, status.missed, status.skipped),
            (fired, missed, 0),
            "{catch_up:?}"
        );
        let jobs = children(&store, put.id).await;
        assert_eq!(jobs.len() as u64, fired);
        assert!(jobs.iter().all(|job| job.instant == Some(put.next[4])));
        let notices: Vec<Notice> = told.lock().unwrap().clone();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert_eq!(notices[0].event, Event::ScheduleMissed);
        assert_eq!(notices[0].attributes["instants"], missed.to_string());
        assert_eq!(notices[0].reason.as_deref(), Some("late"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_instant_is_skipped_while_the_job_before_has_not_ended() -> Tested {
    for (overlap, fired, skipped) in [(Overlap::Skip, 1, 4), (Overlap::Allow, 5, 0)] {
        let (store, told) = (store(), Arc::<Mutex<Vec<Notice>>>::default());
        let engine = Engine::builder(Arc::new(store.clone()))
            .notifier("person", Route::default(), Told(Arc::clone(&told)))
            .kind("slow", KindSettings { attempt_timeout: minutes(60), ..KindSettings::default() })
            .raw_handler("slow", |_| async {
                tokio::time::sleep(minutes(30)).await;
                Report::Done
            })
            .start()
            .await?;
        let slow = FollowUp::raw("slow", Vec::new());
        let schedule = Schedule::every(minutes(1), slow)?.overlap(overlap);
        engine.put_schedule("slow", &schedule, &ops()).await?;
        pass(minutes(5)).await;
        let status = read(&engine, "slow").await;
        assert_eq!((status.fired, status.skipped, status.missed), (fired, skipped, 0));
        let told = told.lock().unwrap().clone();
        assert_eq!(told.len() as u64, skipped, "{told:?}");
        for notice in told {
            let reason = (notice.event, notice.reason.as_deref());
            assert_eq!(reason, (Event::ScheduleMissed, Some("overlap")));
        }
        engine.kill();
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_paused_schedule_does_not_fire_and_catches_nothing_up() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    engine.put_schedule("minutely", &each_minute(), &ops()).await?;
    pass(minutes(2)).await;
    let paused = engine.change_schedule("minutely", ScheduleChange::Pause, None, &ops()).await?;
    let ScheduleChanged::Done(paused) = paused else { panic!("{paused:?}") };
    assert_eq!((paused.state, paused.next.len(), paused.fired), (State::Paused, 0, 2));
    pass(minutes(10)).await;
    assert_eq!(read(&engine, "minutely").await.fired, 2);
    engine.change_schedule("minutely", ScheduleChange::Resume, None, &ops()).await?;
    pass(minutes(2)).await;
    let status = read(&engine, "minutely").await;
    assert_eq!((status.state, status.fired, status.missed), (State::Scheduled, 4, 0));
    let audit = store.audit(Some(status.id), None, 100).await?;
    let verbs: BTreeSet<&str> = audit.iter().map(|entry| entry.what.as_str()).collect();
    assert!(verbs.contains("pause") && verbs.contains("resume"), "{verbs:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_removed_schedule_is_gone_and_its_name_is_free() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let put = engine.put_schedule("minutely", &each_minute(), &ops()).await?;
    pass(minutes(1)).await;
    let removed = engine.change_schedule("minutely", ScheduleChange::Remove, None, &ops()).await?;
    assert!(matches!(removed, ScheduleChanged::Done(_)));
    assert_eq!(engine.schedule("minutely").await?, None);
    pass(minutes(5)).await;
    assert_eq!(children(&store, put.id).await.len(), 1);
    let again = engine.change_schedule("minutely", ScheduleChange::Remove, None, &ops()).await?;
    assert_eq!(again, ScheduleChanged::NotFound);
    let next = engine.put_schedule("minutely", &each_minute(), &ops()).await?;
    assert_ne!(next.id, put.id);
    pass(minutes(2)).await;
    assert_eq!(read(&engine, "minutely").await.fired, 2);
    Ok(())
}

/// A config file is read with each start: this must not put off the next instant.
#[tokio::test(start_paused = true)]
async fn the_same_definition_changes_nothing_and_another_keeps_the_counters() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let put = engine.put_schedule("minutely", &each_minute(), &ops()).await?;
    assert_eq!(engine.put_schedule("minutely", &each_minute(), &ops()).await?, put);
    pass(minutes(3)).await;
    let before = read(&engine, "minutely").await;
    let other = each_minute().overlap(Overlap::Allow);
    let after = engine.put_schedule("minutely", &other, &ops()).await?;
    assert_eq!((after.fired, &after.next, after.id), (3, &before.next, before.id));
    assert_eq!(after.schedule.overlap, Overlap::Allow);
    let hourly = Schedule::cron("0 * * * *", "UTC", report())?;
    let after = engine.put_schedule("minutely", &hourly, &ops()).await?;
    assert_eq!((after.fired, millis(after.next[1]) - millis(after.next[0])), (3, 3_600_000));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_schedule_fired_by_hand_submits_a_job_now() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let put = engine
        .put_schedule("daily", &Schedule::cron("0 3 * * *", "UTC", report())?, &ops())
        .await?;
    let job = engine.fire_schedule("daily", &ops()).await?.unwrap();
    pass(seconds(1)).await;
    let jobs = children(&store, put.id).await;
    assert_eq!((jobs.len(), jobs[0].id, jobs[0].state()), (1, job, State::Succeeded));
    assert!(jobs[0].instant.is_some());
    assert_eq!(read(&engine, "daily").await.next, put.next);
    assert_eq!(engine.fire_schedule("nightly", &ops()).await?, None);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn wrong_definitions_name_the_field_and_store_nothing() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let field = |error: ScheduleError| {
        let ScheduleError::Field { field, .. } = error else { panic!("{error}") };
        field
    };
    assert_eq!(field(Schedule::cron("0 3 31 2 *", "UTC", report()).unwrap_err()), "cron");
    assert_eq!(field(Schedule::cron("0 3 * * *", "Mars/Base", report()).unwrap_err()), "zone");
    assert_eq!(field(Schedule::every(Duration::from_millis(10), report()).unwrap_err()), "every");
    assert_eq!(field(Schedule::every(minutes(1), report().key("x")).unwrap_err()), "job.key");
    let unknown = Schedule::every(minutes(1), FollowUp::raw("nothing", Vec::new()))?;
    let error = engine.put_schedule("x", &unknown, &ops()).await.unwrap_err();
    assert!(error.to_string().contains("the kind does not exist"), "{error}");
    let error = engine.put_schedule("Not A Name", &each_minute(), &ops()).await.unwrap_err();
    assert_eq!(field(error), "name");
    let all = store.list(&Filter::default(), &PageRequest::first(10)).await?.items;
    assert!(all.is_empty(), "{all:?}");
    Ok(())
}

/// A changed or resumed schedule computes its next instant anew: not one that has fired.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_repeats_no_instant() -> Tested {
    let clock = ClockOffset::default();
    let store = store_with(clock.clone());
    let engine = builder(&store).start().await?;
    let id = engine.put_schedule("minutely", &each_minute(), &ops()).await?.id;
    pass(minutes(5)).await;
    clock.turn_back(minutes(3));
    let faster = Schedule::every(seconds(30), report())?;
    engine.put_schedule("minutely", &faster, &ops()).await?;
    pass(minutes(6)).await;
    clock.turn_back(minutes(3));
    for change in [ScheduleChange::Pause, ScheduleChange::Resume] {
        engine.change_schedule("minutely", change, None, &ops()).await?;
    }
    pass(minutes(6)).await;
    let jobs = children(&store, id).await;
    let instants: BTreeSet<_> = jobs.iter().map(|job| job.instant.unwrap()).collect();
    assert_eq!(instants.len(), jobs.len());
    assert!(jobs.len() > 10, "{}", jobs.len());
    Ok(())
}

/// Users change schedules by name: their jobs are not changed like others.
#[tokio::test(start_paused = true)]
async fn the_job_of_a_schedule_is_reserved() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let put = engine.put_schedule("minutely", &each_minute(), &ops()).await?;
    for verb in [ChangeVerb::Pause, ChangeVerb::Cancel, ChangeVerb::Retry] {
        let changed = engine.change(Change::new(put.id, verb), &ops()).await?;
        assert_eq!(changed, Changed::Reserved);
    }
    Ok(())
}

/// A kind that is deleted keeps the schedule waiting; it fires when the kind is back.
#[tokio::test(start_paused = true)]
async fn a_schedule_whose_kind_is_gone_waits_for_it() -> Tested {
    let store = store();
    let engine = builder(&store).kind("mail", KindSettings::default()).start().await?;
    let mail = Schedule::every(minutes(1), FollowUp::raw("mail", Vec::new()))?;
    engine.put_schedule("mail", &mail, &ops()).await?;
    let name = KindName::parse("mail")?;
    let what = rewheel_core::KindEditVerb::Delete;
    engine
        .edit_kind(&rewheel_core::KindEdit { name: name.clone(), what, if_version: None }, &ops())
        .await?;
    pass(minutes(3)).await;
    let status = read(&engine, "mail").await;
    assert_eq!((status.fired, status.state == State::Dead), (0, false));
    let failure = status.failure.unwrap();
    assert!(failure.message().contains("the kind does not exist"), "{failure}");
    engine.put_kind(&name, &KindSettings::default(), &ops()).await?;
    pass(minutes(2)).await;
    assert!(read(&engine, "mail").await.fired > 0);
    Ok(())
}

/// Ten thousand schedules are due at the same instant: each makes one job, on all nodes, and other jobs go on.
#[tokio::test(start_paused = true)]
async fn ten_thousand_schedules_at_one_instant_make_one_job_each() -> Tested {
    const COUNT: usize = 10_000;
    let store = store();
    let settings = || EngineSettings { concurrency: 200, ..EngineSettings::default() };
    let mut engines = Vec::new();
    for _ in 0..3 {
        let done = |_| async { Report::Done };
        engines
            .push(builder(&store).raw_handler("other", done).settings(settings()).start().await?);
    }
    let hourly = Schedule::cron("0 * * * *", "UTC", report())?.overlap(Overlap::Allow);
    let put = engines[0].put_schedule("schedule-0", &hourly, &ops()).await?;
    let first = put.next[0];
    // The others are like the first one. To put them one by one would take the memory store a minute.
    let template = store.get(put.id).await?.unwrap();
    let like_first = |number: usize| {
        let name = format!("schedule-{number}");
        NewJob {
            key: Some(Key::parse(&name).unwrap()),
            shard_key: Some(ShardKey::parse(&name).unwrap()),
            priority: template.lane.priority,
            due: When::At(first.plus(hourly.timing.spread(&name))),
            ..NewJob::new(
                engines[0].new_id(),
                template.lane.kind.clone(),
                template.payload.clone().unwrap(),
            )
        }
    };
    let others: Vec<NewJob> = (1..COUNT).map(like_first).collect();
    for part in others.chunks(1_000) {
        let answers = engines[0].insert(&Insert::new(part)).await?;
        assert!(answers.iter().all(|answer| matches!(answer, Inserted::Created { .. })));
    }
    let left = |now: Timestamp| Duration::from_millis((millis(first) - millis(now)).unsigned_abs());
    pass(left(store.now().await?)).await;
    // While they fire, other jobs are claimed as before.
    let other = engines[1].submit_raw("other", Vec::new()).await?.id;
    pass(seconds(2)).await;
    assert_eq!(store.get(other).await?.unwrap().state(), State::Succeeded);
    pass(minutes(5)).await;
    let (mut per_parent, mut per_second) =
        (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    let filter = Filter { kinds: vec![KindName::parse("report")?], ..Filter::default() };
    let mut page = PageRequest::first(1_000);
    loop {
        let listed = store.list(&filter, &page).await?;
        for job in listed.items {
            assert_eq!(job.instant, Some(first));
            *per_parent.entry(job.parent).or_default() += 1;
            let late = (millis(job.created) - millis(first)) / 100;
            *per_second.entry(late).or_default() += 1;
        }
        let Some(next) = listed.next else { break };
        page = PageRequest::behind(next, 1_000);
    }
    assert_eq!((per_parent.len(), per_parent.values().max()), (COUNT, Some(&1)));
    // Spread over the second after the instant, in every tenth of it.
    assert!(
        (0..10).all(|tenth| per_second.get(&tenth).is_some_and(|jobs| *jobs > COUNT / 50)),
        "{per_second:?}"
    );
    Ok(())
}
