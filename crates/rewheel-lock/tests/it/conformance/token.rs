//! Cases: tokens only grow, and keep late writes out.

use crate::subject::{LEASE, Subject};
use rewheel::{minutes, seconds};
use rewheel_lock::{FencingToken, IfHeld, Turn};
use std::sync::Mutex;

pub(crate) async fn grows_over_release_expiry_and_a_new_connection(subject: &Subject) {
    let first = subject.one.try_lock("a").await.unwrap();
    let tokens = Mutex::new(vec![first.token()]);
    first.release().await.unwrap();

    let (_, Turn::Acquired { token }) = subject.ask_and_die("a", IfHeld::Refuse).await else {
        panic!("the lock is free")
    };
    tokens.lock().unwrap().push(token);
    subject.advance(LEASE + seconds(1));

    let after_expiry = subject.other.try_lock("a").await.unwrap();
    tokens.lock().unwrap().push(after_expiry.token());
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

pub(crate) async fn grows_when_the_clock_goes_back(subject: &Subject) {
    let first = subject.one.try_lock("a").await.unwrap();
    let token = first.token();
    first.release().await.unwrap();
    subject.clock.turn_back(minutes(60));
    let second = subject.other.try_lock("a").await.unwrap();
    assert!(second.token() > token, "{} after {token}", second.token());
}

/// What a lock protects. It accepts no token that is smaller than the largest it has seen.
#[derive(Debug, Default)]
struct Register {
    largest: Option<FencingToken>,
    value: &'static str,
}

impl Register {
    fn write(&mut self, token: FencingToken, value: &'static str) -> bool {
        let is_late = self.largest.is_some_and(|largest| token < largest);
        if !is_late {
            (self.largest, self.value) = (Some(token), value);
        }
        !is_late
    }
}

pub(crate) async fn keeps_the_late_write_of_a_paused_holder_out(subject: &Subject) {
    let mut register = Register::default();
    let paused = subject.pausable.lock("a").lease(LEASE).acquire().await.unwrap();
    assert!(register.write(paused.token(), "before the pause"));
    // The holder does not run, the server's clock does.
    subject.advance(LEASE + seconds(1));
    let new = subject.other.lock("a").lease(LEASE).acquire().await.unwrap();
    assert!(register.write(new.token(), "by the new holder"));
    // It continues, and does not know yet what has happened.
    assert!(!paused.is_lost());
    assert!(!register.write(paused.token(), "late"), "the late write got through");
    assert_eq!(register.value, "by the new holder");
}

pub(crate) async fn of_many_grants_are_all_different(subject: &Subject) {
    let mut tokens = Vec::new();
    for turn in 0..20 {
        let locks = if turn % 2 == 0 { &subject.one } else { &subject.other };
        let guard = locks.try_lock("a").await.unwrap();
        tokens.push(guard.token());
        guard.release().await.unwrap();
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}
