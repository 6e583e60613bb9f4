//! Refuses jobs that an older release would damage.

use super::super::error::VerbError;
use super::super::row::counter;
use super::super::session::Session;
use super::super::statements::OLDER_HOLDER;
use rewheel_core::store::{Inserted, Refusal};
use rewheel_core::{Format, NewJob};

/// Refuses jobs that the release of a living holder would damage.
pub(super) async fn refuse_for_old_holders(
    session: &Session<'_>,
    jobs: &[NewJob],
    answers: &mut [Option<Inserted>],
) -> Result<(), VerbError> {
    let formats = jobs.iter().map(NewJob::format);
    let Some(newest) = formats.max().filter(|format| *format > Format::FIRST) else {
        return Ok(());
    };
    let older = session.find(&OLDER_HOLDER, &[&counter(newest.get())]).await?;
    let Some(older) = older else { return Ok(()) };
    let holder: String = older.try_get(0)?;
    for (job, answer) in jobs.iter().zip(answers) {
        if answer.is_none() && job.format() > Format::FIRST {
            let holder = holder.clone();
            *answer = Some(Inserted::Refused(Refusal::HolderTooOld { holder }));
        }
    }
    Ok(())
}
