//! Finds who runs the jobs of a kind that no handler runs.

use crate::callback::{Callback, CallbackRunner, Clients};
use crate::config::Config;
use crate::fields::pointer;
use crate::problem::FieldError;
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, Runner, RunnerKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Says what is wrong with the settings of a kind's runner, if anything is.
pub(crate) fn check(settings: &KindSettings) -> Option<FieldError> {
    match (&settings.callback, settings.runner) {
        (Some(callback), RunnerKind::Callback | RunnerKind::Handler) => {
            let error = Callback::parse(callback).err()?;
            Some(FieldError::new(format!("/callback{}", error.pointer()), error.message()))
        }
        (None, RunnerKind::Callback) => {
            Some(FieldError::new("/callback", "is missing: the runner `callback` needs its url"))
        }
        (None, RunnerKind::Handler | RunnerKind::Worker) => None,
        (Some(_), RunnerKind::Worker) => {
            Some(FieldError::new("/callback", "is not for workers: they come and ask"))
        }
    }
}

/// Says which variable of the environment a kind must not name, if there is one. Whoever may say what a
/// kind is decides where its requests go to, and must not send along whatever the server knows.
pub(crate) fn check_reach(settings: &str, listed: &[String]) -> Option<FieldError> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    beyond_reach(settings.get("callback")?, "/callback", listed)
}

fn beyond_reach(value: &Value, at: &str, listed: &[String]) -> Option<FieldError> {
    match value {
        Value::String(text) => {
            let mut names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
            let (name, _) = names.find(|(name, _)| !listed.iter().any(|known| known == name))?;
            let why = format!(
                "must not name the variable `{name}`: list it as server.callback_env in the \
                 server's config, or name the kind there"
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

/// Makes runners over connections that all of them share. Kinds that the config names may name every
/// variable of the environment, others those that are listed. Of several URLs those of this node's region are preferred.
pub(crate) fn source(
    config: &Config,
) -> impl Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + use<> {
    let (clients, region) = (Clients::new(), config.engine.region.clone());
    let trusted: BTreeSet<KindName> = config.kinds.keys().cloned().collect();
    let listed = config.server.callback_env.clone();
    move |kind, settings| match settings.runner {
        RunnerKind::Handler | RunnerKind::Worker => None,
        RunnerKind::Callback => {
            let listed = (!trusted.contains(kind)).then_some(listed.as_slice());
            let runner = of_callback(kind, settings, listed, &clients, region.as_deref());
            runner
                .map_err(|error| {
                    // Written by another release, or with a variable that only others have: its
                    // jobs wait for a holder that can.
                    tracing::warn!(%kind, %error, "the kind cannot be run here");
                })
                .ok()
        }
    }
}

fn of_callback(
    kind: &KindName,
    settings: &KindSettings,
    listed: Option<&[String]>,
    clients: &Clients,
    region: Option<&str>,
) -> Result<Arc<dyn Runner>, Box<dyn std::error::Error>> {
    let callback = settings.callback.as_ref().ok_or("its callback is missing")?;
    if let Some(error) = listed.and_then(|listed| beyond_reach(callback, "/callback", listed)) {
        return Err(format!("{} {}", error.field, error.message).into());
    }
    let callback = Callback::parse(callback)?.near(region);
    Ok(Arc::new(CallbackRunner::new(kind.clone(), callback, clients)?))
}
