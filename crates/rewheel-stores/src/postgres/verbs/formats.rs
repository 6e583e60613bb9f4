//! Refuses jobs that an older release would damage.

use super::super::error::VerbError;
use super::super::row::counter;
use super::super::session::Session;
use super::super::statements::USE_FORMAT;
use rewheel_core::store::{Inserted, Refusal};
use rewheel_core::{Format, NewJob};
use std::collections::BTreeSet;

/// Refuses jobs that the release of a living holder would damage.
pub(super) async fn refuse_for_old_holders(
    session: &Session<'_>,
    jobs: &[NewJob],
    answers: &mut [Option<Inserted>],
) -> Result<(), VerbError> {
    let open = jobs.iter().zip(&*answers).filter(|(_, answer)| answer.is_none());
    let formats: BTreeSet<Format> = open.map(|(job, _)| job.format()).collect();
    // The newest first: if no holder is too old for it, none is too old for the others.
    for format in formats.into_iter().rev().filter(|format| *format > Format::FIRST) {
        let row = session.one(&USE_FORMAT, &[&counter(format.get())]).await?;
        let Some(holder) = row.try_get::<_, Option<String>>(0)? else { return Ok(()) };
        for (job, answer) in jobs.iter().zip(&mut *answers) {
            if answer.is_none() && job.format() == format {
                let holder = holder.clone();
                *answer = Some(Inserted::Refused(Refusal::HolderTooOld { holder }));
            }
        }
    }
    Ok(())
}
