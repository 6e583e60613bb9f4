//! Reads the config and opens a store directly, without a server.

use crate::cli_error::{CliError, exit};
use rewheel_core::SecretUrl;
use rewheel_core::store::Store;
use rewheel_server::config::Config;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default name of the config file.
const CONFIG: &str = "rewheel.toml";

/// Reads the config: the named file, or `rewheel.toml` in the current folder if it exists.
pub(crate) fn config(named: Option<&Path>) -> Result<Config, CliError> {
    Ok(Config::load(config_file(named).as_deref(), environment())?)
}

/// Returns the config file: the named file, or `rewheel.toml` in the current folder if it exists.
pub(crate) fn config_file(named: Option<&Path>) -> Option<PathBuf> {
    let found = || Path::new(CONFIG).exists().then(|| PathBuf::from(CONFIG));
    named.map(Path::to_owned).or_else(found)
}

/// Returns the environment, without names and values that are not Unicode: no setting of Rewheel has those.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Opens an existing store, and migrates its tables.
pub(crate) async fn open(url: &SecretUrl) -> Result<Arc<dyn Store>, CliError> {
    check_exists(url)?;
    Ok(rewheel_stores::connect(url.expose()).await?)
}

/// Opens an existing store to look at it: its tables stay as they are.
pub(crate) async fn open_to_look(url: &SecretUrl) -> Result<Arc<dyn Store>, CliError> {
    check_exists(url)?;
    Ok(rewheel_stores::connect_existing(url.expose()).await?)
}

fn check_exists(url: &SecretUrl) -> Result<(), CliError> {
    if file(url.expose()).is_none_or(|path| path.exists()) {
        return Ok(());
    }
    let message = format!("no store exists at {url}");
    Err(CliError::new(exit::UNAVAILABLE, anyhow::Error::msg(message))
        .hint("check the path in the URL, or create the store with `rewheel migrate --store URL`"))
}

/// Returns the file that a URL names, if its store is a file.
fn file(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite://")?;
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    (!path.is_empty()).then(|| PathBuf::from(path))
}
