//! The demo's callback server, which fails in several ways.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rewheel::{Clock, Moment, Random, millis, seconds};
use std::time::Duration;
use tokio::net::TcpListener;

/// Interval between outages.
const OUTAGE_EVERY: Duration = seconds(60);

/// Start of the outage: late enough to see things work first, early enough to wait for it.
const OUTAGE_FROM: Duration = seconds(15);

/// End of the outage.
const OUTAGE_UNTIL: Duration = seconds(35);

#[derive(Clone, Debug)]
struct Callee {
    clock: Clock,
    random: Random,
    started: Moment,
    is_last: bool,
}

/// When the outage of the last shop begins, after that of the others has ended.
const SHOP_LATER: Duration = seconds(25);

/// Serves until the future is dropped. All hosts have the outages at the same times of the clock. `is_last` is the host that has the
/// outages of shops.
pub(super) async fn serve(listener: TcpListener, (clock, started): (Clock, Moment), is_last: bool) {
    let callee = Callee { started, clock, random: Random::thread(), is_last };
    let router = Router::new()
        .route("/fast/{order}", post(|| async { StatusCode::OK }))
        .route("/slow/{order}", post(slow))
        .route("/flaky/{order}", post(flaky))
        .route("/outage/{order}", post(outage))
        .route("/broken/{order}", post(broken))
        .route("/shop/{order}", post(shop))
        .with_state(callee);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::warn!(%error, "the test server of the demo stopped");
    }
}

async fn slow(State(callee): State<Callee>) -> StatusCode {
    let took = millis(100 + callee.random.next() % 700);
    callee.clock.sleep(took).await;
    StatusCode::OK
}

async fn flaky(State(callee): State<Callee>) -> Response {
    match callee.random.next() % 100 {
        0..10 => busy("overloaded, try again in a second"),
        10..20 => (StatusCode::TOO_MANY_REQUESTS, "too many requests").into_response(),
        20..30 => (StatusCode::BAD_GATEWAY, "the backend closed the connection").into_response(),
        30..40 => (StatusCode::INTERNAL_SERVER_ERROR, "deadlock detected").into_response(),
        _ => StatusCode::OK.into_response(),
    }
}

async fn outage(State(callee): State<Callee>) -> Response {
    if is_down(callee.clock.now().since(callee.started)) {
        return (StatusCode::SERVICE_UNAVAILABLE, "down for maintenance").into_response();
    }
    StatusCode::OK.into_response()
}

async fn shop(State(callee): State<Callee>) -> Response {
    let elapsed = callee.clock.now().since(callee.started);
    if callee.is_last && is_down(elapsed.saturating_sub(SHOP_LATER)) {
        return (StatusCode::SERVICE_UNAVAILABLE, "this shop is closed").into_response();
    }
    StatusCode::OK.into_response()
}

async fn broken() -> (StatusCode, &'static str) {
    (StatusCode::INTERNAL_SERVER_ERROR, "column \"total\" does not exist")
}

fn busy(message: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")], message).into_response()
}

/// Returns whether the outage is active at this time after the start.
fn is_down(elapsed: Duration) -> bool {
    let phase = Duration::from_millis(
        u64::try_from(elapsed.as_millis() % OUTAGE_EVERY.as_millis()).unwrap_or(0),
    );
    (OUTAGE_FROM..OUTAGE_UNTIL).contains(&phase)
}

#[cfg(test)]
mod tests {
    use super::is_down;
    use rewheel::seconds;

    #[test]
    fn the_outage_takes_twenty_seconds_of_every_sixty() {
        let down = (0..120).filter(|second| is_down(seconds(*second))).collect::<Vec<u64>>();
        assert_eq!(down, (15..35).chain(75..95).collect::<Vec<u64>>());
    }
}
