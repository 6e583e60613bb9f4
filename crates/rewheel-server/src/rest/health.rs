//! Tells whoever starts and stops servers how this one is.

use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
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
