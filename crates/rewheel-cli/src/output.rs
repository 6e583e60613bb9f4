//! Prints everything that the command has to say.

use crate::args::Args;
use crate::trouble::Trouble;
use clap::CommandFactory;
use comfy_table::{Table, presets};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Where answers go to: to a person, or to a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    is_json: bool,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Output {
        Output { is_json }
    }

    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// Prints an answer: the document, or what a person wants to know of it.
    pub(crate) fn answer(self, document: impl Display, words: impl FnOnce() -> String) {
        if self.is_json {
            print(document);
        } else {
            print(words());
        }
    }

    /// Tells a person something beside the answer.
    pub(crate) fn note(self, text: impl Display) {
        say(text);
    }

    /// Prints what makes a shell complete commands.
    pub(crate) fn completions(self, shell: clap_complete::Shell) {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "rewheel", &mut script);
        let _ = io::stdout().lock().write_all(&script);
    }

    /// Says what went wrong.
    pub(crate) fn trouble(self, trouble: &Trouble) -> ExitCode {
        if self.is_json {
            say(trouble.document());
        } else {
            say(format_args!("error: {:#}", trouble.error));
            if let Some(hint) = &trouble.hint {
                say(format_args!("hint: {hint}"));
            }
        }
        ExitCode::from(trouble.code)
    }
}

/// Lays rows out under their names.
pub(crate) fn table(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if !names.is_empty() {
        table.set_header(names.to_vec());
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.to_string();
    lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A reader that has seen enough, such as `head`, is no reason to complain.
fn print(text: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
