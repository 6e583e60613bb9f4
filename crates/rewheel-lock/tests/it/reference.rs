//! What a lock must do, in the fewest words: the reference that backends are compared with.

use rewheel_lock::{Ask, FencingToken, IfHeld, PLACE_TTL, RequestId, Turn};
use std::time::Duration;

/// One lock, with a clock that only the test moves.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) now: Duration,
    token: Option<FencingToken>,
    /// Who has the lock, and until when.
    holder: Option<(RequestId, Duration)>,
    /// Who waits, and until when the place is kept.
    line: Vec<(RequestId, Duration)>,
}

impl Reference {
    /// Checks the answer to a request, and does what it says.
    pub(crate) fn check_acquire(&mut self, ask: &Ask<'_>, turn: &Turn, at: &str) {
        self.forget_dead();
        let holds = self.holder.is_some_and(|(id, _)| id == ask.id);
        let first = self.line.first().map(|(id, _)| *id);
        let may_take = !self.is_held() && (first.is_none() || first == Some(ask.id));
        if holds || may_take {
            let Turn::Acquired { token } = turn else { panic!("{turn:?} for a free lock, {at}") };
            let before = self.token.replace(*token);
            match holds {
                true => assert_eq!(before, Some(*token), "another token for the same lock, {at}"),
                false => assert!(before < Some(*token), "{token} after {before:?}, {at}"),
            }
            self.holder = Some((ask.id, self.now + ask.lease));
            self.line.retain(|(id, _)| *id != ask.id);
            return;
        }
        if ask.if_held == IfHeld::Refuse {
            let Turn::Busy { holder } = turn else { panic!("{turn:?} for a busy lock, {at}") };
            assert_eq!(holder.is_some(), self.is_held(), "{at}");
            return;
        }
        let place = self.line.iter().position(|(id, _)| *id == ask.id).unwrap_or(self.line.len());
        let Turn::Waiting { ahead, holder, .. } = turn else {
            panic!("{turn:?} for a busy lock, {at}")
        };
        assert_eq!((*ahead, holder.is_some()), (place, self.is_held()), "{at}");
        match self.line.get_mut(place) {
            Some((_, until)) if *until - self.now < PLACE_TTL * 2 / 3 => {
                *until = self.now + PLACE_TTL
            }
            Some(_) => {}
            None => self.line.push((ask.id, self.now + PLACE_TTL)),
        }
    }

    pub(crate) fn renew(&mut self, id: RequestId, lease: Duration) -> bool {
        let holds = self.holder.is_some_and(|(holder, _)| holder == id);
        if holds {
            self.holder = Some((id, self.now + lease));
        }
        holds
    }

    pub(crate) fn release(&mut self, id: RequestId) -> (bool, Option<RequestId>) {
        self.forget_dead();
        let held = self.holder.take_if(|(holder, _)| *holder == id).is_some();
        self.line.retain(|(waiting, _)| *waiting != id);
        let next = self.line.first().filter(|_| !self.is_held()).map(|(id, _)| *id);
        (held, next)
    }

    pub(crate) fn inspect(&self) -> (bool, usize) {
        (self.is_held(), self.line.iter().filter(|(_, until)| *until > self.now).count())
    }

    fn is_held(&self) -> bool {
        self.holder.is_some_and(|(_, until)| until > self.now)
    }

    fn forget_dead(&mut self) {
        self.line.retain(|(_, until)| *until > self.now);
    }
}
