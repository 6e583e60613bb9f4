//! Posts notices to whoever waits for them over HTTP.

use super::document::document;
use super::judge;
use super::message::{escaped_for_slack, message};
use super::settings::To;
use super::sign::Secret;
use super::{unix_millis, wall_clock};
use crate::callback::Client;
use async_trait::async_trait;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use rewheel::Random;
use rewheel_engine::notify::{Notice, Notifier, NotifyError};
use serde_json::{Value, json};
use std::time::SystemTime;
use url::Url;

/// Where to, in whose language, signed with what.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) to: To,
    pub(super) url: Url,
    pub(super) secret: Option<Secret>,
}

/// Carries notices to one URL, in the language of whoever is there. Made by [`build`](super::build).
pub struct HttpNotifier {
    client: Client,
    target: Target,
    random: Random,
}

impl HttpNotifier {
    pub(super) fn new(client: Client, target: Target) -> HttpNotifier {
        HttpNotifier { client, target, random: Random::thread() }
    }
}

impl std::fmt::Debug for HttpNotifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The path of such a URL is often all the secret there is.
        f.debug_struct("HttpNotifier").field("to", &self.target.to).finish_non_exhaustive()
    }
}

#[async_trait]
impl Notifier for HttpNotifier {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        let id = format!("msg_{:016x}{:016x}", self.random.next(), self.random.next());
        let at = wall_clock();
        let request = self.target.request(notice, &id, at)?;
        match self.client.call(request).await {
            Ok(response) => judge::answer(self.target.to, response, at).await,
            Err(error) => Err(judge::no_answer(&self.target.url, &error)),
        }
    }
}

impl Target {
    /// Makes the request that carries a notice. Pure: the time and the id are arguments.
    fn request(
        &self,
        notice: &Notice,
        id: &str,
        at: SystemTime,
    ) -> Result<Request<Full<Bytes>>, NotifyError> {
        let millis = unix_millis(at);
        let seconds = millis / 1_000;
        let mut url = self.url.clone();
        let mut headers: Vec<(&'static str, String)> = Vec::new();
        let body = match self.to {
            To::Slack => json!({ "text": escaped_for_slack(&message(notice)) }),
            To::Feishu => self.feishu(notice, seconds),
            To::DingTalk => {
                if let Some(secret) = &self.secret {
                    url.query_pairs_mut()
                        .append_pair("timestamp", &millis.to_string())
                        .append_pair("sign", &secret.dingtalk(millis));
                }
                json!({ "msgtype": "text", "text": { "content": message(notice) } })
            }
            To::Webhook | To::Log => document(notice),
        };
        let body = body.to_string();
        if self.to == To::Webhook {
            headers.push(("webhook-id", id.to_owned()));
            headers.push(("webhook-timestamp", seconds.to_string()));
            if let Some(secret) = &self.secret {
                headers.push(("webhook-signature", secret.standard(id, seconds, &body)));
            }
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::try_from(url.as_str())
            .map_err(|error| NotifyError::stop(format!("the url cannot be called: {error}")))?;
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                request.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        request.headers_mut().insert(CONTENT_TYPE, json);
        Ok(request)
    }

    fn feishu(&self, notice: &Notice, seconds: i64) -> Value {
        let mut body = json!({ "msg_type": "text", "content": { "text": message(notice) } });
        if let Some(secret) = &self.secret {
            body["timestamp"] = json!(seconds.to_string());
            body["sign"] = json!(secret.feishu(seconds));
        }
        body
    }
}

#[cfg(test)]
mod tests;
