//! Prints all output of the command: escapes control characters and removes passwords from errors.

use crate::args::Args;
use crate::cli_error::{CliError, exit};
use crate::screen;
use clap::CommandFactory;
use comfy_table::{Table, presets};
use rewheel_core::redact_urls;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// The form of the output: for people, or JSON for programs.
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

    /// Prints a result: the JSON document, or a text for people.
    pub(crate) fn answer(self, document: impl Display, words: impl FnOnce() -> String) {
        let text = if self.is_json {
            screen::json(&document.to_string())
        } else {
            screen::block(&words())
        };
        // A reader that stops early, such as `head`, is not an error.
        let _ = writeln!(io::stdout().lock(), "{text}");
    }

    /// Prints bytes as they are. On a terminal, escapes control characters.
    pub(crate) fn bytes(self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        // A reader that stops early, such as `head`, is not an error.
        let _ = if stdout.is_terminal() {
            writeln!(stdout, "{}", screen::block(&String::from_utf8_lossy(bytes)))
        } else {
            stdout.write_all(bytes)
        };
    }

    /// Prints a line for people in addition to the result.
    pub(crate) fn note(self, text: impl Display) {
        say(&screen::block(&text.to_string()));
    }

    /// Asks on the terminal for `y` or `yes`.
    pub(crate) fn ask(self, question: &str) -> io::Result<bool> {
        let _ = write!(io::stderr().lock(), "{} [y/N] ", screen::inline(question));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Prints a shell completion script.
    pub(crate) fn completions(self, shell: clap_complete::Shell) {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "rewheel", &mut script);
        let _ = io::stdout().lock().write_all(&script);
    }

    /// Prints an error.
    pub(crate) fn trouble(self, trouble: &CliError) -> ExitCode {
        if self.is_json {
            say(&screen::json(&trouble.document()));
        } else {
            say(&screen::block(&format!("error: {}", trouble.message())));
            if let Some(hint) = &trouble.hint {
                say(&screen::block(&redact_urls(&format!("hint: {hint}"))));
            }
        }
        ExitCode::from(trouble.code)
    }

    /// Prints help, or an error about the arguments. Passwords of URLs in the arguments are masked.
    pub(crate) fn usage(error: &clap::Error) -> ExitCode {
        if !error.use_stderr() {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        let has_colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let text = error.render();
        let text = if has_colours {
            screen::styled(&redact_urls(&text.ansi().to_string()))
        } else {
            screen::block(&redact_urls(&text.to_string()))
        };
        let _ = write!(io::stderr().lock(), "{text}");
        ExitCode::from(exit::USAGE)
    }
}

/// Formats rows as a table with column names.
pub(crate) fn table(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if !names.is_empty() {
        table.set_header(names.to_vec());
    }
    let safe = |row: Vec<String>| row.iter().map(|cell| screen::inline(cell)).collect::<Vec<_>>();
    table.add_rows(rows.into_iter().map(safe));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.to_string();
    lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The log output: to stderr, one event per line, without passwords of URLs.
#[derive(Debug)]
pub(crate) struct Log {
    /// Whether log lines have colours.
    pub(crate) has_colours: bool,
}

impl Write for Log {
    /// Writes one event, including its line end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = redact_urls(text.strip_suffix('\n').unwrap_or(&text));
        let line = line.replace('\n', "\\n");
        let line = if self.has_colours { screen::styled(&line) } else { screen::inline(&line) };
        writeln!(io::stderr().lock(), "{line}")?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
