//! Signs notices, each receiver in its own way.

use super::settings::To;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// What the secrets of Standard Webhooks begin with.
const STANDARD_PREFIX: &str = "whsec_";

/// What proves that a notice is ours.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Vec<u8>);

impl Secret {
    /// Reads a secret as the receiver hands it out; says what is wrong with it.
    pub(super) fn parse(to: To, text: &str) -> Result<Secret, String> {
        if text.is_empty() {
            return Err("is empty: take it out, or set the variable it comes from".to_owned());
        }
        match to {
            To::Feishu | To::DingTalk => Ok(Secret(text.as_bytes().to_owned())),
            To::Webhook => {
                let bytes = text.strip_prefix(STANDARD_PREFIX);
                let bytes = bytes.and_then(|text| STANDARD.decode(text).ok());
                bytes.map(Secret).ok_or_else(|| {
                    format!("must be `{STANDARD_PREFIX}` and base64, as Standard Webhooks have it")
                })
            }
            To::Slack => Err("slack signs nothing: its url is the secret; take it out".to_owned()),
            To::Log => Err("the log has none: take it out".to_owned()),
        }
    }

    /// Feishu: the secret is in the key, and nothing is signed with it.
    pub(super) fn feishu(&self, unix_seconds: i64) -> String {
        let key = [format!("{unix_seconds}\n").as_bytes(), &self.0].concat();
        signed(&key, b"")
    }

    /// DingTalk: the time and the secret, signed with the secret.
    pub(super) fn dingtalk(&self, unix_millis: i64) -> String {
        let text = [format!("{unix_millis}\n").as_bytes(), &self.0].concat();
        signed(&self.0, &text)
    }

    /// Standard Webhooks: id, time and body.
    pub(super) fn standard(&self, id: &str, unix_seconds: i64, body: &str) -> String {
        let text = format!("{id}.{unix_seconds}.{body}");
        format!("v1,{}", signed(&self.0, text.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

fn signed(key: &[u8], text: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).expect("a key of this code may have any length");
    mac.update(text);
    STANDARD.encode(mac.finalize().into_bytes())
}
