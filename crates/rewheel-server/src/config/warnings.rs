//! Finds valid settings that are risky.

use super::Config;
use crate::callback::Callback;
use std::time::Duration;

/// A valid setting that weakens a guarantee or the security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The setting, such as `engine.lease_ttl`.
    pub key: String,
    /// What may happen.
    pub why: String,
}

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
        let mut warn =
            |key: String, why: &str| warnings.push(ConfigWarning { key, why: why.to_owned() });
        if self.engine.lease_ttl < Duration::from_secs(1) && self.store.is_server() {
            let why = "is very short: after a short network failure, other nodes run the jobs of this node again";
            warn("engine.lease_ttl".to_owned(), why);
        }
        if self.engine.retention_keys < Duration::from_secs(60) {
            let why = "is very short: a client that repeats a submit after the job has ended creates a second job";
            warn("retention.keys".to_owned(), why);
        }
        if self.server.callback_allow.is_everything() {
            let why =
                "lets every token with the role `admin` call every address of the internal network";
            warn("server.callback_allow".to_owned(), why);
        }
        for (kind, settings) in &self.kinds {
            let callback = settings.callback.as_ref();
            let Some(Ok(callback)) = callback.map(Callback::parse) else { continue };
            if callback.allow().is_everything() {
                let why = "allows every client that may submit jobs to send requests to every address of the internal network";
                warn(format!("kinds.{kind}.callback.allow"), why);
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
        let keys: Vec<String> =
            load(text, &[]).unwrap().warnings().into_iter().map(|doubt| doubt.key).collect();
        let wanted = [
            "engine.lease_ttl",
            "retention.keys",
            "server.callback_allow",
            "kinds.open.callback.allow",
        ];
        assert_eq!(keys, wanted);
    }
}
