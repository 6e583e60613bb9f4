//! One request: how it is built, sent, and sent again.

use super::client::Client;
use super::hosts::{Announce, Policies};
use crate::call_context::{CallContext, Retries, wall_clock};
use crate::classify::{Category, Class, Classify, text_with_causes};
use crate::error::{Error, GiveUpReason, Refused};
use crate::retry::Attempt;
use crate::traced;
use ::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ::reqwest::{Body, Method, Request, Response, ResponseBuilderExt};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Error of one attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// An error of reqwest. [`reqwest::Error`](::reqwest::Error) implements [`Classify`].
    Http(::reqwest::Error),
    /// The body of the response is longer than [`RequestBuilder::buffered`] allows.
    BodyTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The idempotency key is empty, longer than 255 characters, or has other characters than visible ASCII and spaces.
    InvalidIdempotencyKey,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Http(error) => f.write_str(&text_with_causes(error)),
            RequestError::BodyTooLong { bytes_max } => {
                write!(
                    f,
                    "the body of the response is longer than {bytes_max} bytes: raise the limit of `buffered`, or use `send`"
                )
            }
            RequestError::InvalidIdempotencyKey => f.write_str(
                "invalid idempotency key: use 1 to 255 visible ASCII characters or spaces",
            ),
        }
    }
}

impl std::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RequestError::Http(error) => Some(error),
            RequestError::BodyTooLong { .. } | RequestError::InvalidIdempotencyKey => None,
        }
    }
}

impl From<::reqwest::Error> for RequestError {
    fn from(error: ::reqwest::Error) -> RequestError {
        RequestError::Http(error)
    }
}

impl Classify for RequestError {
    fn classify(&self) -> Class {
        match self {
            RequestError::Http(error) => error.classify(),
            RequestError::BodyTooLong { .. } => {
                Class::stop(Category::Rejected).with_code("body_too_long")
            }
            RequestError::InvalidIdempotencyKey => {
                Class::stop(Category::Rejected).with_code("idempotency_key")
            }
        }
    }
}

/// A request that is being built. Created by [`Client::get`] and others.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    request: ::reqwest::RequestBuilder,
    key: Key,
}

#[derive(Debug)]
enum Key {
    /// None, or one that the caller has set as a header.
    Unset,
    Set(HeaderValue),
    Invalid,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, request: ::reqwest::RequestBuilder) -> RequestBuilder {
        RequestBuilder { client, request, key: Key::Unset }
    }

    /// Adds a header.
    pub fn header<K, V>(self, name: K, value: V) -> RequestBuilder
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.with(|request| request.header(name, value))
    }

    /// Sets the body to a value as JSON.
    pub fn json<T: Serialize + ?Sized>(self, body: &T) -> RequestBuilder {
        self.with(|request| request.json(body))
    }

    /// Sets the body. A request whose body is a stream is not retried.
    pub fn body(self, body: impl Into<Body>) -> RequestBuilder {
        self.with(|request| request.body(body))
    }

    /// Changes the request with any method of reqwest's own builder.
    ///
    /// ```
    /// # use rewheel::reqwest::Client;
    /// # let client = Client::new(reqwest::Client::new());
    /// let orders = client
    ///     .get("https://api.example.com/orders")
    ///     .with(|request| request.bearer_auth("s3cret"));
    /// # drop(orders);
    /// ```
    pub fn with(
        mut self,
        change: impl FnOnce(::reqwest::RequestBuilder) -> ::reqwest::RequestBuilder,
    ) -> RequestBuilder {
        self.request = change(self.request);
        self
    }

    /// Sets the header `Idempotency-Key`, so that a method such as POST is retried: the server does the work once for each key.
    ///
    /// Take the key from what the request is about, such as the number of an order: then a repeated call of your own code does
    /// not repeat the work either.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> RequestBuilder {
        self.key = header_of_key(key.as_ref()).map_or(Key::Invalid, Key::Set);
        self
    }

    /// Sets the header `Idempotency-Key` to a new random value, the same for all attempts of this request.
    pub fn new_idempotency_key(self) -> RequestBuilder {
        let (high, low) = (self.client.random.next(), self.client.random.next());
        self.idempotency_key(format!("{high:016x}{low:016x}"))
    }

    /// Sends the request, again if necessary, until the headers of a response arrive. An error in the body of the response is not
    /// retried, and reading the body has no time limit of this client: see [`buffered`](RequestBuilder::buffered).
    ///
    /// Cancel safe: dropping the future drops the running attempt.
    ///
    /// # Errors
    /// Returns why the call was given up. A response with a status of failure is not an error.
    pub async fn send(self) -> Result<Response, Error<RequestError>> {
        self.run(None).await
    }

    /// As [`send`](RequestBuilder::send), but reads the whole body in each attempt, so that an attempt whose body breaks off is
    /// repeated. The attempt timeout includes the body.
    ///
    /// # Errors
    /// Returns why the call was given up, and fails if the body is longer than `bytes_max` bytes.
    pub async fn buffered(self, bytes_max: usize) -> Result<Response, Error<RequestError>> {
        self.run(Some(bytes_max)).await
    }

    async fn run(self, bytes_max: Option<usize>) -> Result<Response, Error<RequestError>> {
        let RequestBuilder { client, request, key } = self;
        let mut request = request.build().map_err(|error| not_sent(error.into()))?;
        match key {
            Key::Unset => {}
            Key::Set(key) => {
                request.headers_mut().insert(IDEMPOTENCY_KEY, key);
            }
            Key::Invalid => return Err(not_sent(RequestError::InvalidIdempotencyKey)),
        }
        let policies = client.hosts.policies(&host_of(&request));
        Call { client, policies, bytes_max }.run(request).await
    }
}

/// What all attempts of a request share.
struct Call {
    client: Client,
    policies: std::sync::Arc<Policies>,
    bytes_max: Option<usize>,
}

impl Call {
    async fn run(self, request: Request) -> Result<Response, Error<RequestError>> {
        let Policies { repeating, once, .. } = &*self.policies;
        let may_repeat =
            repeating.may_repeat() && is_repeatable(&request) && request.try_clone().is_some();
        let pipeline = if may_repeat { repeating } else { once };
        let retries = Retries::of_call(may_repeat, pipeline.has_budget());
        let pipeline = match CallContext::current().and_then(|own| own.time_left(wall_clock())) {
            Some(Duration::ZERO) => {
                return Err(Refused::new(GiveUpReason::Deadline, None).into());
            }
            Some(left) => &pipeline.within(left),
            None => pipeline,
        };
        let mut source = Source { request: Some(request), may_repeat };
        let attempt = |attempt: Attempt| {
            let request = source.next();
            let call = &self;
            async move {
                let mut request = request?;
                if call.client.announce == Announce::Always {
                    announce(request.headers_mut(), attempt, retries);
                    traced::add_headers(request.headers_mut());
                }
                let response = call.client.http.execute(request).await?;
                match call.bytes_max {
                    Some(bytes_max) => buffer(response, bytes_max).await,
                    None => Ok(response),
                }
            }
        };
        traced::run(pipeline, attempt, judge).await
    }
}

/// Provides the request of each attempt.
struct Source {
    request: Option<Request>,
    may_repeat: bool,
}

impl Source {
    fn next(&mut self) -> Result<Request, RequestError> {
        let copy = self.request.as_ref().filter(|_| self.may_repeat).and_then(Request::try_clone);
        // A request without a copy is sent once: its pipeline has no retry.
        Ok(copy
            .or_else(|| self.request.take())
            .expect("a request that cannot be copied is sent once"))
    }
}

fn judge(result: &Result<Response, RequestError>) -> Class {
    match result {
        Ok(response) => Class::of_reqwest(response, wall_clock()),
        Err(error) => error.classify(),
    }
}

fn not_sent(error: RequestError) -> Error<RequestError> {
    Error::new(Refused::new(GiveUpReason::Stopped, None), 0, Duration::ZERO, Some(error))
}

/// Returns whether the request may be sent twice: its method says so, or a key lets the server recognize the second.
fn is_repeatable(request: &Request) -> bool {
    let is_idempotent = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    );
    is_idempotent || request.headers().contains_key(IDEMPOTENCY_KEY)
}

fn host_of(request: &Request) -> String {
    let url = request.url();
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns the key as a header: bare if possible, because many servers do not know the quotes of structured fields.
fn header_of_key(key: &str) -> Option<HeaderValue> {
    let is_valid = key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !is_valid || !(1..=255).contains(&key.len()) {
        return None;
    }
    if key.bytes().all(|byte| !b" \",;\\".contains(&byte)) {
        return HeaderValue::from_str(key).ok();
    }
    let quoted = key.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::try_from(format!("\"{quoted}\"")).ok()
}

fn announce(headers: &mut HeaderMap, attempt: Attempt, retries: Retries) {
    for (name, value) in CallContext::of_attempt(attempt, retries, wall_clock()).headers() {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Reads the body; returns the same response with it.
async fn buffer(mut response: Response, bytes_max: usize) -> Result<Response, RequestError> {
    let too_long = RequestError::BodyTooLong { bytes_max };
    // Without a length, the body is read until it is too long.
    let length = response.content_length().and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > bytes_max) {
        return Err(too_long);
    }
    let mut body = Vec::with_capacity(length.unwrap_or_default());
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > bytes_max {
            return Err(too_long);
        }
        body.extend_from_slice(&chunk);
    }
    let builder = http::Response::builder()
        .status(response.status())
        .version(response.version())
        .url(response.url().clone());
    let mut whole = builder.body(body).expect("status, version and URL are those of a response");
    *whole.headers_mut() = std::mem::take(response.headers_mut());
    Ok(Response::from(whole))
}
