//! gRPC with tonic: a client layer, and what its statuses mean.
//!
//! [`Classify`] is implemented for [`tonic::Status`], so that a policy can wrap a call of a generated
//! client. For all calls of a channel, use [`layer`]; on a server, [`CallContextLayer`](crate::http::CallContextLayer) and the other
//! layers of [`http`](crate::http).
//!
//! ```no_run
//! use rewheel::{Pipeline, Retry, millis, seconds};
//! use tonic::transport::Channel;
//! use tower::ServiceBuilder;
//!
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! let policies = Pipeline::new()
//!     .timeout(seconds(5))
//!     .retry(Retry::exponential(millis(50)))
//!     .attempt_timeout(seconds(1));
//! let channel = Channel::from_static("http://orders.example.com:50051").connect().await?;
//! let channel = ServiceBuilder::new().layer(rewheel::tonic::layer(&policies)).service(channel);
//! // let orders = OrdersClient::new(channel);
//! # Ok(())
//! # }
//! ```

use crate::classify::{Category, Class, Classify};
use crate::http::{HttpPipelineLayer, Protocol, Repeatable};
use crate::pipeline::Pipeline;

/// Creates a layer that runs each call of a channel under these policies.
///
/// All calls may be repeated: place calls that are not safe to repeat on a channel without a retry, or set
/// [`Repeatable::Idempotent`]. A call is repeated only if the server answered it with a status and no messages; so a stream that has
/// begun is never repeated. A request with more than 64 KiB is not repeated; see [`HttpPipelineLayer::body_bytes_max`]. The layer
/// reads a request before it sends it, so a client that streams, and waits for answers before it goes on, needs a channel without
/// this layer.
///
/// Each attempt sends the headers of [`CallContext`](crate::CallContext), and `grpc-timeout` with the time limit of the attempt.
pub fn layer(pipeline: &Pipeline) -> HttpPipelineLayer {
    HttpPipelineLayer::new(pipeline).repeatable(Repeatable::All).protocol(Protocol::Grpc)
}

/// Classifies by [`Class::of_grpc`], with the push-back of the server. A status that was made by this process because the connection
/// broke is retried with the category `io` and the code `transport`.
impl Classify for ::tonic::Status {
    fn classify(&self) -> Class {
        let is_transport = std::error::Error::source(self)
            .is_some_and(|source| source.is::<::tonic::transport::Error>());
        if is_transport {
            return Class::retry(Category::Io).with_code("transport");
        }
        let pushback = self.metadata().get("grpc-retry-pushback-ms");
        let pushback = pushback.map(|value| value.to_str().unwrap_or_default());
        Class::of_grpc(self.code() as i32, pushback)
    }
}

/// Retries with the category `io` and the code `transport`: the connection could not be made, or broke.
impl Classify for ::tonic::transport::Error {
    fn classify(&self) -> Class {
        Class::retry(Category::Io).with_code("transport")
    }
}
