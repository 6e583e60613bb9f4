//! Tests which notices are sent to which receiver, and their signatures.

use super::{Target, message_id};
use crate::callback::{CalleeUrl, Path};
use crate::notify::secret_text::SecretText;
use crate::notify::settings::NotifyTarget;
use crate::notify::sign::Signing;
use crate::signature::{Secret, SecretsError};
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use rewheel_core::{HolderId, Timestamp};
use rewheel_engine::notify::{Event, Notice};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use url::Url;

const ID: &str = "msg_1";

fn at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)
}

fn signing(to: NotifyTarget, secrets: &[&str]) -> Result<Signing, SecretsError> {
    let secrets: Vec<SecretText> = secrets.iter().copied().map(SecretText::from).collect();
    Signing::parse(to, &secrets, &|_| None)
}

fn request(to: NotifyTarget, secrets: &[&str]) -> Request<Full<Bytes>> {
    let url = CalleeUrl::parse("https://chat.example/hook?access_token=abc", Path::Secret).unwrap();
    let notice = Notice::new(Event::EngineError, Timestamp::from_millis(0), "it <fails> & fails");
    let target = Target { to, url, signing: signing(to, secrets).unwrap() };
    assert!(!format!("{target:?}").contains("abc"), "{target:?}");
    target.request(&notice, ID, at()).unwrap()
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
    let request = request(NotifyTarget::Slack, &[]);
    let text = "[error] engine_error: it &lt;fails&gt; &amp; fails";
    let expected = json!({ "text": text, "mrkdwn": false, "parse": "none", "link_names": false });
    assert_eq!(body(&request), expected);
    assert_eq!(url(&request).as_str(), "https://chat.example/hook?access_token=abc");
    assert_eq!(header(&request, "content-type"), Some("application/json; charset=utf-8"));
}

#[test]
fn feishu_gets_text_and_its_signature_in_the_body() {
    let text = "[error] engine_error: it ＜fails＞ & fails";
    let plain = json!({ "msg_type": "text", "content": { "text": text } });
    assert_eq!(body(&request(NotifyTarget::Feishu, &[])), plain);
    let signed = body(&request(NotifyTarget::Feishu, &["SECtest"]));
    assert_eq!(signed["timestamp"], "1700000000");
    assert_eq!(signed["sign"], "G7XpBpG8NgG02fJOAhX6FRAObIljmFoxVReo8I62pEk=");
    assert_eq!(signed["content"], plain["content"]);
}

#[test]
fn dingtalk_gets_text_and_its_signature_in_the_url() {
    let text = "[error] engine_error: it <fails> & fails";
    let plain = request(NotifyTarget::DingTalk, &[]);
    let expected =
        json!({ "msgtype": "text", "text": { "content": text }, "at": { "isAtAll": false } });
    assert_eq!(body(&plain), expected);
    assert_eq!(url(&plain).query(), Some("access_token=abc"));
    let signed = request(NotifyTarget::DingTalk, &["SECtest"]);
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
    let plain = request(NotifyTarget::Webhook, &[]);
    assert_eq!(body(&plain)["text"], "it <fails> & fails");
    assert_eq!(header(&plain, "webhook-id"), Some(ID));
    assert_eq!(header(&plain, "webhook-timestamp"), Some("1700000000"));
    assert_eq!(header(&plain, "webhook-signature"), None);
    let secrets = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_ZXhhbXBsZS1zZWNyZXQtb2YtMzItYnl0ZXMtLSEh",
    ];
    let signed = request(NotifyTarget::Webhook, &secrets);
    let text = text(&signed);
    let each = secrets
        .map(|secret| Secret::parse(secret).unwrap().sign(ID, 1_700_000_000, text.as_bytes()));
    assert_eq!(header(&signed, "webhook-signature"), Some(each.join(" ").as_str()));
}

#[test]
fn a_secret_that_cannot_be_one_is_refused_and_none_is_printed() {
    let refused = |to, secrets: &[&str]| signing(to, secrets).unwrap_err();
    assert!(refused(NotifyTarget::Webhook, &["hunter2"]).why.contains("whsec_"));
    assert!(refused(NotifyTarget::Slack, &["hunter2"]).why.contains("does not apply to `slack`"));
    assert!(refused(NotifyTarget::Feishu, &[""]).why.contains("is empty"));
    assert!(refused(NotifyTarget::DingTalk, &["a", "b"]).why.contains("must have only one entry"));
    assert_eq!(
        refused(NotifyTarget::Webhook, &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "x"]).index,
        Some(1)
    );
    let printed = format!("{:?}", signing(NotifyTarget::Feishu, &["hunter2"]).unwrap());
    assert_eq!(printed, "Signing(***)");
}

#[test]
fn a_message_keeps_its_id_and_another_has_another() {
    let [one, other] = [[1; 16], [2; 16]].map(HolderId::from_bytes);
    let notice = |event, holder, text: &str| Notice {
        holder: Some(holder),
        ..Notice::new(event, Timestamp::from_millis(0), text)
    };
    let dead = message_id(&notice(Event::DeadLetter, one, "a"));
    assert_eq!(dead, message_id(&notice(Event::DeadLetter, one, "a")));
    assert_eq!(dead, message_id(&notice(Event::DeadLetter, other, "a")), "any node may send it");
    assert_ne!(dead, message_id(&notice(Event::DeadLetter, one, "b")));
    let error = |holder| message_id(&notice(Event::EngineError, holder, "a"));
    assert_ne!(error(one), error(other), "each node has its own errors");
    assert_eq!((dead.len(), &dead[..4]), (36, "msg_"));
}
