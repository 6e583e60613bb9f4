//! Reads the job accounting, and announces dead letters.

use super::super::error::VerbError;
use super::super::row::{bytes, count, failure, get, id16, instant, unsigned};
use super::super::transaction::Transaction;
use super::unreadable::readable;
use rewheel_core::store::{Books, DeadLetter};
use rewheel_core::{JobId, Version};

pub(in super::super) async fn books(tx: &mut Transaction<'_>) -> Result<Books, VerbError> {
    let row = tx.find(include_str!("../sql/books.sql"), Vec::new()).await?;
    let Some(row) = row else { return Ok(Books::default()) };
    Ok(Books {
        submitted: unsigned(get(&row, 0)?),
        live: unsigned(get(&row, 1)?),
        dead: unsigned(get(&row, 2)?),
        finished: unsigned(get(&row, 3)?),
        pruned: unsigned(get(&row, 4)?),
    })
}

pub(in super::super) async fn unannounced(
    tx: &mut Transaction<'_>,
    limit: usize,
) -> Result<Vec<DeadLetter>, VerbError> {
    let values = vec![count(limit as u64)];
    let mut letters = Vec::new();
    for row in tx.rows(include_str!("../sql/unannounced.sql"), values).await? {
        let lane = tx.lane_of(get(&row, 2)?).await;
        let Some(lane) = readable(lane)? else { continue };
        let failed = failure(get(&row, 5)?, get(&row, 6)?, get(&row, 7)?);
        letters.push(DeadLetter {
            job: JobId::from_bytes(bytes(&row, 0)?),
            version: Version::new(unsigned(get(&row, 1)?)),
            lane,
            attempt: get(&row, 3)?,
            died: instant(get(&row, 4)?),
            // An attempt with an unreadable failure is listed without it.
            failure: readable(failed)?.flatten(),
        });
    }
    Ok(letters)
}

pub(in super::super) async fn announce(
    tx: &mut Transaction<'_>,
    letters: &[DeadLetter],
) -> Result<(), VerbError> {
    // In the order of their ids, the order in which all writers lock them.
    let mut letters: Vec<&DeadLetter> = letters.iter().collect();
    letters.sort_unstable_by_key(|letter| letter.job);
    for letter in letters {
        let version = count(letter.version.get());
        let values = vec![tx.now.as_millis().into(), id16(letter.job.to_bytes()), version];
        tx.execute(include_str!("../sql/announce.sql"), values).await?;
    }
    Ok(())
}
