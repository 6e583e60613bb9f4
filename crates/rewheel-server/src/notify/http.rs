//! Posts notices over HTTP.

use super::document::{document, json_text};
use super::judge;
use super::message::Message;
use super::settings::NotifyTarget;
use super::sign::Signing;
use super::{unix_millis, wall_clock};
use crate::callback::{CalleeUrl, Client, Echo};
use async_trait::async_trait;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request};
use rewheel_engine::notify::{Event, Notice, Notifier, NotifyError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::time::SystemTime;

/// Bytes of a message id, so that no two messages of a store have the same.
const ID_BYTES: usize = 16;

/// The destination of a notifier: format, URL and signature.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) to: NotifyTarget,
    pub(super) url: CalleeUrl,
    pub(super) signing: Signing,
}

/// Posts notices to one URL in the receiver's format. Created by [`build`](super::build).
pub struct HttpNotifier {
    client: Client,
    target: Target,
    /// The secrets to mask in responses.
    echo: Echo,
}

impl HttpNotifier {
    pub(super) fn new(client: Client, target: Target) -> HttpNotifier {
        let echo = Echo::new(target.url.words());
        HttpNotifier { client, target, echo }
    }
}

impl std::fmt::Debug for HttpNotifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The path of such a URL is often its only secret.
        f.debug_struct("HttpNotifier").field("to", &self.target.to).finish_non_exhaustive()
    }
}

#[async_trait]
impl Notifier for HttpNotifier {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        let at = wall_clock();
        let request = self.target.request(notice, &message_id(notice), at)?;
        let told = match self.client.call(request).await {
            Ok(response) => judge::answer(self.target.to, response, at).await,
            Err(error) => Err(judge::no_answer(&self.target.url, &error)),
        };
        told.map_err(|error| {
            let message = judge::safe(&self.echo, error.message);
            NotifyError { message, ..error }
        })
    }
}

/// Returns the id of the message for a notice: the same for each attempt, so that a receiver can detect repetitions.
///
/// It is derived from the notice. A dead letter keeps its id when another node sends it again, because the first one died before it could
/// record the delivery.
fn message_id(notice: &Notice) -> String {
    let holder = match notice.event {
        Event::DeadLetter | Event::AttemptsExhausted | Event::NotRetryable => None,
        Event::Takeover
        | Event::LeaseRenewalFailed
        | Event::PersistFailed
        | Event::EngineError
        | Event::KindParked
        | Event::KindUnparked
        | Event::ScheduleMissed
        | Event::Summary
        | Event::Test => notice.holder,
    };
    let document = document(&Notice { holder, ..notice.clone() });
    let digest = Sha256::digest(document.to_string());
    let mut id = "msg_".to_owned();
    for byte in digest.iter().take(ID_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

impl Target {
    /// Builds the request for a notice. Pure: the time and the id are arguments.
    fn request(
        &self,
        notice: &Notice,
        id: &str,
        at: SystemTime,
    ) -> Result<Request<Full<Bytes>>, NotifyError> {
        let millis = unix_millis(at);
        let seconds = millis / 1_000;
        let mut url = self.url.clone();
        let mut headers: Vec<(&'static str, HeaderValue)> = Vec::new();
        let text = || Message::new(notice).written_for(self.to);
        let body = match self.to {
            // Without markup and without linked names.
            NotifyTarget::Slack => {
                json!({ "text": text(), "mrkdwn": false, "parse": "none", "link_names": false })
            }
            NotifyTarget::Feishu => self.feishu(&text(), seconds),
            NotifyTarget::DingTalk => {
                if let Some(sign) = self.signing.dingtalk(millis) {
                    url = url.with_query(&[("timestamp", &millis.to_string()), ("sign", &sign)]);
                }
                json!({ "msgtype": "text", "text": { "content": text() }, "at": { "isAtAll": false } })
            }
            NotifyTarget::Webhook | NotifyTarget::Log => document(notice),
        };
        let body = json_text(&body);
        if self.to == NotifyTarget::Webhook {
            let id_header = HeaderValue::try_from(id).ok();
            headers.extend(id_header.map(|value| ("webhook-id", value)));
            headers.push(("webhook-timestamp", HeaderValue::from(seconds)));
            let secrets = self.signing.standard();
            let signature = secrets.and_then(|secrets| secrets.sign(id, seconds, body.as_bytes()));
            headers.extend(signature.map(|value| ("webhook-signature", value)));
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url
            .to_uri()
            .map_err(|error| NotifyError::stop(format!("the url is not valid: {error}")))?;
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        request.headers_mut().insert(CONTENT_TYPE, json);
        Ok(request)
    }

    fn feishu(&self, text: &str, seconds: i64) -> Value {
        let mut body = json!({ "msg_type": "text", "content": { "text": text } });
        if let Some(sign) = self.signing.feishu(seconds) {
            body["timestamp"] = json!(seconds.to_string());
            body["sign"] = json!(sign);
        }
        body
    }
}

#[cfg(test)]
mod tests;
