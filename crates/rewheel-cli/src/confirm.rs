//! Asks for confirmation before a command changes or deletes many jobs.

use crate::cli_error::{CliError, exit};
use crate::output::Output;
use std::io::IsTerminal;

/// Whether a change needs the user's confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The change can be undone and harms nothing.
    NotNeeded,
    /// Ask if there is a terminal; without a terminal (in a script), continue without asking.
    OnTerminal,
    /// The change cannot be undone: ask on a terminal, and refuse without one.
    Always,
}

/// Whether a command must ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    No,
    Yes,
}

impl Consent {
    /// Decides whether to ask, given the option `--yes`.
    pub(crate) fn asking(self, yes: bool) -> Result<Asking, CliError> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        match self {
            Consent::NotNeeded => Ok(Asking::No),
            Consent::OnTerminal | Consent::Always if yes => Ok(Asking::No),
            Consent::OnTerminal | Consent::Always if is_terminal => Ok(Asking::Yes),
            Consent::OnTerminal => Ok(Asking::No),
            Consent::Always => {
                let message =
                    "this cannot be undone, and there is no terminal to ask for confirmation";
                Err(CliError::usage(message.to_owned()).hint("add --yes to skip the confirmation"))
            }
        }
    }
}

/// Asks, and fails unless the answer is yes.
pub(crate) fn ask(question: &str, output: Output) -> Result<(), CliError> {
    match output.ask(question) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = "not confirmed: nothing was changed";
            Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)))
        }
        Err(error) => Err(CliError::new(exit::FAILED, error)),
    }
}
