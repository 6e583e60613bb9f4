//! Writes the line of a lock as one text, and reads it.

use super::Place;
use crate::backend::RequestId;
use std::fmt::Write;

/// Writes `ID:MILLISECONDS` for each place, separated by commas.
pub(crate) fn write(line: &[Place]) -> String {
    let mut text = String::new();
    for Place { id, until_ms } in line {
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{id}:{until_ms}");
    }
    text
}

/// Reads what [`write`] wrote; `None` if it is something else.
pub(crate) fn read(text: &str) -> Option<Vec<Place>> {
    let place = |part: &str| {
        let (id, until) = part.split_once(':')?;
        Some(Place { id: RequestId::parse(id)?, until_ms: until.parse().ok()? })
    };
    text.split(',').filter(|part| !part.is_empty()).map(place).collect()
}
