//! Creates or updates the tables of a store.

use crate::cli_error::CliError;
use crate::output::Output;
use rewheel_core::SecretUrl;
use serde_json::json;

/// Opens the store; this creates or updates its tables.
pub(crate) async fn run(url: &SecretUrl, output: Output) -> Result<(), CliError> {
    let store = rewheel_stores::connect(url.expose()).await?;
    let name = store.capabilities().name;
    store.close().await?;
    output.answer(json!({ "ok": true, "store": name }), || format!("{url} is up to date"));
    Ok(())
}
