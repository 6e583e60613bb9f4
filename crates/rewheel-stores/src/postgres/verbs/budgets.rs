//! Stores the retry budget of each kind.

use super::super::error::VerbError;
use super::super::row::{count, millis};
use super::super::session::{Param, Session};
use super::super::statements::{GRANT, INSERT_BUDGETS};
use rewheel_core::{RetryAsk, RetryPool};
use std::collections::BTreeMap;

/// Grants retries: one statement, unless a kind has no budget row yet.
pub(in super::super) async fn grant(
    session: &Session<'_>,
    asks: &[RetryAsk],
) -> Result<Vec<u32>, VerbError> {
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<&RetryAsk> = asks.iter().collect();
    let mut granted = ask_for(session, &all).await?;
    let is_new = |ask: &&RetryAsk| !granted.contains_key(ask.kind.as_str());
    let fresh: Vec<&RetryAsk> = asks.iter().filter(is_new).collect();
    if !fresh.is_empty() {
        let kinds: Vec<&str> = fresh.iter().map(|ask| ask.kind.as_str()).collect();
        let saved = count(RetryPool::SAVED);
        let params: [Param<'_>; 4] =
            [&session.offset(), &kinds, &saved, &millis(RetryPool::MELTS_IN)];
        session.execute(&INSERT_BUDGETS, &params).await?;
        granted.extend(ask_for(session, &fresh).await?);
    }
    let answer = |ask: &RetryAsk| granted.get(ask.kind.as_str()).copied().unwrap_or(0);
    Ok(asks.iter().map(answer).collect())
}

async fn ask_for(
    session: &Session<'_>,
    asks: &[&RetryAsk],
) -> Result<BTreeMap<String, u32>, VerbError> {
    // The statement finds the request of a kind by its place in this order.
    let mut asks = asks.to_vec();
    asks.sort_unstable_by_key(|ask| ask.kind.as_str());
    let kinds: Vec<&str> = asks.iter().map(|ask| ask.kind.as_str()).collect();
    let earned: Vec<i64> = asks.iter().map(|ask| count(ask.earned)).collect();
    let wanted: Vec<i64> = asks.iter().map(|ask| i64::from(ask.wanted)).collect();
    let parts = asks.iter().map(|ask| ask.floor.parts());
    let (floors, periods): (Vec<i64>, Vec<i64>) =
        parts.map(|(retries, period)| (count(retries), count(period))).unzip();
    let params: [Param<'_>; 10] = [
        &session.offset(),
        &kinds,
        &earned,
        &wanted,
        &floors,
        &periods,
        &count(RetryPool::RETRY),
        &count(RetryPool::SAVED),
        &millis(RetryPool::MELTS_IN),
        &count(RetryPool::BALANCE_MAX),
    ];
    let rows = session.query(&GRANT, &params).await?;
    rows.iter()
        .map(|row| {
            let granted = u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0);
            Ok((row.try_get::<_, String>(0)?, granted))
        })
        .collect()
}
