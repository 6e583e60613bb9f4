//! Sends the requests of pages to REST, in the same process.

use super::refusal::Refusal;
use super::visitor::Visitor;
use crate::problem::Code;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tower_service::Service;

/// The answer of REST to a request that succeeded.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Bytes,
    pub(super) etag: Option<String>,
}

impl Answer {
    /// Reads the document.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Refusal::new(
                Code::Internal,
                &format!("the dashboard cannot read an answer of REST: {error}"),
            )
        })
    }
}

/// A change, with the version that it is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent<'a> {
    pub(super) body: &'a str,
    pub(super) if_match: Option<&'a str>,
}

impl Visitor {
    /// Reads a document.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        self.ask(Method::GET, path, Sent::default()).await?.read()
    }

    /// Sends a request with the token of the visitor.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        sent: Sent<'_>,
    ) -> Result<Answer, Refusal> {
        let (status, answer) = self.exchange(method, path, sent).await?;
        if status.is_success() {
            return Ok(answer);
        }
        let refusal = answer.read::<Refusal>();
        Err(refusal.unwrap_or_else(|unreadable| unreadable))
    }

    /// Sends a request, and returns the answer whatever its status is.
    pub(super) async fn exchange(
        &self,
        method: Method,
        path: &str,
        sent: Sent<'_>,
    ) -> Result<(StatusCode, Answer), Refusal> {
        let unfit = |_| {
            Refusal::new(
                Code::BadQuery,
                "the address of the page contains a character that is not allowed",
            )
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::from(sent.body.to_owned()))
            .map_err(unfit)?;
        let headers = request.headers_mut();
        // Host and the headers of proxies decide about servers without tokens.
        headers.clone_from(&self.headers);
        if let Some(session) = &self.session {
            let bearer = HeaderValue::try_from(format!("Bearer {session}"));
            headers.extend(bearer.ok().map(|bearer| (AUTHORIZATION, bearer)));
        }
        if !sent.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let if_match = sent.if_match.and_then(|etag| HeaderValue::try_from(etag).ok());
        headers.extend(if_match.map(|etag| (IF_MATCH, etag)));
        let Ok(response) = self.ui.rest.clone().call(request).await;
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body =
            body.map_err(|_| Refusal::new(Code::Internal, "an answer of REST is incomplete"))?;
        let etag = parts.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        let etag = etag.map(str::to_owned);
        Ok((parts.status, Answer { body, etag }))
    }
}
