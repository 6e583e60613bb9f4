//! The policies of one request, with the key that the request has.

use super::PipelineLayer;
use crate::pipeline::{OwnedKey, Pipeline, Policies};
use crate::retry::ByClassify;
use std::fmt;
use std::hash::Hash;

impl<K: Hash + Eq + Clone> Pipeline<K> {
    /// Creates a tower layer of these policies for requests that have a key: a host, a tenant, an account. `key` reads the key
    /// from the request, once; all attempts of the request have the same key. Keyed steps then use the breaker or the limiter of
    /// that key, exactly as for [`run`](Pipeline::run) with [`key`](crate::Call::key). Every value is a key, also an empty
    /// text. For requests without a key, return one common key, or send them through another service.
    ///
    /// ```
    /// use rewheel::{CircuitBreaker, GiveUpReason, Pipeline};
    /// use std::io;
    /// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
    ///
    /// #[derive(Clone)]
    /// struct Get { host: String }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let breakers = CircuitBreaker::consecutive(1).keyed::<String>(1_000);
    /// let policies = Pipeline::keyed().circuit_breaker_keyed(&breakers);
    /// let mut fetch = ServiceBuilder::new()
    ///     .layer(policies.layer_keyed(|get: &Get| get.host.clone()))
    ///     .service(service_fn(|get: Get| async move {
    ///         if get.host == "down" { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(200) }
    ///     }));
    /// let mut get = async |host: &str| {
    ///     let request = Get { host: host.to_owned() };
    ///     fetch.ready().await.unwrap().call(request).await
    /// };
    ///
    /// assert!(get("down").await.is_err());
    /// assert_eq!(get("down").await.unwrap_err().reason(), GiveUpReason::CircuitOpen);
    /// assert_eq!(get("up").await.unwrap(), 200);
    /// # }
    /// ```
    ///
    /// `layer` does not accept a pipeline with keyed steps:
    ///
    /// ```compile_fail
    /// # fn forgets_the_key(policies: rewheel::Pipeline<String>) {
    /// let layer = policies.layer();
    /// # }
    /// ```
    pub fn layer_keyed<Req, F>(&self, key: F) -> PipelineLayer<ByClassify, ByKey<K, F>>
    where
        F: Fn(&Req) -> K + Clone,
    {
        PipelineLayer { pipeline: ByKey { pipeline: self.clone(), key }, judge: ByClassify }
    }
}

/// A pipeline whose key is read from each request. Created by [`Pipeline::layer_keyed`]. You do not need to name this type.
pub struct ByKey<K, F> {
    pipeline: Pipeline<K>,
    key: F,
}

/// Finds the policies of a request. You do not need to name this trait.
pub trait ForRequest<Req>: sealed::Sealed {
    #[doc(hidden)]
    type Policies: Policies;
    #[doc(hidden)]
    fn policies(&self, request: &Req) -> Self::Policies;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Pipeline {}
    impl<K, F> Sealed for super::ByKey<K, F> {}
}

impl<Req> ForRequest<Req> for Pipeline {
    type Policies = Pipeline;

    #[inline]
    fn policies(&self, _: &Req) -> Pipeline {
        self.clone()
    }
}

impl<Req, K: Hash + Eq + Clone, F: Fn(&Req) -> K> ForRequest<Req> for ByKey<K, F> {
    type Policies = OwnedKey<K>;

    #[inline]
    fn policies(&self, request: &Req) -> OwnedKey<K> {
        OwnedKey { pipeline: self.pipeline.clone(), key: (self.key)(request) }
    }
}

// Not derived: a clone needs nothing of `K`.
impl<K, F: Clone> Clone for ByKey<K, F> {
    fn clone(&self) -> ByKey<K, F> {
        ByKey { pipeline: self.pipeline.clone(), key: self.key.clone() }
    }
}

impl<K, F> fmt::Debug for ByKey<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}
