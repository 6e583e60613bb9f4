//! Reads which lanes have scheduled jobs.

use super::super::error::VerbError;
use super::super::lane_rows::{read_lane, tenant_text};
use super::super::row::{get, instant, unsigned};
use super::super::transaction::Transaction;
use super::unreadable::readable;
use mysql_async::Value;
use rewheel_core::store::LaneHead;
use rewheel_core::{KindName, Lane};
use std::collections::HashMap;

pub(in super::super) async fn lanes(
    tx: &mut Transaction<'_>,
    kinds: &[KindName],
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<LaneHead>, VerbError> {
    let mut kinds: Vec<&str> = kinds.iter().map(KindName::as_str).collect();
    kinds.retain(|kind| after.is_none_or(|after| *kind >= after.kind.as_str()));
    kinds.sort_unstable();
    kinds.dedup();
    let list: Vec<Value> = kinds.into_iter().map(Value::from).collect();
    let mut found = Vec::new();
    let mut behind = match after {
        Some(after) => Behind {
            kind: after.kind.to_string(),
            tenant: tenant_text(after.tenant.as_ref()).to_owned(),
            priority: after.priority.get().into(),
            shard: after.shard.get().into(),
        },
        None => Behind::default(),
    };
    while found.len() < limit && !list.is_empty() {
        let left = limit - found.len();
        let sql = include_str!("../sql/lanes.sql");
        let rows = tx.run_list(sql, &[], &list, &behind.values(left)).await?.rows;
        let rows_read = rows.len();
        for row in rows {
            behind = Behind {
                kind: get(&row, 0)?,
                tenant: get(&row, 1)?,
                priority: get(&row, 2)?,
                shard: get(&row, 3)?,
            };
            // The jobs of a lane that cannot be read wait; those of others go on.
            let Some(lane) = readable(read_lane(&row))? else { continue };
            let due = instant(get(&row, 4)?);
            found.push(LaneHead { lane, due, due_in: due.since(tx.now) });
        }
        // Callers take a page that is not full for the last one: lanes that cannot be read must not make one look so.
        if rows_read < left {
            break;
        }
    }
    Ok(found)
}

/// The lane that a page comes after.
struct Behind {
    kind: String,
    tenant: String,
    priority: i64,
    shard: i64,
}

impl Default for Behind {
    fn default() -> Behind {
        Behind { kind: String::new(), tenant: String::new(), priority: -1, shard: -1 }
    }
}

impl Behind {
    fn values(&self, limit: usize) -> [Value; 8] {
        let Behind { kind, tenant, priority, shard } = self;
        [
            kind.into(),
            kind.into(),
            tenant.into(),
            tenant.into(),
            priority.into(),
            priority.into(),
            shard.into(),
            (limit as u64).into(),
        ]
    }
}

/// Reads the lanes that have scheduled jobs.
pub(in super::super) async fn lane_heads(
    tx: &mut Transaction<'_>,
    lanes: &[Lane],
) -> Result<Vec<LaneHead>, VerbError> {
    let mut numbers = HashMap::new();
    for lane in lanes {
        if let Some(number) = tx.lane(lane).await? {
            numbers.insert(number, lane);
        }
    }
    let list: Vec<Value> = numbers.keys().map(|number| Value::from(*number)).collect();
    let rows = tx.run_list(include_str!("../sql/lane_heads.sql"), &[], &list, &[]).await?.rows;
    let mut heads = Vec::with_capacity(rows.len());
    for row in rows {
        let (number, due): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
        if let Some(lane) = numbers.get(&number) {
            let due = instant(due);
            heads.push(LaneHead { lane: (*lane).clone(), due, due_in: due.since(tx.now) });
        }
    }
    Ok(heads)
}

/// Returns a number that changes when another process changes jobs.
pub(in super::super) async fn unreported(tx: &mut Transaction<'_>) -> Result<u64, VerbError> {
    let writer = vec![tx.shared.writer.into()];
    let row = tx.find(include_str!("../sql/unreported.sql"), writer).await?;
    row.map_or(Ok(0), |row| get(&row, 0).map(unsigned))
}
