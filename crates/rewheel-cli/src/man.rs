//! Writes the man pages.

use crate::args::Args;
use crate::cli_error::{CliError, exit};
use crate::output::Output;
use anyhow::Context as _;
use clap::CommandFactory;
use serde_json::json;
use std::path::Path;

/// Writes one page for each command into a folder, which it creates.
pub(crate) fn write(folder: &Path, output: Output) -> Result<(), CliError> {
    let failed = |error: anyhow::Error| CliError::new(exit::FAILED, error);
    let place = || format!("failed to write man pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(place).map_err(failed)?;
    clap_mangen::generate_to(Args::command(), folder).with_context(place).map_err(failed)?;
    let folder = folder.display().to_string();
    output.answer(json!({ "ok": true, "folder": folder }), || format!("man pages are in {folder}"));
    Ok(())
}
