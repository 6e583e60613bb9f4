//! Cases: the verbs of a backend, without guards.

use crate::reference::Reference;
use crate::subject::{LEASE, Subject, name};
use rewheel::{Random, minutes, seconds};
use rewheel_lock::{Ask, EarlierCalls, IfHeld, LockState, Renewal, RequestId, Turn};
use std::time::Duration;

pub(crate) async fn asking_twice_is_one_lock(subject: &Subject) {
    let (name, id) = (name("a"), subject.id());
    let ask = Ask { name: &name, id, owner: "test", lease: LEASE, if_held: IfHeld::Wait };
    let first = subject.backend.acquire(&ask).await.unwrap();
    assert!(matches!(first, Turn::Acquired { .. }), "{first:?}");
    assert_eq!(subject.backend.acquire(&ask).await.unwrap(), first);

    let waiting = Ask { id: subject.id(), ..ask };
    for _ in 0..2 {
        let turn = subject.backend.acquire(&waiting).await.unwrap();
        assert!(matches!(turn, Turn::Waiting { ahead: 0, .. }), "{turn:?}");
    }
    subject.keep_places();
    assert_eq!(subject.backend.inspect(&name).await.unwrap().waiting, 1);

    let released = subject.backend.release(&name, id, EarlierCalls::Answered).await.unwrap();
    assert_eq!((released.was_held, released.next), (true, Some(waiting.id)));
    assert!(
        !subject.backend.release(&name, id, EarlierCalls::Answered).await.unwrap().was_held,
        "it is released once"
    );
}

pub(crate) async fn an_expired_lock_can_be_renewed_until_it_is_taken(subject: &Subject) {
    let (id, _) = subject.ask_and_die("a", IfHeld::Refuse).await;
    subject.advance(LEASE + seconds(1));
    assert_eq!(subject.one.inspect("a").await.unwrap(), LockState::default());
    assert_eq!(subject.backend.renew(&name("a"), id, LEASE).await.unwrap(), Renewal::Renewed);
    assert!(subject.other.try_lock("a").await.is_err());
    subject.advance(LEASE + seconds(1));
    let _new = subject.other.lock("a").lease(LEASE).acquire().await.unwrap();
    assert_eq!(subject.backend.renew(&name("a"), id, LEASE).await.unwrap(), Renewal::Lost);
}

pub(crate) async fn strangers_change_nothing(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let (name, stranger) = (name("a"), subject.id());
    assert_eq!(subject.backend.renew(&name, stranger, minutes(1)).await.unwrap(), Renewal::Lost);
    let released = subject.backend.release(&name, stranger, EarlierCalls::Answered).await.unwrap();
    assert_eq!((released.was_held, released.next), (false, None));
    let holder = subject.other.inspect("a").await.unwrap().holder.unwrap();
    assert_eq!(holder.token, guard.token());
    assert!(holder.lease_left > LEASE / 2);
}

pub(crate) async fn a_clock_that_goes_back_does_not_keep_a_dead_holder(subject: &Subject) {
    subject.ask_and_die("a", IfHeld::Refuse).await;
    subject.clock.turn_back(minutes(600));
    let error = subject.other.try_lock("a").await.unwrap_err();
    let rewheel_lock::LockError::Busy { holder: Some(holder), .. } = error else {
        panic!("{error}")
    };
    assert!(holder.lease_left <= LEASE, "{holder:?}");
    subject.advance(LEASE + seconds(1));
    subject.other.try_lock("a").await.unwrap().release().await.unwrap();
}

/// How far the clock moves at once. No lease or place ends within a second of a multiple of it.
const STEP: Duration = seconds(4);

/// A call that takes longer than this may have met another time than the reference: the walk ends there.
const SLOW: Duration = Duration::from_millis(500);

/// Random calls of five requests get the same answers as from the reference.
pub(crate) async fn walk_like_the_reference(subject: &Subject) {
    let seed = match std::env::var("REWHEEL_SEED") {
        Ok(seed) => seed.parse().expect("REWHEEL_SEED is a number"),
        Err(_) => Random::thread().next(),
    };
    let (random, mut reference) = (Random::seeded(seed), Reference::default());
    let ids: Vec<RequestId> = (0..5).map(|_| subject.id()).collect();
    let name = name("walk");
    let clock = rewheel::Clock::system();
    let mut compensated = clock.now();
    for step in 0..300 {
        // The server's clock does not advance between the steps.
        let now = clock.now();
        subject.clock.turn_back(now.since(compensated));
        compensated = now;
        let id = ids[usize::try_from(random.next() % 5).unwrap()];
        let lease = seconds(10 + 20 * (random.next() % 2));
        let if_held = if random.next().is_multiple_of(4) { IfHeld::Refuse } else { IfHeld::Wait };
        let at = format!("REWHEEL_SEED={seed}, step {step}");
        match random.next() % 10 {
            0..=4 => {
                let ask = Ask { name: &name, id, owner: "walker", lease, if_held };
                let turn = subject.backend.acquire(&ask).await.unwrap();
                if clock.now().since(now) > SLOW {
                    return;
                }
                reference.check_acquire(&ask, &turn, &at);
            }
            5 => {
                let renewal = subject.backend.renew(&name, id, lease).await.unwrap();
                if clock.now().since(now) > SLOW {
                    return;
                }
                assert_eq!(renewal == Renewal::Renewed, reference.renew(id, lease), "renew, {at}");
            }
            6 => {
                let released =
                    subject.backend.release(&name, id, EarlierCalls::Answered).await.unwrap();
                if clock.now().since(now) > SLOW {
                    return;
                }
                assert_eq!(
                    (released.was_held, released.next),
                    reference.release(id),
                    "release, {at}"
                );
            }
            7 => {
                let state = subject.backend.inspect(&name).await.unwrap();
                if clock.now().since(now) > SLOW {
                    return;
                }
                let seen = (state.holder.is_some(), state.waiting);
                assert_eq!(seen, reference.inspect(), "inspect, {at}");
            }
            _ => {
                subject.clock.advance(STEP);
                reference.now += STEP;
            }
        }
    }
}
