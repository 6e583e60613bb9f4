//! The client and its builder.

use super::hosts::{Announce, Hosts, Template};
use super::request::RequestBuilder;
use crate::breaker::CircuitBreakerBuilder;
use crate::budget::RetryBudgetBuilder;
use crate::bulkhead::BulkheadBuilder;
use crate::clock::Clock;
use crate::limiter::RateLimiterBuilder;
use crate::observer::Observer;
use crate::presets::ServiceClass;
use crate::random::Random;
use crate::retry::Retry;
use crate::setting::valid;
use ::reqwest::{IntoUrl, Method};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// An HTTP client with policies for each host. See the [module](super) for what it retries.
///
/// Clones share the policies and the connections.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) http: ::reqwest::Client,
    pub(super) hosts: Arc<Hosts>,
    pub(super) announce: Announce,
    pub(super) random: Random,
}

impl Client {
    /// Creates a client with the policies of [`ServiceClass::STANDARD`].
    pub fn new(http: ::reqwest::Client) -> Client {
        Client::builder(http).build()
    }

    /// Returns a builder, for other policies.
    pub fn builder(http: ::reqwest::Client) -> ClientBuilder {
        ClientBuilder {
            http,
            template: Template::of_class(&ServiceClass::STANDARD),
            hosts_max: ClientBuilder::HOSTS_MAX,
            announce: Announce::Always,
        }
    }

    /// Starts a GET request.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// Starts a POST request with a JSON body. It is retried only if it gets an `Idempotency-Key`.
    pub fn post_json<T: Serialize + ?Sized>(&self, url: impl IntoUrl, body: &T) -> RequestBuilder {
        self.request(Method::POST, url).json(body)
    }

    /// Starts a request.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        RequestBuilder::new(self.clone(), self.http.request(method, url))
    }

    /// Returns the number of hosts whose policies the client remembers.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }
}

/// Settings of a [`Client`].
///
/// ```
/// use rewheel::reqwest::{Announce, Client};
/// use rewheel::{Bulkhead, Retry, ServiceClass, millis, seconds};
///
/// let client = Client::builder(reqwest::Client::new())
///     .class(&ServiceClass::CRITICAL)
///     .retry(Retry::exponential(millis(50)).attempts_max(4))
///     .total_timeout(seconds(8))
///     .bulkhead(Bulkhead::concurrency(64))
///     .rate_limiter(None)
///     .announce(Announce::Never) // a service of another company
///     .build();
/// # assert_eq!(client.hosts(), 0);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    http: ::reqwest::Client,
    template: Template,
    hosts_max: usize,
    announce: Announce,
}

impl ClientBuilder {
    /// Default number of hosts that a client remembers: more than a service calls. A client that calls URLs of its users may need more.
    pub const HOSTS_MAX: usize = 1_000;

    /// Sets all policies to those of a class. Call it first.
    pub fn class(mut self, class: &ServiceClass) -> ClientBuilder {
        let Template { bulkhead, observer, clock, random, .. } = self.template;
        self.template = Template { bulkhead, observer, clock, random, ..Template::of_class(class) };
        self
    }

    /// Sets the retry policy. Its own time limits apply in addition to those of the client.
    pub fn retry(mut self, retry: Retry) -> ClientBuilder {
        self.template.retry = retry;
        self
    }

    /// Limits the time of a call with all its attempts and delays.
    ///
    /// # Panics
    /// Panics if the limit is zero.
    #[track_caller]
    pub fn total_timeout(mut self, limit: Duration) -> ClientBuilder {
        self.template.total_timeout = valid(crate::timeout::checked_timeout(limit));
        self
    }

    /// Limits the time of one attempt: until the headers of the response are there, or its body for
    /// [`buffered`](RequestBuilder::buffered).
    ///
    /// # Panics
    /// Panics if the limit is zero.
    #[track_caller]
    pub fn attempt_timeout(mut self, limit: Duration) -> ClientBuilder {
        self.template.attempt_timeout = valid(crate::timeout::checked_timeout(limit));
        self
    }

    /// Sets the retry budget of each host; `None` for no budget.
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudgetBuilder>>) -> ClientBuilder {
        self.template.budget = budget.into();
        self
    }

    /// Sets the circuit breaker of each host; `None` for no breaker.
    pub fn circuit_breaker(
        mut self,
        breaker: impl Into<Option<CircuitBreakerBuilder>>,
    ) -> ClientBuilder {
        self.template.breaker = breaker.into();
        self
    }

    /// Sets the rate limiter of each host; `None` for no limiter.
    pub fn rate_limiter(mut self, limiter: impl Into<Option<RateLimiterBuilder>>) -> ClientBuilder {
        self.template.limiter = limiter.into();
        self
    }

    /// Sets the bulkhead of each host; `None`, the default, for no bulkhead.
    pub fn bulkhead(mut self, bulkhead: impl Into<Option<BulkheadBuilder>>) -> ClientBuilder {
        self.template.bulkhead = bulkhead.into();
        self
    }

    /// Sets how many hosts the client remembers. The policies of a host that was not called for the longest time make room for those
    /// of a new host: its breaker is then closed and its limits are full again.
    ///
    /// # Panics
    /// Panics if the number is zero.
    #[track_caller]
    pub fn hosts_max(mut self, hosts: usize) -> ClientBuilder {
        self.hosts_max = valid(crate::keyed::checked_keys_max(hosts));
        self
    }

    /// Sets whether requests contain the headers of [`CallContext`](crate::CallContext) and, with the feature `otel`, those of the
    /// trace.
    pub fn announce(mut self, announce: Announce) -> ClientBuilder {
        self.announce = announce;
        self
    }

    /// Reports events of the calls, and of all policies that have no observer of their own, to an observer. The name of an event is
    /// the host with its port: if the URLs come from users, metrics by name have as many series as there are hosts.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> ClientBuilder {
        self.template.observer = Some(observer);
        self
    }

    /// Uses another clock for the policies of all hosts.
    pub fn clock(mut self, clock: impl Into<Clock>) -> ClientBuilder {
        self.template.clock = clock.into();
        self
    }

    /// Uses this random source for jitter and for new idempotency keys.
    pub fn random(mut self, random: &Random) -> ClientBuilder {
        self.template.random = random.clone();
        self
    }

    /// Creates the client.
    pub fn build(self) -> Client {
        Client {
            http: self.http,
            random: self.template.random.clone(),
            hosts: Arc::new(Hosts::new(self.template, self.hosts_max)),
            announce: self.announce,
        }
    }
}
