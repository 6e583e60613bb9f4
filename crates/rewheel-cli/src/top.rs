//! Shows live statistics of a server, refreshed every second.

mod look;
mod view;

use self::look::{Look, Watched};
use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::output::Output;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use rewheel_core::SecretUrl;
use std::io::IsTerminal;
use std::time::Duration;

/// The interval for reading keys.
const KEYS_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn run(
    every: Duration,
    client: &Client,
    server: &SecretUrl,
    output: Output,
) -> Result<(), CliError> {
    // Take the first snapshot before drawing: an unreachable server is an ordinary error.
    let first = Look::at(client).await?;
    if output.is_json() {
        output.answer(first.document(), String::new);
        return Ok(());
    }
    if !std::io::stdout().is_terminal() {
        let message = "`rewheel top` needs a terminal".to_owned();
        return Err(CliError::usage(message).hint("use `rewheel stats`, or add --json"));
    }
    if every.is_zero() {
        return Err(CliError::usage("--every must be longer than 0s".to_owned()));
    }
    let mut terminal = ratatui::try_init().map_err(|error| CliError::new(exit::FAILED, error))?;
    let watched = watch(&mut terminal, every, client, Watched::new(server, first)).await;
    ratatui::restore();
    watched.map_err(|error| CliError::new(exit::FAILED, error))
}

async fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    every: Duration,
    client: &Client,
    mut watched: Watched,
) -> std::io::Result<()> {
    let mut keys = tokio::time::interval(KEYS_EVERY);
    let look = async |last: Look| {
        tokio::time::sleep(every).await;
        last.next(client).await
    };
    // Runs concurrently with the keyboard input: an unresponsive server must not block quitting.
    let mut next = Box::pin(look(watched.last.clone()));
    loop {
        terminal.draw(|frame| view::draw(frame, &watched))?;
        tokio::select! {
            seen = &mut next => {
                watched.note(seen);
                next.set(look(watched.last.clone()));
            }
            _ = keys.tick() => {
                if wants_to_leave()? {
                    return Ok(());
                }
            }
        }
    }
}

/// Reads the keys pressed since the last call.
fn wants_to_leave() -> std::io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()? {
            let is_interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
