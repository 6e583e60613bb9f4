//! Tells open pages that something changed, so that they load their own regions again.

use super::Ui;
use super::refusal::Refusal;
use super::visitor::Visitor;
use crate::problem::Code;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use rewheel::Clock;
use rewheel_engine::EventStream;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Streams of one session: browsers have six connections to a server over HTTP/1.1. Pages without a stream poll.
const STREAMS_MAX: usize = 3;

/// How often a page without changes hears that the server is there.
const TICK: Duration = Duration::from_secs(5);

/// Ticks after which a page loads itself again anyway: this node does not hear of the changes of other nodes, nor of those of kinds,
/// operations and holders.
const TICKS_MAX: u32 = 2;

/// Changes within this time are one message.
const GATHER: Duration = Duration::from_secs(1);

/// The open streams of each session.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<String, usize>>>);

/// A reserved stream.
#[derive(Debug)]
struct Room {
    streams: Streams,
    session: String,
}

impl Streams {
    fn reserve(&self, session: &str) -> Option<Room> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(session.to_owned()).or_default();
        if *open >= STREAMS_MAX {
            return None;
        }
        *open += 1;
        Some(Room { streams: self.clone(), session: session.to_owned() })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut streams = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.get_mut(&self.session).map(|open| {
            *open -= 1;
            *open
        });
        if open == Some(0) {
            streams.remove(&self.session);
        }
    }
}

/// `GET /ui/live`: `changed` when jobs changed, `tick` otherwise, `bye` at shutdown.
///
/// 204 ends the attempts of the browser: then the page polls.
pub(super) async fn listen(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
) -> Result<Response, Refusal> {
    let session = visitor.session.clone().unwrap_or_default();
    let Some(room) = ui.streams.reserve(&session) else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let engine = ui.app.engine()?;
    let events = visitor.sees_all().then(|| engine.events(None));
    let listener = ui.app.listener().ok_or_else(|| {
        Refusal::new(Code::Throttled, "the server is at its limit of event streams")
    })?;
    let stopping = ui.app.stopping();
    let (app, store) = (Arc::clone(&ui.app), Arc::clone(engine.store()));
    let dismissed = Box::pin(async move { app.tokens().dismissed(&*store, &visitor.caller).await });
    let start = (Changes { events, ticks: 0 }, stopping, dismissed, (room, listener), false);
    let stream = stream::unfold(start, |mut state| async move {
        let (changes, stopping, dismissed, _, is_over) = &mut state;
        if *is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {
                *is_over = true;
                Event::default().event("bye").data("{}")
            }
            () = dismissed => {
                *is_over = true;
                Event::default().event("signed-out").data("{}")
            }
            event = changes.next() => event,
        };
        Some((Ok::<_, Infallible>(event), state))
    });
    let mut response = Sse::new(stream).into_response();
    // Proxies that collect a response before they pass it on would delay the updates.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What a stream tells its page.
struct Changes {
    /// Changes of jobs on this node. They do not say whose job it is: nothing for a visitor of one tenant.
    events: Option<EventStream>,
    /// Ticks since the latest change.
    ticks: u32,
}

impl Changes {
    /// Waits for a change, and gathers those that follow at once; or for the next tick.
    async fn next(&mut self) -> Event {
        let clock = Clock::system();
        let is_changed = match &mut self.events {
            None => {
                clock.sleep(TICK).await;
                true
            }
            Some(events) => tokio::select! {
                _ = events.next() => true,
                () = clock.sleep(TICK) => false,
            },
        };
        if is_changed {
            self.gather(&clock).await;
        } else if self.ticks + 1 < TICKS_MAX {
            self.ticks += 1;
            return Event::default().event("tick").data("{}");
        }
        self.ticks = 0;
        Event::default().event("changed").data("{}")
    }

    async fn gather(&mut self, clock: &Clock) {
        let Some(events) = &mut self.events else { return };
        let gather = clock.sleep(GATHER);
        tokio::pin!(gather);
        loop {
            tokio::select! {
                biased;
                () = &mut gather => return,
                _ = events.next() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{STREAMS_MAX, Streams};

    #[test]
    fn a_session_has_a_few_streams_and_gets_them_back() {
        let streams = Streams::default();
        let mut rooms: Vec<_> = (0..STREAMS_MAX).map(|_| streams.reserve("a").unwrap()).collect();
        assert!(streams.reserve("a").is_none() && streams.reserve("b").is_some());
        rooms.pop();
        rooms.push(streams.reserve("a").unwrap());
        rooms.clear();
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
