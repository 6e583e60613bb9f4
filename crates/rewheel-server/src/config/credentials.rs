//! The server's credentials: its TLS certificate files and the first admin token.

use super::ServerSettings;
use crate::tokens::hash;
use rewheel_core::TokenHash;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

/// As long as 128 bits of chance written in hex. A shorter one could be found by trying, since one round
/// of SHA-256 is quick.
const CHARS_MIN: usize = 32;

/// A token that the config says. Only its digest is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminToken(pub(crate) TokenHash);

impl AdminToken {
    /// Takes a text that nobody can guess.
    ///
    /// ```
    /// use rewheel_server::config::AdminToken;
    ///
    /// assert!(AdminToken::parse("0f9b2c4d6e8a1b3c5d7e9f0a2b4c6d8e").is_ok());
    /// assert!(AdminToken::parse("hunter2").is_err());
    /// ```
    ///
    /// # Errors
    /// Says what it must be, without what it is.
    pub fn parse(text: &str) -> Result<AdminToken, String> {
        let is_fit = text.len() >= CHARS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit {
            return Ok(AdminToken(hash(text)));
        }
        Err(format!(
            "must have at least {CHARS_MIN} letters and digits: create one with `openssl rand -hex 32`"
        ))
    }
}

impl<'de> Deserialize<'de> for AdminToken {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AdminToken, D::Error> {
        // Not the error of the text: it would quote the secret.
        let text = String::deserialize(from).map_err(|_| "must be a string".to_owned());
        text.and_then(|text| AdminToken::parse(&text)).map_err(serde::de::Error::custom)
    }
}

/// The files of a certificate, as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads what is named as a file; says which setting is wrong.
pub(super) fn take(server: &mut ServerSettings) -> Result<(), (&'static str, String)> {
    let Some(path) = &server.admin_token_file else { return Ok(()) };
    let wrong = |why: String| ("server.admin_token_file", why);
    if server.admin_token.is_some() {
        return Err(wrong("must not be set together with admin_token".to_owned()));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong(format!("failed to read {}: {error}", path.display())))?;
    let token = AdminToken::parse(text.trim())
        .map_err(|why| wrong(format!("the content of {} {why}", path.display())))?;
    server.admin_token = Some(token);
    Ok(())
}
