//! Tower layers for HTTP: what caller and callee tell each other, limits of a server, and requests that are sent again.
//!
//! | side | layer | does |
//! | --- | --- | --- |
//! | server | [`CallContextLayer`] | reads the headers of [`CallContext`](crate::CallContext): rejects requests after their deadline, suppresses retries that the caller makes |
//! | server | [`RateLimitLayer`] | limits the rate of each key, with 429 and `Retry-After` |
//! | server | [`ShedLayer`] | limits concurrent requests by a bulkhead or an adaptive limit, with 503 and `Retry-After` |
//! | client | [`HttpPipelineLayer`] | runs each request under a pipeline, with a copy of its body for each attempt |
//!
//! The layers work with the bodies of axum and tonic (features `axum` and `tonic`), and with each body that implements
//! [`ReplayBody`] or [`TextBody`]. To requests of gRPC, they answer with a gRPC status.
//!
//! The order on a server, from the outside: `CallContextLayer`, `RateLimitLayer`, `ShedLayer`. So a request that is late takes no
//! slot, and a request that is rejected takes no slot either.

mod body;
mod refusal;
mod context;
mod limits;
mod shed;
mod client;

pub use self::body::{Parts, ReplayBody, TextBody};
pub use self::client::{HttpPipelineLayer, HttpPipelineService, Protocol, Repeatable};
pub use self::context::{AtDeadline, CallContextLayer, CallContextService};
pub use self::limits::{RateLimitLayer, RateLimitService};
pub use self::shed::{ShedLayer, ShedService};

use std::future::Future;
use std::pin::Pin;

/// The future of the services of this module.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
