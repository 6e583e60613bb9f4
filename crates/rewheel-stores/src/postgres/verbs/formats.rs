//! Refuses jobs that an older release would damage.

use super::super::error::VerbError;
use super::super::row::counter;
use super::super::session::Session;
use super::super::statements::OLDER_HOLDER;
use rewheel_core::store::{Inserted, Refusal};
use rewheel_core::{Format, NewJob};
use std::collections::BTreeSet;

/// Refuses jobs that the release of a living holder would damage.
pub(super) async fn refuse_for_old_holders(
    session: &Session<'_>,
    jobs: &[NewJob],
    answers: &mut [Option<Inserted>],
) -> Result<(), VerbError> {
    let formats: BTreeSet<Format> = jobs.iter().map(NewJob::format).collect();
    // The newest first: if no holder is too old for it, none is too old for the others.
    for format in formats.into_iter().rev().filter(|format| *format > Format::FIRST) {
        let older = session.find(&OLDER_HOLDER, &[&counter(format.get())]).await?;
        let Some(older) = older else { return Ok(()) };
        let holder: String = older.try_get(0)?;
        for (job, answer) in jobs.iter().zip(&mut *answers) {
            if answer.is_none() && job.format() == format {
                let holder = holder.clone();
                *answer = Some(Inserted::Refused(Refusal::HolderTooOld { holder }));
            }
        }
    }
    Ok(())
}
