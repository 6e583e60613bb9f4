//! Keeps the retry budgets of kinds.

use super::super::error::unreadable;
use super::super::pack::Args;
use super::super::reply::Reply;
use super::super::script::GRANT;
use super::super::{RedisStore, TRIES_MAX, overtaken};
use rewheel_core::store::StoreResult;
use rewheel_core::{RetryAsk, RetryPool, Timestamp};

impl RedisStore {
    /// The sums are too large for the numbers of a script, so they are computed here, and written if no other node was faster.
    pub(in super::super) async fn grant(&self, asks: &[RetryAsk]) -> StoreResult<Vec<u32>> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let kinds = || Args::texts(asks.iter().map(|ask| ask.kind.as_str()));
        for _ in 0..TRIES_MAX {
            let args = Args::default().list(kinds()).missing().missing();
            let [now, rows] = self.run(&GRANT, args).await?.parts()?;
            let now = now.time()?;
            let rows: Vec<Option<Vec<u8>>> =
                rows.list()?.into_iter().map(Reply::bytes).collect::<StoreResult<_>>()?;
            let (mut granted, mut after) = (Vec::new(), Vec::new());
            for (ask, row) in asks.iter().zip(&rows) {
                let pool = match row {
                    Some(row) => read(row).ok_or_else(|| unreadable("a retry budget"))?,
                    None => RetryPool::fresh(now),
                };
                let (left, retries) = pool.grant(ask, now);
                granted.push(retries);
                after.push(format!("{} {}", left.balance, left.counted.as_millis()));
            }
            let before =
                rows.iter().fold(Args::default(), |args, row| args.maybe_bytes(row.as_deref()));
            let args = Args::default().list(kinds()).list(before).list(Args::texts(after));
            if self.run(&GRANT, args).await?.text()? == "done" {
                return Ok(granted);
            }
        }
        Err(overtaken())
    }
}

fn read(row: &[u8]) -> Option<RetryPool> {
    let (balance, counted) = std::str::from_utf8(row).ok()?.split_once(' ')?;
    let counted = Timestamp::from_millis(counted.parse().ok()?);
    Some(RetryPool { balance: balance.parse().ok()?, counted })
}
