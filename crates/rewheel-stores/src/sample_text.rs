//! Encodes cached job counts as text.

use crate::pages::Tallies;
use rewheel_core::store::Tally;
use rewheel_core::{KindName, State, Timestamp};
use serde_json::{Value, json};

const STATES: [State; 4] = [State::Scheduled, State::Leased, State::Paused, State::Dead];

/// Encodes tallies as a JSON array of `[kind, scheduled, leased, paused, dead, oldest due]`. Kinds
/// without jobs are left out: there may be thousands.
pub(crate) fn document(tallies: &[Tally]) -> String {
    let has_jobs = |tally: &&Tally| tally.jobs.values().any(|count| *count > 0);
    let line = |tally: &Tally| {
        let [scheduled, leased, paused, dead] =
            STATES.map(|state| tally.jobs.get(&state).copied().unwrap_or(0));
        let due = tally.oldest_due.map(Timestamp::as_millis);
        json!([tally.kind.as_str(), scheduled, leased, paused, dead, due])
    };
    Value::Array(tallies.iter().filter(has_jobs).map(line).collect()).to_string()
}

/// Decodes the output of [`document`] and adds it to tallies. Returns `None` if the text is not
/// readable.
pub(crate) fn read(document: &str, tallies: &mut Tallies) -> Option<()> {
    type Line = (String, u64, u64, u64, u64, Option<i64>);
    let lines: Vec<Line> = serde_json::from_str(document).ok()?;
    for (kind, scheduled, leased, paused, dead, due) in lines {
        let kind = KindName::parse(&kind).ok()?;
        tallies.add(&kind, None, due.map(Timestamp::from_millis));
        for (state, count) in STATES.into_iter().zip([scheduled, leased, paused, dead]) {
            tallies.add(&kind, Some((state, count)), None);
        }
    }
    Some(())
}
