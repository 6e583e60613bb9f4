//! What is sent to whom, and what proves that it is ours.

use super::Target;
use crate::notify::settings::To;
use crate::notify::sign::Secret;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use rewheel_core::Timestamp;
use rewheel_engine::notify::{Event, Notice};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use url::Url;

const ID: &str = "msg_1";

fn at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)
}

fn request(to: To, secret: Option<&str>) -> Request<Full<Bytes>> {
    let url = Url::parse("https://chat.example/hook?access_token=abc").unwrap();
    let secret = secret.map(|text| Secret::parse(to, text).unwrap());
    let notice = Notice::new(Event::EngineError, Timestamp::from_millis(0), "it <fails> & fails");
    Target { to, url, secret }.request(&notice, ID, at()).unwrap()
}

fn text(request: &Request<Full<Bytes>>) -> String {
    let body = request.body().clone().collect().now_or_never().unwrap().unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

fn body(request: &Request<Full<Bytes>>) -> Value {
    serde_json::from_str(&text(request)).unwrap()
}

fn url(request: &Request<Full<Bytes>>) -> Url {
    request.uri().to_string().parse().unwrap()
}

fn header<'a>(request: &'a Request<Full<Bytes>>, name: &str) -> Option<&'a str> {
    request.headers().get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn slack_gets_text_that_is_no_markup() {
    let request = request(To::Slack, None);
    let text = "[error] engine_error: it &lt;fails&gt; &amp; fails";
    assert_eq!(body(&request), json!({ "text": text }));
    assert_eq!(url(&request).as_str(), "https://chat.example/hook?access_token=abc");
    assert_eq!(header(&request, "content-type"), Some("application/json; charset=utf-8"));
}

#[test]
fn feishu_gets_text_and_its_signature_in_the_body() {
    let text = "[error] engine_error: it <fails> & fails";
    let plain = json!({ "msg_type": "text", "content": { "text": text } });
    assert_eq!(body(&request(To::Feishu, None)), plain);
    let signed = body(&request(To::Feishu, Some("SECtest")));
    assert_eq!(signed["timestamp"], "1700000000");
    assert_eq!(signed["sign"], "G7XpBpG8NgG02fJOAhX6FRAObIljmFoxVReo8I62pEk=");
    assert_eq!(signed["content"], plain["content"]);
}

#[test]
fn dingtalk_gets_text_and_its_signature_in_the_url() {
    let text = "[error] engine_error: it <fails> & fails";
    let plain = request(To::DingTalk, None);
    assert_eq!(body(&plain), json!({ "msgtype": "text", "text": { "content": text } }));
    assert_eq!(url(&plain).query(), Some("access_token=abc"));
    let signed = request(To::DingTalk, Some("SECtest"));
    let query: Vec<(String, String)> =
        url(&signed).query_pairs().map(|(name, value)| (name.into(), value.into())).collect();
    let expected = [
        ("access_token", "abc"),
        ("timestamp", "1700000000123"),
        ("sign", "lrMq5E54T40t3FfGVjxdvoqIbXlWY6mzkZYiVoI6emk="),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(query, expected);
    assert!(!url(&signed).as_str().contains('+'), "a plus would be read as a space");
}

#[test]
fn a_webhook_gets_the_document_with_a_signature_of_it() {
    let plain = request(To::Webhook, None);
    assert_eq!(body(&plain)["text"], "it <fails> & fails");
    assert_eq!(header(&plain, "webhook-id"), Some(ID));
    assert_eq!(header(&plain, "webhook-timestamp"), Some("1700000000"));
    assert_eq!(header(&plain, "webhook-signature"), None);
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let signed = request(To::Webhook, Some(secret));
    let text = text(&signed);
    let expected = Secret::parse(To::Webhook, secret).unwrap().standard(ID, 1_700_000_000, &text);
    assert_eq!(header(&signed, "webhook-signature"), Some(expected.as_str()));
}

/// The example of the specification.
#[test]
fn the_signature_of_a_webhook_is_the_standard_one() {
    let secret = Secret::parse(To::Webhook, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature =
        secret.standard("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn a_secret_that_cannot_be_one_is_refused_and_none_is_printed() {
    assert!(Secret::parse(To::Webhook, "hunter2").unwrap_err().contains("whsec_"));
    assert!(Secret::parse(To::Slack, "hunter2").unwrap_err().contains("slack signs nothing"));
    assert!(Secret::parse(To::Feishu, "").unwrap_err().contains("is empty"));
    let secret = Secret::parse(To::Feishu, "hunter2").unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(***)");
}
