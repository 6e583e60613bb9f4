//! Tests waking tasks that wait for jobs.

use crate::race::both;
use crate::{Subject, lane, seconds};
use rewheel::Timeout;
use rewheel_core::store::{ChangeVerb, Edit, Outcome, Settled, StoreChange, Wakes, Watch};
use rewheel_core::{KindChange, Lane, Priority, State};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Returns a watcher, unless the store cannot wake.
fn watcher(subject: &Subject) -> Option<Box<dyn Watch>> {
    let can = subject.store.capabilities();
    match can.wakes {
        Wakes::Process | Wakes::Fleet => Some(subject.store.watch()),
        Wakes::None => {
            #[expect(clippy::print_stderr, reason = "a case that was skipped must say so")]
            {
                eprintln!("skipped: {} sends no wake-ups", can.name);
            }
            None
        }
    }
}

/// Waits for a watcher. Only a failing store reaches the time limit.
async fn woken(watch: &mut Box<dyn Watch>, by: &str) {
    let call = move || async move {
        watch.changed().await;
        Ok::<(), Infallible>(())
    };
    assert!(Timeout::new(seconds(20)).call(call).await.is_ok(), "{by} woke no watcher");
}

/// Checks once whether a watcher was woken.
async fn is_woken(watch: &mut Box<dyn Watch>) -> bool {
    let mut changed = pin!(watch.changed());
    poll_fn(|cx| Poll::Ready(changed.as_mut().poll(cx).is_ready())).await
}

/// A new job wakes a waiting watcher.
pub async fn an_insert_wakes_one_who_waits(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let Some(mut watch) = watcher(subject) else { return };
    let job = [subject.job("charge")];
    both(woken(&mut watch, "an insert"), subject.insert(&job)).await;
}

/// A new job wakes a watcher that starts waiting after it, but was created before.
pub async fn an_insert_wakes_one_who_waits_later(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let Some(mut watch) = watcher(subject) else { return };
    subject.submit("charge").await;
    woken(&mut watch, "an insert").await;
}

/// A job that is given back wakes.
pub async fn what_is_given_back_wakes(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let Some(mut watch) = watcher(subject) else { return };
    subject.give_back(holder, lease).await;
    woken(&mut watch, "a give-back").await;
}

/// A retry that goes back to the store wakes.
pub async fn a_retry_that_is_let_go_wakes(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let Some(mut watch) = watcher(subject) else { return };
    let settled = subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Scheduled)));
    woken(&mut watch, "a retry").await;
}

/// A takeover wakes.
pub async fn a_sweep_wakes(subject: &Subject) {
    let by = subject.holder().await;
    let (gone, _) = subject.leased("charge").await;
    subject.store.leave(gone).await.unwrap();
    let Some(mut watch) = watcher(subject) else { return };
    assert_eq!(subject.sweep(by).await.len(), 1);
    woken(&mut watch, "a sweep").await;
}

/// Every operator action that lets a job run wakes.
pub async fn what_people_let_run_wakes(subject: &Subject) {
    for (state, what) in [
        (State::Paused, ChangeVerb::Resume),
        (State::Scheduled, ChangeVerb::Retry),
        (State::Dead, ChangeVerb::Redrive { deadline: None }),
    ] {
        let job = subject.job_in(state.as_str(), state).await;
        let Some(mut watch) = watcher(subject) else { return };
        subject.apply(job, what.clone()).await;
        woken(&mut watch, what.as_str()).await;
    }
}

/// A wanted pause or cancel of a leased job wakes its holder.
pub async fn what_people_want_wakes(subject: &Subject) {
    for what in [ChangeVerb::Pause, ChangeVerb::Cancel] {
        let (_, lease) = subject.leased("charge").await;
        let Some(mut watch) = watcher(subject) else { return };
        subject.change(lease.job, what.clone()).await;
        woken(&mut watch, what.as_str()).await;
    }
}

/// A change of a kind, or of its settings, wakes.
pub async fn a_change_of_a_kind_wakes(subject: &Subject) {
    let Some(mut watch) = watcher(subject) else { return };
    subject.kinds(&["charge"]).await;
    woken(&mut watch, "a new kind").await;
    for change in [KindChange::Pause, KindChange::Resume] {
        let Some(mut watch) = watcher(subject) else { return };
        subject.apply_kind("charge", change.clone()).await;
        woken(&mut watch, change.as_str()).await;
    }
    let Some(mut watch) = watcher(subject) else { return };
    subject.park("charge").await;
    woken(&mut watch, "a park").await;
    let Some(mut watch) = watcher(subject) else { return };
    subject.unpark("charge").await;
    woken(&mut watch, "an unpark").await;
}

/// Every watcher is woken, not only the first.
pub async fn every_watcher_is_woken(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let Some(first) = watcher(subject) else { return };
    let mut watchers = vec![first, subject.store.watch(), subject.store.watch()];
    subject.submit("charge").await;
    for watch in &mut watchers {
        woken(watch, "an insert").await;
    }
}

/// Many changes wake only a few times.
pub async fn many_changes_wake_a_few_times(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let Some(mut watch) = watcher(subject) else { return };
    for _ in 0..50 {
        subject.insert(&[subject.job("charge")]).await;
    }
    woken(&mut watch, "an insert").await;
    let mut returns = 1;
    while is_woken(&mut watch).await {
        returns += 1;
        assert!(returns <= 5, "50 changes woke {returns} times and more");
    }
}

/// A wait that was dropped, as in a `select!`, loses nothing.
pub async fn a_wait_that_was_dropped_loses_nothing(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let Some(mut watch) = watcher(subject) else { return };
    while is_woken(&mut watch).await {}
    subject.submit("charge").await;
    woken(&mut watch, "an insert").await;
    while is_woken(&mut watch).await {}
    subject.submit("charge").await;
    woken(&mut watch, "a second insert").await;
}

/// Waits until a watcher reports a lane. Only a failing store reaches the time limit.
async fn reports(watch: &mut Box<dyn Watch>, lane: &Lane, by: &str) {
    let call = move || async move {
        loop {
            match watch.changed().await {
                StoreChange::Lanes(lanes) if lanes.contains(lane) => {
                    return Ok::<(), Infallible>(());
                }
                StoreChange::Lanes(_) => {}
                StoreChange::AnyLane | StoreChange::Replaced => return Ok(()),
            }
        }
    };
    assert!(Timeout::new(seconds(20)).call(call).await.is_ok(), "{by} did not report its lane");
}

/// Whatever makes a job claimable reports its lane, or any lane: watchers read nothing else.
pub async fn whatever_makes_a_job_claimable_reports_its_lane(subject: &Subject) {
    let charge = lane("charge");
    subject.kinds(&["charge"]).await;
    let Some(mut watch) = watcher(subject) else { return };
    subject.submit("charge").await;
    reports(&mut watch, &charge, "an insert").await;
    let holder = subject.holder().await;

    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    let mut watch = subject.store.watch();
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    reports(&mut watch, &charge, "a retry").await;

    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    let mut watch = subject.store.watch();
    subject.give_back(holder, lease).await;
    reports(&mut watch, &charge, "a give-back").await;

    subject.claim(holder, &["charge"], 1).await;
    let by = subject.holder().await;
    subject.store.leave(holder).await.unwrap();
    let mut watch = subject.store.watch();
    assert_eq!(subject.sweep(by).await.len(), 1);
    reports(&mut watch, &charge, "a sweep").await;

    for (state, what) in [
        (State::Paused, ChangeVerb::Resume),
        (State::Scheduled, ChangeVerb::Retry),
        (State::Dead, ChangeVerb::Redrive { deadline: None }),
    ] {
        let job = subject.job_in(state.as_str(), state).await;
        let mut watch = subject.store.watch();
        subject.apply(job, what.clone()).await;
        reports(&mut watch, &lane(state.as_str()), what.as_str()).await;
    }
    let job = subject.job_in("edited", State::Scheduled).await;
    let mut watch = subject.store.watch();
    let priority = Some(Priority::MAX);
    subject.change(job, ChangeVerb::Edit(Box::new(Edit { priority, ..Edit::default() }))).await;
    let urgent = Lane { priority: Priority::MAX, ..lane("edited") };
    reports(&mut watch, &urgent, "an edit that moves a job").await;
}

/// What this process writes is reported, so that it is no unreported change.
pub async fn what_is_reported_is_no_unreported_change(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let before = subject.store.unreported_changes().await.unwrap();
    subject.submit("charge").await;
    if subject.store.capabilities().wakes == Wakes::Fleet {
        // It is not known when it begins to listen.
        return;
    }
    assert_eq!(subject.store.unreported_changes().await.unwrap(), before);
}
