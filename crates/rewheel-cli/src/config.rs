//! Checks and shows the config that a server would use.

use crate::cli_error::{CliError, exit};
use crate::local;
use crate::output::{Output, table};
use rewheel_server::config::{Config, EffectiveSetting};
use serde_json::json;
use std::path::Path;

/// Checks whether a server would start with the config.
pub(crate) fn check(named: Option<&Path>, output: Output) -> Result<(), CliError> {
    local::config(named)?;
    let file = local::config_file(named);
    let document = json!({ "ok": true, "file": file });
    output.answer(document, || match file {
        Some(file) => format!("{}: ok", file.display()),
        None => {
            "ok: the current folder has no rewheel.toml, so only the environment variables were checked"
                .to_owned()
        }
    });
    Ok(())
}

/// Shows the settings in force and their origins.
pub(crate) fn show(named: Option<&Path>, output: Output) -> Result<(), CliError> {
    let file = local::config_file(named);
    let settings = Config::in_force(file.as_deref(), local::environment())?;
    let document = serde_json::to_string(&json!({ "items": settings }))
        .map_err(|error| CliError::new(exit::FAILED, error))?;
    output.answer(document, || {
        let row = |one: &EffectiveSetting| {
            let value = one.value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            vec![one.key.clone(), value, one.origin.clone()]
        };
        table(&["KEY", "VALUE", "FROM"], settings.iter().map(row))
    });
    Ok(())
}
