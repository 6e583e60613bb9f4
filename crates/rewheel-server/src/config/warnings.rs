//! Finds valid settings that are risky.

use super::{Config, PublicUrl};
use crate::callback::Callback;
use std::time::Duration;

/// A valid setting that weakens a guarantee or the security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The setting, such as `engine.lease_ttl`.
    pub key: String,
    /// What may happen.
    pub why: String,
    /// What to do.
    pub advice: String,
}

/// The advice for a list of networks that contains all of them.
const NARROWER: &str = "list only the networks of the services that are called";

impl Config {
    /// Returns the risky settings of this config.
    ///
    /// ```
    /// use rewheel_server::config::Config;
    /// use std::time::Duration;
    ///
    /// let mut config = Config::default();
    /// assert_eq!(config.warnings(), []);
    /// config.engine.retention_keys = Duration::ZERO;
    /// assert_eq!(config.warnings()[0].key, "retention.keys");
    /// ```
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        let mut warnings = Vec::new();
        let mut warn = |key: String, why: &str, advice: &str| {
            let (why, advice) = (why.to_owned(), advice.to_owned());
            warnings.push(ConfigWarning { key, why, advice });
        };
        // Then a proxy terminates TLS.
        let is_behind_tls = self.server.public_url.as_ref().is_some_and(PublicUrl::is_https);
        let is_open = !self.server.listen.ip().is_loopback() && self.server.tls.is_none();
        if is_open && !is_behind_tls {
            let why = "is not set although `server.listen` is not a loopback address: tokens and payloads cross the network unencrypted";
            let advice = "set it, or listen on 127.0.0.1 behind a proxy that terminates TLS; if only such a proxy can reach the port, set `server.public_url` to its https:// URL";
            warn("server.tls".to_owned(), why, advice);
        }
        if self.engine.lease_ttl < Duration::from_secs(1) && self.store.is_server() {
            let why = "is very short: after a short network failure, other nodes run the jobs of this node again";
            warn("engine.lease_ttl".to_owned(), why, "set it to 1s or more; the default is good");
        }
        if self.engine.retention_keys < Duration::from_secs(60) {
            let why = "is very short: a client that repeats a submit after the job has ended creates a second job";
            let advice = "set it to the longest time in which a client repeats a submit";
            warn("retention.keys".to_owned(), why, advice);
        }
        if self.server.callback_allow.is_everything() {
            let why =
                "lets every token with the role `admin` call every address of the internal network";
            warn("server.callback_allow".to_owned(), why, NARROWER);
        }
        for (kind, settings) in &self.kinds {
            let callback = settings.callback.as_ref();
            let Some(Ok(callback)) = callback.map(Callback::parse) else { continue };
            if callback.allow().is_everything() {
                let why = "allows every client that may submit jobs to send requests to every address of the internal network";
                warn(format!("kinds.{kind}.callback.allow"), why, NARROWER);
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;

    #[test]
    fn what_is_unsafe_is_named_by_its_key() {
        let text = r#"
            [server]
            listen = "0.0.0.0:7420"
            callback_allow = ["10.0.0.0/8", "0.0.0.0/0"]
            [store]
            url = "postgres://shop@db/shop"
            [engine]
            lease_ttl = "500ms"
            [retention]
            keys = "0s"
            [kinds.open]
            runner = "callback"
            callback = { url = "https://a.example", allow = ["10.0.0.0/8", "::/0"] }
            [kinds.closed]
            runner = "callback"
            callback = { url = "https://a.example", allow = ["10.0.0.0/8"] }
        "#;
        let warnings = load(text, &[]).unwrap().warnings();
        assert!(warnings.iter().all(|doubt| !doubt.why.is_empty() && !doubt.advice.is_empty()));
        let keys: Vec<String> = warnings.into_iter().map(|doubt| doubt.key).collect();
        let wanted = [
            "server.tls",
            "engine.lease_ttl",
            "retention.keys",
            "server.callback_allow",
            "kinds.open.callback.allow",
        ];
        assert_eq!(keys, wanted);
    }

    #[test]
    fn tls_is_missing_only_beyond_this_machine() {
        let has_warning = |text: &str| {
            let warnings = load(text, &[]).unwrap().warnings();
            warnings.iter().any(|doubt| doubt.key == "server.tls")
        };
        assert!(has_warning("[server]\nlisten = \"10.0.0.7:7420\""));
        assert!(has_warning("[server]\nlisten = \"[::]:7420\""));
        assert!(!has_warning("[server]\nlisten = \"127.0.0.1:7420\""));
        assert!(!has_warning("[server]\nlisten = \"[::1]:7420\""));
        let tls = "[server]\nlisten = \"0.0.0.0:7420\"\ntls = { certificate = \"a.pem\", key = \"b.pem\" }";
        assert!(!has_warning(tls));
        let behind = |scheme: &str| {
            format!(
                "[server]\nlisten = \"0.0.0.0:7420\"\npublic_url = \"{scheme}://ops.example.com\""
            )
        };
        assert!(!has_warning(&behind("https")));
        assert!(has_warning(&behind("http")));
    }
}
