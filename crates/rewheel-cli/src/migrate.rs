//! Brings the tables of a store up to date.

use crate::output::Output;
use crate::trouble::Trouble;
use serde_json::json;

/// Opening a store is what makes and mends its tables.
pub(crate) async fn run(url: &str, output: Output) -> Result<(), Trouble> {
    let store = rewheel_stores::connect(url).await?;
    let name = store.capabilities().name;
    store.close().await?;
    output.answer(json!({ "ok": true, "store": name }), || format!("{url} is up to date"));
    Ok(())
}
