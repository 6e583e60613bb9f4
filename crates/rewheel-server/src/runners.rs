//! Finds who runs the jobs of a kind that no handler runs.

use crate::callback::{Callback, CallbackRunner, Clients};
use crate::problem::FieldError;
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, Runner, RunnerKind};
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

/// Makes runners over connections that all of them share.
pub(crate) fn source() -> impl Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> {
    let clients = Clients::new();
    move |kind, settings| match settings.runner {
        RunnerKind::Handler | RunnerKind::Worker => None,
        RunnerKind::Callback => {
            let runner = of_callback(kind, settings, &clients);
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
    clients: &Clients,
) -> Result<Arc<dyn Runner>, Box<dyn std::error::Error>> {
    let callback = settings.callback.as_ref().ok_or("its callback is missing")?;
    let callback = Callback::parse(callback)?;
    Ok(Arc::new(CallbackRunner::new(kind.clone(), callback, clients)?))
}
