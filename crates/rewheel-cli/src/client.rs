//! Sends requests to a Rewheel server.

use crate::args::Credentials;
use crate::cli_error::{CliError, exit};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Method, RequestBuilder, Response, Url};
use rewheel_core::SecretUrl;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Timeout of a request, long enough for a batch of ten thousand jobs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of an event stream: practically none.
const WATCH_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A connection to a server.
pub(crate) struct Client {
    http: reqwest::Client,
    /// May contain the password: print `shown` instead.
    base: Url,
    shown: SecretUrl,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.shown).finish_non_exhaustive()
    }
}

/// A document that a server sent.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text as sent: a payload is shown as it was written.
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl Client {
    pub(crate) fn new(server: &SecretUrl, credentials: &Credentials) -> Result<Client, CliError> {
        let wrong = |why: &str| {
            let message = format!("--server {server}: {why}");
            CliError::usage(message).hint("use a URL such as http://127.0.0.1:7420")
        };
        let base = Url::parse(server.expose()).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("must be an http or https URL"));
        }
        let mut builder = reqwest::Client::builder().timeout(TIMEOUT);
        if matches!(base.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
            // A proxy cannot reach this machine's loopback.
            builder = builder.no_proxy();
        }
        if let Some(path) = &credentials.ca {
            builder = builder.tls_certs_merge(certificates(path)?);
        }
        if let Some(token) = token(credentials)? {
            builder = builder.default_headers(HeaderMap::from_iter([(AUTHORIZATION, token)]));
        }
        let http = builder.build().map_err(|error| CliError::new(exit::FAILED, error))?;
        Ok(Client { http, base, shown: server.clone() })
    }

    /// Reads a document. Escapes each segment of the path.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Document, CliError> {
        self.send(Method::GET, self.url_with(path, query), String::new()).await
    }

    /// Asks whether the server is ready.
    pub(crate) async fn ready(&self) -> Result<Document, CliError> {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push("readyz");
        }
        self.send(Method::GET, url, String::new()).await
    }

    /// Reads bytes that need not be JSON.
    pub(crate) async fn bytes(&self, path: &[&str]) -> Result<Vec<u8>, CliError> {
        let response = self.http.get(self.url(path)).send().await;
        let response = response.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            let bytes = response.bytes().await.map_err(|error| self.unreachable(error))?;
            return Ok(bytes.to_vec());
        }
        match self.read(response).await {
            Ok(_) => Err(self.stranger()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Opens a stream of events, which has no end.
    pub(crate) async fn watch(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Response, CliError> {
        let request = self.http.get(self.url_with(path, query)).timeout(WATCH_TIMEOUT);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        match self.read(response).await {
            Ok(_) => Err(self.stranger()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Sends a POST request.
    pub(crate) async fn post(&self, path: &[&str], body: String) -> Result<Document, CliError> {
        self.send(Method::POST, self.url(path), body).await
    }

    /// Sends a POST request with query parameters.
    pub(crate) async fn post_with(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: String,
    ) -> Result<Document, CliError> {
        self.send(Method::POST, self.url_with(path, query), body).await
    }

    /// Replaces a document.
    pub(crate) async fn put(&self, path: &[&str], body: String) -> Result<Document, CliError> {
        self.send(Method::PUT, self.url(path), body).await
    }

    /// Sends a DELETE request.
    pub(crate) async fn delete(&self, path: &[&str]) -> Result<Document, CliError> {
        self.send(Method::DELETE, self.url(path), String::new()).await
    }

    /// Changes a document, if it still has this version.
    pub(crate) async fn patch(
        &self,
        path: &[&str],
        if_version: Option<u64>,
        body: String,
    ) -> Result<Document, CliError> {
        let mut request = self.http.request(Method::PATCH, self.url(path));
        if let Some(version) = if_version {
            request = request.header("if-match", format!("\"{version}\""));
        }
        self.answer(request, body).await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    fn url_with(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn send(&self, method: Method, url: Url, body: String) -> Result<Document, CliError> {
        self.answer(self.http.request(method, url), body).await
    }

    async fn answer(&self, request: RequestBuilder, body: String) -> Result<Document, CliError> {
        let request = request.header("content-type", "application/json").body(body);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        self.read(response).await
    }

    async fn read(&self, response: Response) -> Result<Document, CliError> {
        let status = response.status();
        let text = response.text().await.map_err(|error| self.unreachable(error))?;
        if status.is_success() && text.is_empty() {
            return Ok(Document { text, value: Value::Null });
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if status.is_success() => Ok(Document { text, value }),
            Ok(problem) => Err(CliError::of_answer(status.as_u16(), text, &problem)),
            Err(_) => Err(self.stranger()),
        }
    }

    fn stranger(&self) -> CliError {
        let message = format!("{} is not a Rewheel server", self.shown);
        CliError::new(exit::UNAVAILABLE, anyhow::Error::msg(message))
    }

    /// Returns the error for a broken connection.
    pub(crate) fn unreachable(&self, error: reqwest::Error) -> CliError {
        let error = anyhow::Error::new(error.without_url());
        let text = format!("{error:#}");
        let hint = if text.contains("invalid HTTP version parsed") {
            "the address does not speak HTTP: if it uses TLS, the URL must begin with https://"
        } else if text.contains("InvalidContentType") {
            "the server at this address does not use TLS: begin its URL with http://"
        } else if text.contains("certificate") {
            "trust its CA with --ca FILE or REWHEEL_CA; a self-signed certificate must have CA:FALSE"
        } else {
            "start a server with `rewheel serve`, or use another with --server or REWHEEL_SERVER"
        };
        let error = error.context(format!("cannot connect to the server {}", self.shown));
        CliError::new(exit::UNAVAILABLE, error).hint(hint)
    }
}

/// Names the file that contains the token, so that the token itself is not in the environment.
const TOKEN_FILE: &str = "REWHEEL_TOKEN_FILE";

/// Returns the token as a header that is never printed.
fn token(credentials: &Credentials) -> Result<Option<HeaderValue>, CliError> {
    let token = match (&credentials.token, std::env::var_os(TOKEN_FILE)) {
        (Some(token), _) => token.clone(),
        (None, Some(path)) => std::fs::read_to_string(&path).map_err(|error| {
            let path = Path::new(&path).display();
            CliError::usage(format!("{TOKEN_FILE}: failed to read {path}: {error}"))
        })?,
        (None, None) => return Ok(None),
    };
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .map_err(|_| CliError::usage("the token contains an invalid character".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, CliError> {
    let wrong = |why: String| CliError::usage(format!("--ca {}: {why}", path.display()));
    let text =
        std::fs::read(path).map_err(|error| wrong(format!("failed to read the file: {error}")))?;
    let found = Certificate::from_pem_bundle(&text).map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong(
            "contains no certificate: it must have a line BEGIN CERTIFICATE".to_owned(),
        ));
    }
    Ok(found)
}
