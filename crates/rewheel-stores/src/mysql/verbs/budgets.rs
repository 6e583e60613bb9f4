//! Stores the retry budget of each kind.

use super::super::error::VerbError;
use super::super::row::{count, get, instant, unsigned};
use super::super::transaction::Transaction;
use rewheel_core::{RetryAsk, RetryPool};

/// Grants retries, in one transaction.
pub(in super::super) async fn grant(
    tx: &mut Transaction<'_>,
    asks: &[RetryAsk],
) -> Result<Vec<u32>, VerbError> {
    // In the order of their names, so that two requests for the same kinds do not deadlock.
    let mut order: Vec<usize> = (0..asks.len()).collect();
    order.sort_unstable_by_key(|nth| asks[*nth].kind.as_str());
    let mut grants = vec![0; asks.len()];
    for nth in order {
        grants[nth] = grant_one(tx, &asks[nth]).await?;
    }
    Ok(grants)
}

async fn grant_one(tx: &mut Transaction<'_>, ask: &RetryAsk) -> Result<u32, VerbError> {
    let kind = ask.kind.as_str();
    let find = include_str!("../sql/find_budget.sql");
    let row = match tx.find(find, vec![kind.into()]).await? {
        Some(row) => Some(row),
        None => {
            let fresh = RetryPool::fresh(tx.now);
            let values = vec![kind.into(), count(fresh.balance), fresh.counted.as_millis().into()];
            tx.execute(include_str!("../sql/insert_budget.sql"), values).await?;
            // Another request may have been faster.
            tx.find(find, vec![kind.into()]).await?
        }
    };
    let pool = match &row {
        Some(row) => RetryPool { balance: unsigned(get(row, 0)?), counted: instant(get(row, 1)?) },
        None => RetryPool::fresh(tx.now),
    };
    // Another request may have counted up to a later time while this one waited for the lock: then no time has passed.
    let (left, granted) = pool.grant(ask, tx.now);
    let values = vec![count(left.balance), left.counted.as_millis().into(), kind.into()];
    tx.execute(include_str!("../sql/grant.sql"), values).await?;
    Ok(granted)
}
