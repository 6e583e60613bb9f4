//! Judges the response of a notice's receiver.

use super::settings::NotifyTarget;
use crate::callback::{CalleeUrl, Echo, read_body, reason};
use hyper::body::Incoming;
use hyper::header::RETRY_AFTER;
use hyper::{Response, StatusCode};
use hyper_util::client::legacy;
use rewheel::{Class, Verdict, seconds};
use rewheel_core::printable;
use rewheel_engine::notify::NotifyError;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Timeout for reading a response body; after it only the status counts.
const BODY_READ_TIMEOUT: Duration = seconds(2);

/// Rate-limit codes: Feishu's, then DingTalk's.
const TOO_FAST: [i64; 3] = [11_232, 9_499, 130_101];

/// DingTalk's code for "the system is busy".
const BUSY: i64 = -1;

pub(super) async fn answer(
    to: NotifyTarget,
    mut response: Response<Incoming>,
    at: SystemTime,
) -> Result<(), NotifyError> {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let class = Class::of_response(status.as_u16(), after, at);
    let body = read_body(response.body_mut(), BODY_READ_TIMEOUT).await;
    let body = String::from_utf8_lossy(&body);
    match class.verdict {
        Verdict::Done if !status.is_success() => {
            // Redirects are not followed: they would lead to a URL that is not configured.
            Err(NotifyError::stop(text(status, &body)))
        }
        Verdict::Done => code(to, &body),
        verdict @ (Verdict::Retry | Verdict::RetryAfter(_) | Verdict::Stop) => {
            Err(NotifyError { verdict, message: text(status, &body) })
        }
    }
}

/// Judges the body: Feishu and DingTalk always respond with 200 and put the result into the body.
fn code(to: NotifyTarget, body: &str) -> Result<(), NotifyError> {
    let name = match to {
        NotifyTarget::Feishu => "code",
        NotifyTarget::DingTalk => "errcode",
        NotifyTarget::Log | NotifyTarget::Webhook | NotifyTarget::Slack => return Ok(()),
    };
    let answer = serde_json::from_str::<Value>(body).unwrap_or_default();
    match answer.get(name).and_then(Value::as_i64) {
        Some(0) => Ok(()),
        Some(code) if code == BUSY || TOO_FAST.contains(&code) => {
            Err(NotifyError::retry(format!("{name} {code}: {}", body.trim())))
        }
        Some(code) => Err(NotifyError::stop(format!("{name} {code}: {}", body.trim()))),
        None => {
            let why = format!(
                "the response has no `{name}`: check that the url is the url of a {to} bot; response: {body}"
            );
            Err(NotifyError::stop(why.trim().to_owned()))
        }
    }
}

fn text(status: StatusCode, body: &str) -> String {
    match body.trim() {
        "" => status.to_string(),
        body => format!("{status}: {body}"),
    }
}

/// Returns the text of a failure on one line, with repeated secrets masked.
pub(super) fn safe(echo: &Echo, message: String) -> String {
    printable(&echo.masked(message)).into_owned()
}

/// Names only the host: the path is often the secret.
pub(super) fn no_answer(url: &CalleeUrl, error: &legacy::Error) -> NotifyError {
    let origin = url.origin();
    NotifyError::retry(format!("no response from {origin}: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use super::{NotifyTarget, code};
    use rewheel::Verdict;

    #[track_caller]
    fn check(to: NotifyTarget, body: &str, expected: Option<Verdict>) {
        assert_eq!(code(to, body).err().map(|error| error.verdict), expected, "{to} {body}");
    }

    #[test]
    fn a_chat_that_answers_200_says_in_the_body_whether_it_took_it() {
        check(NotifyTarget::Feishu, r#"{"code":0,"msg":"success"}"#, None);
        check(
            NotifyTarget::Feishu,
            r#"{"code":19021,"msg":"sign match fail"}"#,
            Some(Verdict::Stop),
        );
        check(
            NotifyTarget::Feishu,
            r#"{"code":11232,"msg":"frequency limited"}"#,
            Some(Verdict::Retry),
        );
        check(NotifyTarget::DingTalk, r#"{"errcode":0,"errmsg":"ok"}"#, None);
        check(
            NotifyTarget::DingTalk,
            r#"{"errcode":310000,"errmsg":"sign not match"}"#,
            Some(Verdict::Stop),
        );
        check(
            NotifyTarget::DingTalk,
            r#"{"errcode":130101,"errmsg":"too fast"}"#,
            Some(Verdict::Retry),
        );
        check(NotifyTarget::DingTalk, r#"{"errcode":-1,"errmsg":"busy"}"#, Some(Verdict::Retry));
        check(NotifyTarget::DingTalk, r#"{"code":0}"#, Some(Verdict::Stop));
        check(NotifyTarget::Feishu, "<html>", Some(Verdict::Stop));
        check(NotifyTarget::Slack, "ok", None);
        check(NotifyTarget::Webhook, "", None);
    }
}
