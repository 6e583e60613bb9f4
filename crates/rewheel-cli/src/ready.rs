//! Asks a server whether it is ready.

use crate::cli_error::CliError;
use crate::client::Client;
use crate::output::Output;

/// Fails unless the server accepts requests and reaches its store. Needs no token.
pub(crate) async fn run(client: &Client, output: Output) -> Result<(), CliError> {
    let ready = client.ready().await?;
    output.answer(ready.text, || "ready".to_owned());
    Ok(())
}
