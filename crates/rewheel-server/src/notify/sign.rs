//! Signs notices, each receiver in its own way.

use super::settings::To;
use crate::signature::{self, hmac};
use std::fmt;

/// What proves that a notice is ours.
#[derive(Clone)]
pub(super) enum Secret {
    /// As the receiver hands it out.
    Text(Vec<u8>),
    /// As Standard Webhooks has it.
    Standard(signature::Secret),
}

impl Secret {
    /// Reads a secret as the receiver hands it out; says what is wrong with it.
    pub(super) fn parse(to: To, text: &str) -> Result<Secret, String> {
        if text.is_empty() {
            return Err("is empty: take it out, or set the variable it comes from".to_owned());
        }
        match to {
            To::Feishu | To::DingTalk => Ok(Secret::Text(text.as_bytes().to_owned())),
            To::Webhook => signature::Secret::parse(text).map(Secret::Standard),
            To::Slack => Err("slack signs nothing: its url is the secret; take it out".to_owned()),
            To::Log => Err("the log has none: take it out".to_owned()),
        }
    }

    /// Feishu: the secret is in the key, and nothing is signed with it.
    pub(super) fn feishu(&self, unix_seconds: i64) -> String {
        let key = [format!("{unix_seconds}\n").as_bytes(), self.text()].concat();
        hmac(&key, b"")
    }

    /// DingTalk: the time and the secret, signed with the secret.
    pub(super) fn dingtalk(&self, unix_millis: i64) -> String {
        let text = [format!("{unix_millis}\n").as_bytes(), self.text()].concat();
        hmac(self.text(), &text)
    }

    /// Standard Webhooks: id, time and body.
    pub(super) fn standard(&self, id: &str, unix_seconds: i64, body: &str) -> String {
        match self {
            Secret::Standard(secret) => secret.sign(id, unix_seconds, body.as_bytes()),
            Secret::Text(_) => String::new(),
        }
    }

    fn text(&self) -> &[u8] {
        match self {
            Secret::Text(text) => text,
            Secret::Standard(_) => &[],
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}
