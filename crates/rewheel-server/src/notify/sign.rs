//! Signs notices in the way each receiver expects.

use super::secret_text::SecretText;
use super::settings::NotifyTarget;
use crate::callback::substitute;
use crate::signature::{self, SecretsError, hmac};
use std::fmt;

/// How notices are signed.
#[derive(Clone)]
pub(super) enum Signing {
    /// They are not signed.
    Unsigned,
    /// With one secret of a chat.
    Chat(Vec<u8>),
    /// With any number of secrets by Standard Webhooks: each adds a signature.
    Standard(signature::Secrets),
}

impl Signing {
    /// Parses secrets in the receiver's form; returns which one is invalid, and why.
    pub(super) fn parse(
        to: NotifyTarget,
        secrets: &[SecretText],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Signing, SecretsError> {
        if secrets.is_empty() {
            return Ok(Signing::Unsigned);
        }
        let wrong = |why: String| SecretsError { index: None, why };
        let texts: Vec<String> = secrets.iter().map(|secret| secret.expose().to_owned()).collect();
        match (to, &*texts) {
            (NotifyTarget::Webhook, texts) => {
                Ok(Signing::Standard(signature::Secrets::parse(texts, variable)?))
            }
            (NotifyTarget::Feishu | NotifyTarget::DingTalk, [text]) => {
                let at_first = |why: String| SecretsError { index: Some(0), why };
                let text = substitute(text, variable).map_err(at_first)?;
                if text.is_empty() {
                    let why = "is empty: set the environment variable of this secret, or remove the secret";
                    return Err(at_first(why.to_owned()));
                }
                Ok(Signing::Chat(text.into_bytes()))
            }
            (NotifyTarget::Feishu | NotifyTarget::DingTalk, _) => {
                Err(wrong(format!("must have only one entry: a {to} message has only one signature")))
            }
            (NotifyTarget::Slack, _) => {
                Err(wrong("does not apply to `slack`, where the url itself is the secret: remove this setting".to_owned()))
            }
            (NotifyTarget::Log, _) => Err(wrong("does not apply to `log`: remove this setting".to_owned())),
        }
    }

    /// Feishu's signature: time and secret form the key, and the signed text is empty.
    pub(super) fn feishu(&self, unix_seconds: i64) -> Option<String> {
        let secret = self.chat()?;
        let key = [format!("{unix_seconds}\n").as_bytes(), secret].concat();
        Some(hmac(&key, b""))
    }

    /// DingTalk's signature: time and secret, signed with the secret.
    pub(super) fn dingtalk(&self, unix_millis: i64) -> Option<String> {
        let secret = self.chat()?;
        let text = [format!("{unix_millis}\n").as_bytes(), secret].concat();
        Some(hmac(secret, &text))
    }

    /// Standard Webhooks: signs id, time and body.
    pub(super) fn standard(&self) -> Option<&signature::Secrets> {
        match self {
            Signing::Standard(secrets) => Some(secrets),
            Signing::Chat(_) | Signing::Unsigned => None,
        }
    }

    fn chat(&self) -> Option<&[u8]> {
        match self {
            Signing::Chat(secret) => Some(secret),
            Signing::Standard(_) | Signing::Unsigned => None,
        }
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signing(***)")
    }
}
