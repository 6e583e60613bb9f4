//! The rules of a lock, as pure functions on what the server stores for a name.

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub(crate) mod line;
#[cfg(test)]
mod tests;

use crate::backend::{Ask, Holder, IfHeld, LINE_MAX, LockState, PLACE_TTL, Release, Renewal};
use crate::backend::{RequestId, Turn};
use crate::server_clock::{ServerTime, duration, millis};
use crate::token::FencingToken;
use std::time::Duration;

/// What the server stores for the name of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The largest token so far.
    pub(crate) token: i64,
    pub(crate) held: Option<Held>,
    /// The requests that wait, the first one first.
    pub(crate) line: Vec<Place>,
}

/// The lock in the hands of a request. It may have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) id: RequestId,
    pub(crate) owner: String,
    pub(crate) until_ms: i64,
    pub(crate) lease_ms: i64,
}

/// A place in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: RequestId,
    pub(crate) until_ms: i64,
}

impl Record {
    pub(crate) fn acquire(&mut self, ask: &Ask<'_>, now: ServerTime) -> Turn {
        self.tidy(now);
        let (lease_ms, until_ms) = (millis(ask.lease), now.as_millis() + millis(ask.lease));
        // The request asks again because it did not get the first answer.
        if let Some(held) = self.held.as_mut().filter(|held| held.id == ask.id) {
            (held.lease_ms, held.until_ms) = (lease_ms, until_ms);
            return Turn::Acquired { token: self.token() };
        }
        let holder = self.holder(now);
        let is_first = self.line.first().is_none_or(|first| first.id == ask.id);
        if holder.is_none() && is_first {
            self.line.retain(|place| place.id != ask.id);
            // The time is larger than the tokens of a server that has lost its data; the last token is larger than the time of
            // a clock that went back.
            self.token = (self.token + 1).max(now.as_micros());
            let owner = ask.owner.to_owned();
            self.held = Some(Held { id: ask.id, owner, until_ms, lease_ms });
            return Turn::Acquired { token: self.token() };
        }
        match ask.if_held {
            IfHeld::Refuse => Turn::Busy { holder },
            IfHeld::Wait => self.wait(ask.id, holder, now),
        }
    }

    fn wait(&mut self, id: RequestId, holder: Option<Holder>, now: ServerTime) -> Turn {
        let until_ms = now.as_millis() + millis(PLACE_TTL);
        let ahead = match self.line.iter().position(|place| place.id == id) {
            Some(ahead) => {
                let place = &mut self.line[ahead];
                // Most looks change nothing, so that they need no write.
                if place.until_ms - now.as_millis() < millis(PLACE_TTL) * 2 / 3 {
                    place.until_ms = until_ms;
                }
                ahead
            }
            None if self.line.len() >= LINE_MAX => return Turn::LineFull,
            None => {
                self.line.push(Place { id, until_ms });
                self.line.len() - 1
            }
        };
        let place_ahead = self.line[..ahead].iter().map(|place| place.until_ms).min();
        let look_again = match (place_ahead, &holder) {
            (Some(until_ms), _) => duration(until_ms - now.as_millis()),
            (None, Some(holder)) => holder.lease_left,
            (None, None) => Duration::ZERO,
        };
        Turn::Waiting { ahead, look_again, holder }
    }

    pub(crate) fn renew(&mut self, id: RequestId, lease: Duration, now: ServerTime) -> Renewal {
        match self.held.as_mut().filter(|held| held.id == id) {
            Some(held) => {
                held.lease_ms = millis(lease);
                held.until_ms = now.as_millis() + millis(lease);
                Renewal::Renewed
            }
            None => Renewal::Lost,
        }
    }

    pub(crate) fn release(&mut self, id: RequestId, now: ServerTime) -> Release {
        self.tidy(now);
        let was_held = self.held.as_ref().is_some_and(|held| held.id == id);
        if was_held {
            self.held = None;
        }
        self.line.retain(|place| place.id != id);
        let is_free = self.holder(now).is_none();
        let next = self.line.first().filter(|_| is_free).map(|place| place.id);
        Release { was_held, next }
    }

    pub(crate) fn inspect(&self, now: ServerTime) -> LockState {
        let mut tidied = self.clone();
        tidied.tidy(now);
        LockState::new(tidied.holder(now), tidied.line.len())
    }

    /// Returns whether it says nothing but the last token.
    pub(crate) fn is_idle(&self, now: ServerTime) -> bool {
        self.line.is_empty() && self.holder(now).is_none()
    }

    fn token(&self) -> FencingToken {
        FencingToken::new(u64::try_from(self.token).unwrap_or(0))
    }

    /// The holder whose lease has not expired.
    fn holder(&self, now: ServerTime) -> Option<Holder> {
        let held = self.held.as_ref().filter(|held| held.until_ms > now.as_millis())?;
        let lease_left = duration(held.until_ms - now.as_millis());
        Some(Holder::new(held.owner.as_str(), self.token(), lease_left))
    }

    /// Removes requests that died in line. Nothing ends later than its full time from now: otherwise the clock went back, and a dead
    /// holder would keep the lock until the clock is where it was.
    fn tidy(&mut self, now: ServerTime) {
        let now_ms = now.as_millis();
        if let Some(held) = &mut self.held {
            held.until_ms = held.until_ms.min(now_ms + held.lease_ms);
        }
        for place in &mut self.line {
            place.until_ms = place.until_ms.min(now_ms + millis(PLACE_TTL));
        }
        self.line.retain(|place| place.until_ms > now_ms);
    }
}
