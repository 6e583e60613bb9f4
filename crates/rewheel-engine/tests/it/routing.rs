//! Tests of how an engine applies a kind's failure rules.

use crate::still::store;
use rewheel::{Backoff, Category, StatusSet, Verdict, millis, minutes, seconds};
use rewheel_core::store::{ReadStore, Store};
use rewheel_core::{
    Action, Actor, Failure, FailureRule, FailureRules, Job, JobId, KindName, Report, State, Sticky,
};
use rewheel_engine::{Engine, JobContext, KindSettings};
use rewheel_stores::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn shared(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

/// Waits until a job is in a state.
async fn reached(store: &MemoryStore, id: JobId, state: State) -> Job {
    loop {
        let job = store.get(id).await.expect("memory").expect("it is kept");
        if job.state() == state {
            return job;
        }
        assert!(job.state().is_live(), "it is {} instead of {state}", job.state());
        tokio::time::sleep(millis(100)).await;
    }
}

/// Fails with the payload as its code, as a permanent failure; the payload `ok` succeeds.
fn failing(ctx: &JobContext) -> Report {
    match std::str::from_utf8(ctx.payload()) {
        Ok("ok") => Report::Done,
        code => {
            let failure = Failure::new(Category::Rejected, code.ok(), "no");
            Report::AttemptFailed { verdict: Verdict::Stop, failure }
        }
    }
}

fn routed(failure_rules: FailureRules) -> KindSettings {
    KindSettings {
        attempts_max: 3,
        backoff: Backoff::fixed(seconds(1)),
        failure_rules,
        ..KindSettings::default()
    }
}

async fn engine(store: &MemoryStore, failure_rules: FailureRules) -> Engine {
    let builder = Engine::builder(shared(store)).kind("work", routed(failure_rules));
    let builder = builder.raw_handler("work", |ctx: JobContext| async move { failing(&ctx) });
    builder.start().await.expect("it starts")
}

/// Returns the decision about each attempt, with the delay after it.
async fn decisions(
    store: &MemoryStore,
    id: JobId,
) -> Result<Vec<(u32, String, Option<Duration>)>, rewheel_core::store::StoreError> {
    let attempts = store.attempts(id).await?;
    Ok(attempts.into_iter().map(|a| (a.attempt, a.decision, a.delay)).collect())
}

#[tokio::test(start_paused = true)]
async fn each_rule_leads_its_failures_where_it_says() -> Tested {
    let store = store();
    let failure_rules = FailureRules::new()
        .rule(FailureRule::new(Action::Fail).on_code("fail"))
        .rule(FailureRule::new(Action::Cancel).on_code("cancel"))
        .rule(FailureRule::new(Action::Pause).on_code("pause"))
        .rule(FailureRule::new(Action::Dead).on_category(Category::Rejected));
    let engine = engine(&store, failure_rules).await;
    let ends = [
        ("fail", State::Failed, 1),
        ("cancel", State::Cancelled, 1),
        ("pause", State::Paused, 0),
        ("else", State::Dead, 1),
    ];
    for (code, state, attempts) in ends {
        let id = engine.submit_raw("work", code.into()).await?.id;
        let job = reached(&store, id, state).await;
        assert_eq!(job.attempt, attempts, "{code}");
        assert_eq!(job.failure.expect("it failed").code(), Some(code));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_no_rule_fits_goes_by_the_kinds_settings() -> Tested {
    let store = store();
    let engine =
        engine(&store, FailureRules::new().rule(FailureRule::new(Action::Pause).on_code("a")))
            .await;
    let id = engine.submit_raw("work", "b".into()).await?.id;
    assert_eq!(reached(&store, id, State::Dead).await.attempt, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn retries_by_a_rule_run_out_as_others_do() -> Tested {
    let store = store();
    let failure_rules = FailureRules::new()
        .rule(FailureRule::new(Action::RetryAfter(seconds(30))).on_code("later"))
        .rule(FailureRule::new(Action::RetrySlower(4)).on_code("slower").sticky(Sticky::No))
        .rule(FailureRule::new(Action::Retry).on_code("again").sticky(Sticky::No));
    let engine = engine(&store, failure_rules).await;
    for (code, wait) in [("later", 30), ("slower", 4), ("again", 1)] {
        let id = engine.submit_raw("work", code.into()).await?.id;
        reached(&store, id, State::Dead).await;
        let retry = |attempt| (attempt, "retry".to_owned(), Some(seconds(wait)));
        let expected = vec![retry(1), retry(2), (3, "dead".to_owned(), None)];
        assert_eq!(decisions(&store, id).await?, expected, "{code}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rule_keeps_a_retry_with_its_holder_or_lets_it_go() -> Tested {
    let store = store();
    let failure_rules = FailureRules::new()
        .rule(FailureRule::new(Action::RetryAfter(minutes(5))).on_code("stay").sticky(Sticky::Yes))
        .rule(FailureRule::new(Action::RetryAfter(seconds(7))).on_code("go").sticky(Sticky::No));
    let engine = engine(&store, failure_rules).await;
    let stay = engine.submit_raw("work", "stay".into()).await?.id;
    let go = engine.submit_raw("work", "go".into()).await?.id;
    tokio::time::sleep(seconds(1)).await;
    let state = async |id| store.get(id).await.map(|job| job.map(|job| (job.state(), job.attempt)));
    assert_eq!(state(stay).await?, Some((State::Leased, 1)));
    assert_eq!(state(go).await?, Some((State::Scheduled, 1)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_snooze_by_a_rule_uses_up_no_attempt_and_is_told() -> Tested {
    let store = store();
    let snooze = FailureRule::new(Action::Snooze(minutes(5))).on_status(StatusSet::EMPTY.with(409));
    let engine = engine(&store, FailureRules::new().rule(snooze)).await;
    let id = engine.submit_raw("work", "409".into()).deadline_in(minutes(31)).await?.id;
    let job = reached(&store, id, State::Dead).await;
    assert_eq!(job.failure.expect("it failed").category(), Category::Deadline);
    let told = decisions(&store, id).await?;
    assert_eq!(told.len(), 7, "at 0, 5, 10, 15, 20, 25 and 30 minutes: {told:?}");
    let snoozed = (1, "snooze".to_owned(), Some(minutes(5)));
    assert!(told[..6].iter().all(|one| *one == snoozed), "{told:?}");
    assert_eq!(told[6], (1, "dead".to_owned(), None));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn rules_that_are_changed_hold_at_once() -> Tested {
    let store = store();
    let engine =
        engine(&store, FailureRules::new().rule(FailureRule::new(Action::Snooze(seconds(5)))))
            .await;
    let id = engine.submit_raw("work", "stuck".into()).await?.id;
    tokio::time::sleep(seconds(12)).await;
    let given_up = routed(FailureRules::new().rule(FailureRule::new(Action::Fail)));
    engine.put_kind(&KindName::parse("work")?, &given_up, &Actor::new("test")).await?;
    assert_eq!(reached(&store, id, State::Failed).await.attempt, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_says_outright_is_not_overruled() -> Tested {
    let store = store();
    let engine = Engine::builder(shared(&store))
        .kind(
            "work",
            routed(FailureRules::new().rule(FailureRule::new(Action::Snooze(seconds(1))))),
        )
        .raw_handler("work", |_| async {
            Report::Dead(Failure::new(Category::Rejected, Some("409"), "no"))
        })
        .start()
        .await?;
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    assert_eq!(reached(&store, id, State::Dead).await.attempt, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn rules_that_cannot_work_are_refused_at_start() {
    let failure_rules = FailureRules::new()
        .rule(FailureRule::new(Action::Dead))
        .rule(FailureRule::new(Action::Fail).on_code("a"));
    let start = Engine::builder(shared(&store())).kind("work", routed(failure_rules)).start();
    let expected =
        "kind `work`: failure_rules: rule 2: is never reached: rule 1 matches every failure";
    assert_eq!(start.await.unwrap_err().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_is_counted_by_decision_and_category() -> Tested {
    let store = store();
    let failure_rules = FailureRules::new()
        .rule(FailureRule::new(Action::Fail).on_code("fail"))
        .rule(FailureRule::new(Action::Retry).on_code("again"));
    let engine = engine(&store, failure_rules).await;
    assert_eq!(engine.decisions(), []);
    for (code, state) in [
        ("ok", State::Succeeded),
        ("ok", State::Succeeded),
        ("fail", State::Failed),
        ("again", State::Dead),
    ] {
        let id = engine.submit_raw("work", code.into()).await?.id;
        reached(&store, id, state).await;
    }
    let counted = engine.decisions();
    let counted: Vec<_> = counted.iter().map(|c| (c.decision, c.category, c.count)).collect();
    let rejected = Some(Category::Rejected);
    let expected = [
        ("succeed", None, 2),
        ("retry", rejected, 2),
        ("dead", rejected, 1),
        ("fail", rejected, 1),
    ];
    assert_eq!(counted, expected);
    Ok(())
}

/// An error that is routed by its type.
enum BankError {
    Busy,
    Locked,
    Stolen,
}

impl From<BankError> for Report {
    fn from(error: BankError) -> Report {
        match error {
            BankError::Busy => Report::retry_after(seconds(30), "busy"),
            BankError::Locked => Report::snooze(seconds(60)),
            BankError::Stolen => Report::dead("stolen"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handlers_error_is_routed_by_its_type() -> Tested {
    let store = store();
    let engine = Engine::builder(shared(&store))
        .kind("work", routed(FailureRules::new()))
        .kind("plain", routed(FailureRules::new()))
        .raw_handler("work", |ctx: JobContext| async move {
            if ctx.payload() == b"io" {
                Err(std::io::Error::from(std::io::ErrorKind::TimedOut))?;
            }
            match ctx.attempt() {
                1 => Err(BankError::Busy)?,
                2 if ctx.fence().get() < 3 => Err(BankError::Locked)?,
                _ => Err(BankError::Stolen)?,
            }
            Ok::<(), Report>(())
        })
        // Without `Report`.
        .raw_handler("plain", |_| async { Err::<(), _>(BankError::Stolen) })
        .start()
        .await?;
    let id = engine.submit_raw("work", Vec::new()).await?.id;
    assert_eq!(reached(&store, id, State::Dead).await.attempt, 2);
    let told = decisions(&store, id).await?;
    // A handler that snoozes reports no failure, and leaves no record.
    let expected = [(1, "retry".to_owned(), Some(seconds(30))), (2, "dead".to_owned(), None)];
    assert_eq!(told, expected);
    let io = engine.submit_raw("work", "io".into()).await?.id;
    let failure = reached(&store, io, State::Dead).await.failure.expect("it failed");
    assert_eq!(failure.category(), Category::Timeout);
    let plain = engine.submit_raw("plain", Vec::new()).await?.id;
    let failure = reached(&store, plain, State::Dead).await.failure.expect("it failed");
    assert_eq!(failure.message(), "stolen");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_jobs_own_settings_hold_under_rules_too() -> Tested {
    let store = store();
    let engine =
        engine(&store, FailureRules::new().rule(FailureRule::new(Action::RetrySlower(2)))).await;
    let own = Backoff::fixed(seconds(7));
    let id = engine.submit_raw("work", "a".into()).attempts_max(2).backoff(own).await?.id;
    reached(&store, id, State::Dead).await;
    let expected = [(1, "retry".to_owned(), Some(seconds(14))), (2, "dead".to_owned(), None)];
    assert_eq!(decisions(&store, id).await?, expected);
    Ok(())
}
