//! Finds the runner of a kind without a handler: a callback or remote workers.

use crate::callback::{Callback, CallbackRunner, Ceiling, Clients, names};
use crate::config::{Config, ServerSettings};
use crate::fields::pointer;
use crate::problem::FieldError;
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, Runner, RunnerKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns what is wrong with the settings of a kind's runner, if anything.
pub(crate) fn check(settings: &KindSettings) -> Option<FieldError> {
    match (&settings.callback, settings.runner) {
        (Some(callback), RunnerKind::Callback | RunnerKind::Handler) => {
            let error = Callback::parse(callback).err()?;
            Some(FieldError::new(format!("/callback{}", error.pointer()), error.message()))
        }
        (None, RunnerKind::Callback) => Some(FieldError::new(
            "/callback",
            "is required for the runner `callback`: set callback.url",
        )),
        (None, RunnerKind::Handler | RunnerKind::Worker) => None,
        (Some(_), RunnerKind::Worker) => Some(FieldError::new(
            "/callback",
            "does not apply to the runner `worker`: remove `callback`, or set the runner to `callback`",
        )),
    }
}

/// Returns what a kind set over REST must not use, if there is anything: an environment variable that `server.callback_env` does not
/// list, or an address that `server.callback_allow` does not cover. A client that may set a kind chooses where its requests go. It must
/// not be able to send the server's secrets there, or to reach addresses that only the server can reach.
pub(crate) fn check_reach(settings: &str, server: &ServerSettings) -> Option<FieldError> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    let callback = settings.get("callback")?;
    beyond_reach(callback, "/callback", &server.callback_env).or_else(|| {
        let error = Callback::beyond(callback, &server.callback_allow)?;
        Some(FieldError::new(format!("/callback{}", error.pointer()), error.message()))
    })
}

fn beyond_reach(value: &Value, at: &str, listed: &[String]) -> Option<FieldError> {
    match value {
        Value::String(text) => {
            let is_unlisted = |name: &&str| !listed.iter().any(|known| known == name);
            let name = names(text).into_iter().find(is_unlisted)?;
            let why = format!(
                "uses the environment variable `{name}`, which is not in server.callback_env: add it there, or define the kind in the config file of the server"
            );
            Some(FieldError::new(at, why))
        }
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .find_map(|(place, part)| beyond_reach(part, &format!("{at}/{place}"), listed)),
        Value::Object(fields) => {
            fields.iter().find_map(|(name, part)| beyond_reach(part, &pointer(at, name), listed))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The limits of a kind that is not in the config file.
struct Limits {
    /// Environment variables that it may use.
    variables: Vec<String>,
    /// Private addresses that it may reach.
    addresses: Ceiling,
}

/// Creates runners with shared connections. Kinds in the config may use every environment variable and reach every address that they
/// allow. Other kinds are limited, even if they were stored when the limits were wider. `demo` are kinds of this process that call this
/// machine. If there are several URLs, those of this node's region are preferred.
pub(crate) fn source(
    config: &Config,
    demo: BTreeSet<KindName>,
) -> impl Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + use<> {
    let (clients, region) = (Clients::new(), config.engine.region.clone());
    let trusted: BTreeSet<KindName> = config.kinds.keys().cloned().collect();
    let ServerSettings { callback_env, callback_allow, .. } = &config.server;
    let of_rest = Limits { variables: callback_env.clone(), addresses: callback_allow.clone() };
    let of_demo = Limits { variables: Vec::new(), addresses: Ceiling::loopback() };
    move |kind, settings| match settings.runner {
        RunnerKind::Handler | RunnerKind::Worker => None,
        RunnerKind::Callback => {
            let limits = if demo.contains(kind) { &of_demo } else { &of_rest };
            let limits = (!trusted.contains(kind)).then_some(limits);
            let runner = of_callback(kind, settings, limits, &clients, region.as_deref());
            runner
                .map_err(|error| {
                    // The kind was written by another release, or needs a variable that only other nodes have: its jobs wait for a holder
                    // that can run it.
                    tracing::warn!(%kind, %error, "this server cannot run jobs of the kind; they wait for another server");
                })
                .ok()
        }
    }
}

fn of_callback(
    kind: &KindName,
    settings: &KindSettings,
    limits: Option<&Limits>,
    clients: &Clients,
    region: Option<&str>,
) -> Result<Arc<dyn Runner>, Box<dyn std::error::Error>> {
    let callback = settings.callback.as_ref().ok_or("the kind has no callback settings")?;
    let unlisted = limits.and_then(|limits| beyond_reach(callback, "/callback", &limits.variables));
    if let Some(error) = unlisted {
        return Err(format!("{} {}", error.field, error.message).into());
    }
    let mut callback = Callback::parse(callback)?.near(region);
    if let Some(limits) = limits {
        // An address beyond the ceiling fails the attempt with a clear message, so that jobs do not wait for ever.
        callback = callback.within(&limits.addresses);
    }
    Ok(Arc::new(CallbackRunner::new(kind.clone(), callback, clients)?))
}
