//! HTTP client: reqwest, with policies for each host.
//!
//! ```no_run
//! use rewheel::reqwest::Client;
//!
//! # async fn sync(order: u64) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(reqwest::Client::new());
//!
//! let orders = client.get("https://api.example.com/orders").send().await?;
//! let receipt = client
//!     .post_json("https://pay.example.com/charges", &serde_json::json!({ "order": order }))
//!     .idempotency_key(format!("order-{order}"))
//!     .buffered(64 * 1024)
//!     .await?
//!     .error_for_status()?;
//! # Ok(())
//! # }
//! ```
//!
//! **Policies for each host.** Each host (with its port) has a circuit breaker, a rate limiter and a retry budget of its own. The
//! default numbers are those of [`ServiceClass::STANDARD`](crate::ServiceClass::STANDARD); [`ClientBuilder`] changes them. The
//! client remembers a limited number of hosts: see [`ClientBuilder::hosts_max`].
//!
//! **What is retried.** GET, HEAD, OPTIONS, TRACE, PUT and DELETE are retried. Other methods are retried only if the request has an
//! `Idempotency-Key`: [`RequestBuilder::idempotency_key`] and [`RequestBuilder::new_idempotency_key`] set it, and all attempts send the
//! same one. A body that is a stream cannot be sent again, so such a request is not retried.
//!
//! **What is a failure.** Errors are classified as [`reqwest::Error`] documents, responses by their status and
//! `Retry-After`. When no attempt is left, the last response is returned as a response, as reqwest does: call
//! [`error_for_status`](::reqwest::Response::error_for_status) on it.
//!
//! **What the server is told.** Each attempt sends the headers of [`CallContext`](crate::CallContext). In a scope of a `CallContext`,
//! a call ends at the deadline of the caller, and does not start after it.
//!
//! reqwest has a retry of its own for requests that an HTTP/2 server did not start. It repeats only those, at most once or twice, so
//! it may stay on.

mod client;
mod hosts;
mod request;

pub use self::client::{Client, ClientBuilder};
pub use self::hosts::Announce;
pub use self::request::{RequestBuilder, RequestError};
