//! Finds the numbers of lanes, and gives new lanes theirs.

use super::Shared;
use super::error::{VerbError, unreadable};
use super::row::get;
use super::transaction::Transaction;
use super::tries::Tries;
use mysql_async::{Row, Value};
use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};
use std::collections::BTreeMap;
use std::pin::Pin;

impl Transaction<'_> {
    /// Returns the number of a lane, if any job was ever in it.
    pub(super) async fn lane(&mut self, lane: &Lane) -> Result<Option<i64>, VerbError> {
        if let Some(number) = self.known_lane(lane) {
            return Ok(Some(number));
        }
        let row = self.find(include_str!("sql/find_lane.sql"), name_of(lane)).await?;
        let number: Option<i64> = row.map(|row| get(&row, 0)).transpose()?;
        if let Some(number) = number
            && !self.is_theirs()
        {
            self.shared.lanes.remember(number, lane);
        }
        Ok(number)
    }

    fn known_lane(&self, lane: &Lane) -> Option<i64> {
        let checked = self.lanes_checked.get(lane).copied();
        checked.or_else(|| self.shared.lanes.number(lane))
    }

    /// Compares the cached numbers of lanes with the store, with one statement. If one is wrong, forgets all of them: older data was
    /// restored, and a number may belong to another lane now, or to none.
    pub(super) async fn check_lanes(
        &mut self,
        lanes: impl IntoIterator<Item = Lane>,
    ) -> Result<(), VerbError> {
        let mut cached = BTreeMap::new();
        for lane in lanes {
            if let Some(number) = self.shared.lanes.number(&lane)
                && !self.lanes_checked.contains_key(&lane)
            {
                cached.insert(number, lane);
            }
        }
        let list: Vec<Value> = cached.keys().map(|number| Value::from(*number)).collect();
        let rows = self.run_list(include_str!("sql/check_lanes.sql"), &[], &list, &[]).await?.rows;
        for row in rows {
            let number: i64 = get(&row, 4)?;
            // A lane that cannot be read is not the cached one.
            if let Ok(lane) = read_lane(&row)
                && cached.get(&number) == Some(&lane)
            {
                cached.remove(&number);
                self.lanes_checked.insert(lane, number);
            }
        }
        if !cached.is_empty() {
            self.shared.lanes.forget();
        }
        Ok(())
    }

    /// Returns the number of a lane, and creates the lane if necessary. The number is the one that the store has now.
    pub(super) async fn lane_or_new(&mut self, lane: &Lane) -> Result<i64, VerbError> {
        if !self.lanes_checked.contains_key(lane) {
            self.check_lanes([lane.clone()]).await?;
        }
        let number = match self.lane(lane).await? {
            Some(number) => number,
            None => self.new_lane(lane).await?,
        };
        self.lanes_checked.insert(lane.clone(), number);
        Ok(number)
    }

    /// Numbers a lane. Not in the caller's transaction: other submits to the lane would wait until it ends.
    async fn new_lane(&mut self, lane: &Lane) -> Result<i64, VerbError> {
        if self.is_theirs() {
            return new_lane_apart(self.shared, lane).await;
        }
        let number = self.run(include_str!("sql/insert_lane.sql"), name_of(lane)).await?.number;
        self.lanes_new.push((number, lane.clone()));
        Ok(number)
    }

    /// Returns the lane with a number, which may be negated.
    pub(super) async fn lane_of(&mut self, number: i64) -> Result<Lane, VerbError> {
        let number = number.abs();
        if let Some(lane) = self.shared.lanes.lane(number) {
            return Ok(lane);
        }
        if let Some((_, lane)) = self.lanes_new.iter().find(|(new, _)| *new == number) {
            return Ok(lane.clone());
        }
        let row = self.find(include_str!("sql/name_lane.sql"), vec![number.into()]).await?;
        let row = row.ok_or_else(|| unreadable("a lane that does not exist"))?;
        let lane = read_lane(&row)?;
        if !self.is_theirs() {
            self.shared.lanes.remember(number, &lane);
        }
        Ok(lane)
    }
}

/// What a caller's transaction needs that another transaction writes.
pub(super) type Apart<'s, T> = Pin<Box<dyn Future<Output = Result<T, VerbError>> + Send + 's>>;

/// Numbers a lane in a transaction of its own.
fn new_lane_apart<'s>(shared: &'s Shared, lane: &'s Lane) -> Apart<'s, i64> {
    Box::pin(async move {
        let mut tries = Tries::default();
        loop {
            let mut tx = Transaction::write(shared, &shared.work).await?;
            let number = tx.lane_or_new(lane).await;
            if let Some(number) = tx.commit(number, &mut tries).await {
                return Ok(number?);
            }
        }
    })
}

/// Returns the key that a lane is looked up by.
fn name_of(lane: &Lane) -> Vec<Value> {
    vec![
        lane.kind.as_str().into(),
        tenant_text(lane.tenant.as_ref()).into(),
        lane.priority.get().into(),
        lane.shard.get().into(),
    ]
}

/// Reads a lane from the first four columns: kind, tenant, priority, shard.
pub(super) fn read_lane(row: &Row) -> Result<Lane, VerbError> {
    let (kind, tenant): (String, String) = (get(row, 0)?, get(row, 1)?);
    Ok(Lane {
        kind: KindName::parse(&kind).map_err(|_| unreadable("a kind"))?,
        tenant: read_tenant(&tenant)?,
        priority: Priority::new(get(row, 2)?).map_err(|_| unreadable("a priority"))?,
        shard: Shard::stored(get(row, 3)?).ok_or_else(|| unreadable("a shard"))?,
    })
}

/// Returns the stored form of a tenant: the empty text stands for no tenant.
pub(super) fn tenant_text(tenant: Option<&Tenant>) -> &str {
    tenant.map_or("", Tenant::as_str)
}

pub(super) fn read_tenant(text: &str) -> Result<Option<Tenant>, VerbError> {
    if text.is_empty() {
        return Ok(None);
    }
    Tenant::parse(text).map(Some).map_err(|_| unreadable("a tenant"))
}
