//! The policies of each host.

use crate::net::{Fault, Proxy, Server, nowhere};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use rewheel::reqwest::{Client, ClientBuilder};
use rewheel::{
    Bulkhead, CircuitBreaker, Event, GiveUpReason, ManualClock, Observer, RateLimiter, Retry,
    RetryBudget, millis, seconds,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

fn builder() -> ClientBuilder {
    let http = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
    let http = http.pool_max_idle_per_host(0).build().unwrap();
    Client::builder(http)
        .retry(Retry::fixed(millis(1)).attempts_max(3))
        .attempt_timeout(seconds(60))
        .total_timeout(seconds(300))
}

/// A server that always answers with this status, with the number of requests that it got.
async fn server(status: u16, headers: HeaderMap) -> (Server, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let handler = async move || {
        count.fetch_add(1, Ordering::Relaxed);
        (StatusCode::from_u16(status).unwrap(), headers)
    };
    (Server::start(Router::new().route("/", get(handler))).await, requests)
}

#[tokio::test]
async fn each_host_has_a_breaker_of_its_own() {
    let (up, _) = server(200, HeaderMap::new()).await;
    let breaker = CircuitBreaker::consecutive(3).open_for(seconds(300));
    let client = builder().circuit_breaker(breaker).build();
    let down = format!("http://{}/", nowhere());

    assert_eq!(client.get(&down).send().await.unwrap_err().attempts(), 3);
    let refused = client.get(&down).send().await.unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (GiveUpReason::CircuitOpen, 0));
    assert_eq!(client.get(up.url("/")).send().await.unwrap().status(), 200);
    assert_eq!(client.hosts(), 2);
}

#[tokio::test]
async fn each_host_has_a_limiter_of_its_own() {
    let (first, requests) = server(200, HeaderMap::new()).await;
    let (second, _) = server(200, HeaderMap::new()).await;
    let limiter = RateLimiter::per(1, seconds(3_600)).burst(1).wait_max(millis(1));
    let once = Retry::fixed(millis(1)).attempts_max(1);
    let client = builder().retry(once).rate_limiter(limiter).build();
    assert!(client.get(first.url("/")).send().await.is_ok());
    let refused = client.get(first.url("/")).send().await.unwrap_err();
    assert!(refused.last().is_none() && refused.attempts() == 0, "{refused}");
    assert!(client.get(second.url("/")).send().await.is_ok());
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_budget_of_a_host_limits_its_retries() {
    let (server, requests) = server(503, HeaderMap::new()).await;
    let budget = RetryBudget::ratio(0.001).floor_per_second(0).burst(1);
    let client = builder().retry_budget(budget).circuit_breaker(None).build();
    for _ in 0..5 {
        assert_eq!(client.get(server.url("/")).send().await.unwrap().status(), 503);
    }
    assert_eq!(requests.load(Ordering::Relaxed), 6, "one retry for all five calls");
}

#[tokio::test]
async fn the_number_of_hosts_is_limited() {
    let client = builder().hosts_max(2).retry(Retry::fixed(millis(1)).attempts_max(1)).build();
    for _ in 0..5 {
        let _ = client.get(format!("http://{}/", nowhere())).send().await;
    }
    assert_eq!(client.hosts(), 2);
}

#[tokio::test]
async fn a_retry_after_above_the_limit_ends_the_call() {
    let headers = HeaderMap::from_iter([(
        axum::http::header::RETRY_AFTER,
        axum::http::HeaderValue::from_static("600"),
    )]);
    let (server, requests) = server(503, headers).await;
    let response = builder().build().get(server.url("/")).send().await.unwrap();
    // The time that the server asked for does not fit into the total timeout.
    assert_eq!((response.status().as_u16(), requests.load(Ordering::Relaxed)), (503, 1));
}

#[tokio::test]
async fn an_attempt_that_hangs_is_cut_and_repeated() {
    let (server, requests) = server(200, HeaderMap::new()).await;
    let mut proxy = Proxy::to(server.address, &[Fault::Hang]).await;
    let clock = ManualClock::new();
    let client = builder().clock(&clock).build();
    let call = client.get(proxy.url("/")).send();
    let time = async {
        proxy.wait_for(1).await;
        clock.advance(seconds(60));
        // The delay before the second attempt; the attempt itself ends long before its timeout.
        while proxy.connections() < 2 {
            clock.advance(millis(1));
            tokio::task::yield_now().await;
        }
    };
    let (response, ()) = tokio::join!(call, time);
    assert_eq!(response.unwrap().status(), 200);
    assert_eq!((proxy.connections(), requests.load(Ordering::Relaxed)), (2, 1));
}

#[tokio::test]
async fn an_answer_that_is_late_but_within_the_timeout_is_the_answer() {
    let (server, requests) = server(200, HeaderMap::new()).await;
    let mut proxy = Proxy::to(server.address, &[Fault::Delay]).await;
    let clock = ManualClock::new();
    let client = builder().clock(&clock).build();
    let call = client.get(proxy.url("/")).send();
    let time = async {
        proxy.wait_for(1).await;
        clock.advance(seconds(59));
        proxy.release();
    };
    let (response, ()) = tokio::join!(call, time);
    assert_eq!((response.unwrap().status().as_u16(), requests.load(Ordering::Relaxed)), (200, 1));
}

/// Notes the events with the host as their name, and makes a call in the first of them.
#[derive(Debug, Default)]
struct Curious {
    client: OnceLock<Client>,
    events: Mutex<Vec<String>>,
}

impl Observer for Curious {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only some events are of policies")]
    fn observe(&self, event: &Event<'_>) {
        let text = match event {
            Event::BreakerBuilt { name, .. } => format!("{name} built"),
            Event::BreakerChanged { name, to, keyed: false, .. } => format!("{name} {to}"),
            Event::Refused { name, why, .. } => format!("{name} {}", why.as_str()),
            Event::Admitted { name, by, .. } => format!("{name} admitted {}", by.as_str()),
            Event::GaveUp { name, .. } => format!("{name} gave up"),
            _ => return,
        };
        self.events.lock().unwrap().push(text);
        // Asks for the policies of the host, in the middle of their construction if the client is wrong.
        if let Some(client) = self.client.get() {
            assert!(client.hosts() > 0);
        }
    }
}

#[tokio::test]
async fn the_observer_hears_the_policies_of_each_host_and_may_use_the_client() {
    let curious = Arc::new(Curious::default());
    let client = builder()
        .circuit_breaker(CircuitBreaker::consecutive(2).open_for(seconds(300)))
        .rate_limiter(RateLimiter::per_second(100).wait_max(seconds(9)))
        .bulkhead(Bulkhead::concurrency(9))
        .retry_budget(RetryBudget::ratio(0.5).burst(1).floor_per_second(0))
        .clock(ManualClock::new())
        .retry(Retry::fixed(millis(0)).attempts_max(3))
        .observer(curious.clone())
        .build();
    curious.client.set(client.clone()).unwrap();
    let down = nowhere();
    assert!(client.get(format!("http://{down}/")).send().await.is_err());
    let attempt = ["admitted rate_limited", "admitted bulkhead_full"];
    let expected: Vec<String> = ["built"]
        .into_iter()
        .chain(attempt)
        .chain(attempt)
        .chain(["open", "budget_exhausted", "gave up"])
        .map(|text| format!("{down} {text}"))
        .collect();
    assert_eq!(*curious.events.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_policy_with_an_observer_of_its_own_keeps_it() {
    let (own, of_client) = (Arc::new(Curious::default()), Arc::new(Curious::default()));
    let breaker = CircuitBreaker::consecutive(2).observer(own.clone());
    let client = builder().circuit_breaker(breaker).observer(of_client.clone()).build();
    let _ = client.get(format!("http://{}/", nowhere())).send().await;
    assert!(own.events.lock().unwrap().iter().any(|event| event.ends_with("open")));
    assert!(!of_client.events.lock().unwrap().iter().any(|event| event.ends_with("open")));
}

#[tokio::test]
#[should_panic(expected = "keys_max")]
async fn a_client_for_no_host_cannot_be_built() {
    let _ = builder().hosts_max(0);
}
