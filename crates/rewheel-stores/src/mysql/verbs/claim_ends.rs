//! Subtracts the jobs that users' transactions ended from the counts of their claims.

use super::super::error::VerbError;
use super::super::row::get;
use super::super::transaction::Transaction;
use mysql_async::Value;
use std::collections::BTreeMap;

/// Notes that are taken with one transaction.
const NOTES_MAX: u64 = 1_000;

pub(in super::super) async fn subtract(tx: &mut Transaction<'_>) -> Result<(), VerbError> {
    let notes = tx.rows(include_str!("../sql/claim_ends.sql"), vec![NOTES_MAX.into()]).await?;
    let mut ended: BTreeMap<i64, i64> = BTreeMap::new();
    let mut taken: Vec<Value> = Vec::with_capacity(notes.len());
    for row in notes {
        taken.push(get::<i64>(&row, 0)?.into());
        *ended.entry(get(&row, 1)?).or_default() += get::<i64>(&row, 2)?;
    }
    tx.run_list(include_str!("../sql/delete_claim_ends.sql"), &[], &taken, &[]).await?;
    tx.count_claims(ended).await
}
