//! Runs the command as a shell does.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output and the exit code of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ran {
            code: output.status.code().unwrap(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rewheel"));
    command.current_dir(folder).env_remove("REWHEEL_SERVER").env_remove("RUST_LOG");
    command
}

pub(crate) fn run(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(&command(folder).args(args).stdin(Stdio::null()).output().unwrap())
}
