//! Signs callbacks and webhooks by the Standard Webhooks specification.

use crate::callback::substitute;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::HeaderValue;
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;

/// Bytes of an ed25519 seed; the public key may follow it.
const SEED_BYTES: usize = 32;

/// Shorter secrets can be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Maximum number of secrets: the old and the new one during a rotation, and some more.
const SECRETS_MAX: usize = 8;

/// The signing secrets. Every secret signs each message, so that a receiver may rotate its own at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Vec<Secret>);

/// Invalid secrets: which one, unless there are too many, and why.
#[derive(Debug)]
pub(crate) struct SecretsError {
    pub(crate) index: Option<usize>,
    pub(crate) why: String,
}

impl Secrets {
    /// Parses secrets; `${NAME}` is an environment variable.
    pub(crate) fn parse(
        texts: &[String],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Secrets, SecretsError> {
        if texts.len() > SECRETS_MAX {
            let why = format!("must have {SECRETS_MAX} entries or fewer");
            return Err(SecretsError { index: None, why });
        }
        let parse = |(index, text): (usize, &String)| {
            let secret = substitute(text, variable).and_then(|text| Secret::parse(&text));
            secret.map_err(|why| SecretsError { index: Some(index), why })
        };
        Ok(Secrets(texts.iter().enumerate().map(parse).collect::<Result<_, _>>()?))
    }

    /// Returns the value of `webhook-signature`, or `None` without secrets.
    pub(crate) fn sign(&self, id: &str, unix_seconds: i64, body: &[u8]) -> Option<HeaderValue> {
        let signed: Vec<String> =
            self.0.iter().map(|secret| secret.sign(id, unix_seconds, body)).collect();
        if signed.is_empty() { None } else { HeaderValue::try_from(signed.join(" ")).ok() }
    }
}

/// A signing secret.
#[derive(Clone)]
pub(crate) enum Secret {
    /// `whsec_`: shared with the receiver.
    Shared(Vec<u8>),
    /// `whsk_`: the receiver has only the public key.
    Private(Arc<Ed25519KeyPair>),
}

impl Secret {
    /// Parses a secret; errors do not quote it.
    pub(crate) fn parse(text: &str) -> Result<Secret, String> {
        let (prefix, rest) = text.split_once('_').unwrap_or_default();
        let bytes = STANDARD.decode(rest).map_err(|_| wrong())?;
        match prefix {
            "whsec" if bytes.len() < SECRET_BYTES_MIN => {
                Err(format!("is too short: use at least {SECRET_BYTES_MIN} random bytes"))
            }
            "whsec" => Ok(Secret::Shared(bytes)),
            "whsk" => {
                let key = match bytes.split_at_checked(SEED_BYTES) {
                    Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed),
                    Some((seed, public)) => Ed25519KeyPair::from_seed_and_public_key(seed, public),
                    None => {
                        return Err(
                            "is not an ed25519 key: the key must have 32 or 64 bytes".to_owned()
                        );
                    }
                };
                let key = key.map_err(|_| {
                    "is not an ed25519 key: the key must have 32 or 64 bytes".to_owned()
                })?;
                Ok(Secret::Private(Arc::new(key)))
            }
            _ => Err(wrong()),
        }
    }

    /// Signs a message: its id, its time in seconds and its body.
    pub(crate) fn sign(&self, id: &str, unix_seconds: i64, body: &[u8]) -> String {
        let text = [format!("{id}.{unix_seconds}.").as_bytes(), body].concat();
        match self {
            Secret::Shared(key) => format!("v1,{}", hmac(key, &text)),
            Secret::Private(key) => format!("v1a,{}", STANDARD.encode(key.sign(&text).as_ref())),
        }
    }
}

fn wrong() -> String {
    "must be `whsec_` or `whsk_` followed by the key in base64 (Standard Webhooks)".to_owned()
}

/// Signs a text with a shared key.
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC key may have any length");
    mac.update(text);
    STANDARD.encode(mac.finalize().into_bytes())
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn a_shared_secret_signs_as_the_specification_has_it() {
        // From the specification's test vectors.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_private_secret_is_verified_by_its_public_half() {
        use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
        let seed = [7; 32];
        let public =
            Ed25519KeyPair::from_seed_unchecked(&seed).unwrap().public_key().as_ref().to_vec();
        let alone = Secret::parse(&format!("whsk_{}", STANDARD.encode(seed))).unwrap();
        let both = [&seed[..], &public].concat();
        let both = Secret::parse(&format!("whsk_{}", STANDARD.encode(both))).unwrap();
        let signed = alone.sign("msg_1", 17, b"\xff body");
        assert_eq!(signed, both.sign("msg_1", 17, b"\xff body"));
        let bytes = STANDARD.decode(signed.strip_prefix("v1a,").unwrap()).unwrap();
        let verifier = UnparsedPublicKey::new(&ED25519, &public);
        assert!(verifier.verify(b"msg_1.17.\xff body", &bytes).is_ok());
        assert!(verifier.verify(b"msg_1.18.\xff body", &bytes).is_err());
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_told() {
        for bad in [
            "",
            "hunter2",
            "whsec_",
            "whsec_?",
            "whsec_aGk=",
            "whsk_aGk=",
            "rw_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            let why = Secret::parse(bad).unwrap_err();
            assert!(bad.is_empty() || !why.contains(bad) || bad == "whsec_", "{why}");
        }
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(***)");
    }
}
