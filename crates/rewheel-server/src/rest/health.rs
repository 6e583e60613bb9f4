//! Tells whoever starts and stops servers how this one is.

use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rewheel::Clock;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A store that takes longer to tell the time is not there.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /livez`: the process answers. Never asks the store: a restart would not mend that.
pub(super) async fn livez() -> Response {
    Json(json!({ "live": true })).into_response()
}

/// `GET /readyz`: requests are welcome.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let store = app.engine_for_work()?.store();
    match tokio::time::timeout(STORE_TIMEOUT, store.now()).await {
        Ok(Ok(_)) => Ok(Json(json!({ "ready": true })).into_response()),
        Ok(Err(error)) => {
            let problem = Problem::from(error);
            Err(Problem { code: Code::StoreUnavailable, ..problem })
        }
        Err(_) => Err(Problem::new(Code::StoreUnavailable, "the store does not answer")),
    }
}

/// One part of the server.
#[derive(Debug, Serialize)]
struct Component {
    ok: bool,
    message: String,
}

/// `GET /health`: how each part is, for people. 503 if one of them keeps jobs from being run or taken in.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let engine = app.engine()?;
    let status = engine.status();
    let part = |ok: bool, well: String, ill: String| Component {
        ok,
        message: if ok { well } else { ill },
    };
    let clock = Clock::system();
    let asked = clock.now();
    let store = match tokio::time::timeout(STORE_TIMEOUT, engine.store().now()).await {
        Ok(Ok(_)) => {
            // Up to the next millisecond: less is nobody's business.
            let took = clock.now().since(asked).as_millis() + 1;
            part(true, format!("answered within {took}ms"), String::new())
        }
        Ok(Err(error)) => part(false, String::new(), error.with_causes()),
        Err(_) => part(false, String::new(), "does not answer".to_owned()),
    };
    let lease = part(
        !status.doubtful,
        format!("holder {} is alive", status.holder),
        "could not be renewed: nothing new is started until it is".to_owned(),
    );
    let used = status.places - status.places_free.min(status.places);
    let places = part(true, format!("{used} of {} are taken", status.places), String::new());
    let is_well = store.ok && lease.ok;
    let document = json!({
        "ok": is_well,
        "components": { "store": store, "lease": lease, "places": places },
    });
    let code = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // It is an answer, not a problem: whoever asks wants all of it.
    let mut response = (code, Json(document)).into_response();
    response.extensions_mut().insert(super::answer::AsItIs);
    Ok(response)
}
