//! Checks that several holders announce a dead letter once, if they can.

use super::support::{
    Mood, Person, Tested, all_announced, one_attempt, pass, store, submit, telling, unannounced,
};
use rewheel::{millis, seconds};
use rewheel_core::JobId;
use rewheel_engine::Engine;
use rewheel_engine::notify::{Event, Notice};
use std::collections::BTreeMap;

fn times_told(notices: &[Notice]) -> Vec<usize> {
    let mut times: BTreeMap<JobId, usize> = BTreeMap::new();
    for notice in notices.iter().filter(|notice| notice.event == Event::DeadLetter) {
        *times.entry(notice.job.unwrap()).or_default() += 1;
    }
    times.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn three_holders_tell_each_letter_once() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let mut engines: Vec<Engine> = Vec::new();
    for _ in 0..3 {
        engines.push(telling(&store, &person).start().await?);
    }
    for engine in &engines {
        submit(engine, 10).await;
    }
    pass(2).await;
    assert_eq!(unannounced(&store).await, 0, "the node whose jobs died reported them at once");
    pass(300).await;
    assert_eq!(times_told(&person.told()), [1; 30]);
    assert_eq!(unannounced(&store).await, 0);
    Ok(())
}

/// One engine dies before it announced its letters; the others share them.
#[tokio::test(start_paused = true)]
async fn what_a_dead_holder_left_untold_is_told_by_one_of_the_others() -> Tested {
    let (store, person, deaf) = (store(), Person::new(Mood::Takes), Person::new(Mood::Hangs));
    let first = telling(&store, &deaf).start().await?;
    submit(&first, 20).await;
    while unannounced(&store).await < 20 {
        pass(1).await;
    }
    first.kill();
    let mut engines: Vec<Engine> = Vec::new();
    for _ in 0..3 {
        engines.push(telling(&store, &person).start().await?);
    }
    pass(40).await;
    assert!(person.told().is_empty(), "another node did not wait");
    all_announced(&store).await;
    pass(300).await;
    assert_eq!(times_told(&person.told()), [1; 20]);
    let told = engines.iter().map(|engine| engine.notify_counts()[0].sent);
    assert!(told.clone().filter(|count| *count > 0).count() > 1, "one told it all: {told:?}");
    Ok(())
}

/// A shutdown waits for notices on their way, and sends the pending summary.
#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_notices_arrive() -> Tested {
    let (store, person) = (store(), Person::new(Mood::TakesAfter(millis(10))));
    let engine = telling(&store, &person).start().await?;
    submit(&engine, 60).await;
    tokio::time::sleep(millis(100)).await;
    engine.shutdown(seconds(10)).await;
    assert_eq!(person.of(Event::DeadLetter).len(), 50);
    assert_eq!(person.told().last().unwrap().more, Some(10));
    assert_eq!(unannounced(&store).await, 0);
    Ok(())
}

/// It does not wait for a notifier that never returns.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_ever() -> Tested {
    let (store, deaf) = (store(), Person::new(Mood::Hangs));
    let engine = telling(&store, &deaf).start().await?;
    submit(&engine, 1).await;
    tokio::time::sleep(millis(100)).await;
    let stopped = tokio::time::timeout(seconds(8), engine.shutdown(seconds(1))).await;
    assert!(stopped.is_ok());
    assert_eq!(unannounced(&store).await, 1);
    Ok(())
}

/// No engine ran it: the engine that notices the deadline announces it at once.
#[tokio::test(start_paused = true)]
async fn a_missed_deadline_is_told_by_who_noticed() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let first = telling(&store, &person).kind("idle", one_attempt()).start().await?;
    let _second = telling(&store, &person).start().await?;
    first.submit_raw("idle", Vec::new()).deadline_in(seconds(1)).await?;
    pass(10).await;
    assert_eq!((person.told().len(), unannounced(&store).await), (1, 0));
    Ok(())
}
