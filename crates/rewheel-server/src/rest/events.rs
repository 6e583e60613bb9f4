//! Streams job events to clients.

use super::query::Parameters;
use crate::app::{App, LISTENERS_MAX};
use crate::conditions::Conditions;
use crate::problem::{Code, Problem};
use crate::rfc3339;
use crate::tokens::Caller;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use rewheel_core::{JobId, KindName};
use rewheel_engine::{EventStream, JobStateChange};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

/// The filter of a listener.
#[derive(Debug)]
struct Wish {
    kinds: Vec<KindName>,
    job: Option<JobId>,
}

impl Wish {
    fn has(&self, event: &JobStateChange) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.job.is_none_or(|job| job == event.job)
    }
}

/// `GET /v1/events`
pub(super) async fn listen(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["kind", "job", "after"])?;
    let kinds = parameters.all("kind", KindName::parse);
    let job = parameters.one("job", str::parse::<JobId>);
    let after = parameters.one("after", |text| {
        text.parse::<u64>().map_err(|_| "must be the id of an event, which is a number")
    });
    parameters.finish()?;
    super::audit::about(&app, &caller, job).await?;
    let last = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().parse());
    let after = match last {
        Some(Ok(last)) => Some(last),
        Some(Err(_)) => {
            return Err(Problem::new(
                Code::BadQuery,
                "the Last-Event-ID header is not the id of an event: send the id of the last event that the client received",
            ));
        }
        None => after,
    };
    let engine = app.engine()?;
    let room = app.listener().ok_or_else(|| {
        Problem::new(
            Code::Throttled,
            format!("the server is at its limit of {LISTENERS_MAX} event streams"),
        )
        .hint("try again in a moment, or use another server")
    })?;
    let stopping = app.stopping();
    let (listener, wish) = (engine.events(after), Wish { kinds, job });
    let store = Arc::clone(engine.store());
    let dismissed = Box::pin(async move { app.tokens().dismissed(&*store, &caller).await });
    let start = (listener, wish, room, stopping, dismissed);
    let events = stream::unfold(start, |mut state| async move {
        let (listener, wish, _, stopping, dismissed) = &mut state;
        let event = tokio::select! {
            biased;
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return None,
            () = dismissed => return None,
            event = next(listener, wish) => event,
        };
        Some((Ok::<_, Infallible>(event), state))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

async fn next(listener: &mut EventStream, wish: &Wish) -> Event {
    loop {
        match listener.next().await {
            Ok(event) if wish.has(&event) => return document(&event),
            Ok(_) => {}
            Err(missed) => {
                let data = json!({ "up_to": missed.up_to.to_string() }).to_string();
                return Event::default().event("missed").id(missed.up_to.to_string()).data(data);
            }
        }
    }
}

fn document(event: &JobStateChange) -> Event {
    let data = json!({
        "job": event.job.to_string(),
        "kind": event.kind.as_str(),
        "from": event.from.map(rewheel_core::State::as_str),
        "to": event.to.as_str(),
        "at": rfc3339::text(event.at),
    });
    Event::default().event("job").id(event.seq.to_string()).data(data.to_string())
}
