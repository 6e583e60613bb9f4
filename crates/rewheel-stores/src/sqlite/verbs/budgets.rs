//! Stores the retry budget of each kind.

use super::super::error::VerbError;
use super::super::row::{instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use rewheel_core::{RetryAsk, RetryPool};

pub(in super::super) fn grant(
    tx: &Transaction<'_, '_>,
    asks: &[RetryAsk],
) -> Result<Vec<u32>, VerbError> {
    let mut grants = Vec::with_capacity(asks.len());
    for ask in asks {
        let read = |row: &rusqlite::Row<'_>| {
            let counted = instant(row.get(1)?);
            Ok(RetryPool { balance: unsigned(row.get(0)?), counted })
        };
        let pool = tx.find(include_str!("../sql/find_budget.sql"), [ask.kind.as_str()], read)?;
        let (left, granted) = pool.unwrap_or_else(|| RetryPool::fresh(tx.now)).grant(ask, tx.now);
        let values = (ask.kind.as_str(), count(left.balance), left.counted.as_millis());
        tx.execute(include_str!("../sql/grant.sql"), values)?;
        grants.push(granted);
    }
    Ok(grants)
}
