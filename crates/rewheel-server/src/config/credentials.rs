//! The server's credentials: its TLS certificate files and the first admin token.

use super::ServerSettings;
use crate::tokens::hash;
use rewheel_core::TokenHash;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

/// Minimum length: 128 random bits in hex. A shorter token could be guessed, since one round of SHA-256 is fast.
const CHARS_MIN: usize = 32;

/// An admin token from the config. Only its digest is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminToken(pub(crate) TokenHash);

impl AdminToken {
    /// Accepts a text that is hard to guess.
    ///
    /// ```
    /// use rewheel_server::config::AdminToken;
    ///
    /// assert!(AdminToken::parse("0f9b2c4d6e8a1b3c5d7e9f0a2b4c6d8e").is_ok());
    /// assert!(AdminToken::parse("hunter2").is_err());
    /// ```
    ///
    /// # Errors
    /// Says which form is expected, without quoting the text.
    pub fn parse(text: &str) -> Result<AdminToken, String> {
        let is_fit = text.len() >= CHARS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit {
            return Ok(AdminToken(hash(text)));
        }
        Err(format!(
            "must have at least {CHARS_MIN} characters, without spaces: create a token with `openssl rand -hex 32`"
        ))
    }
}

impl<'de> Deserialize<'de> for AdminToken {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AdminToken, D::Error> {
        // Do not use the parser's error: it would quote the secret.
        let text = String::deserialize(from).map_err(|_| "must be a string".to_owned());
        text.and_then(|text| AdminToken::parse(&text)).map_err(serde::de::Error::custom)
    }
}

/// The files of a certificate, as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate and its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads the token from the named file; returns which setting is wrong.
pub(super) fn take(server: &mut ServerSettings) -> Result<(), (&'static str, String)> {
    let Some(path) = &server.admin_token_file else { return Ok(()) };
    let wrong = |why: String| ("server.admin_token_file", why);
    if server.admin_token.is_some() {
        return Err(wrong(
            "cannot be combined with server.admin_token: remove one of the two".to_owned(),
        ));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong(format!("failed to read {}: {error}", path.display())))?;
    let token = AdminToken::parse(text.trim())
        .map_err(|why| wrong(format!("the content of {} {why}", path.display())))?;
    server.admin_token = Some(token);
    Ok(())
}
