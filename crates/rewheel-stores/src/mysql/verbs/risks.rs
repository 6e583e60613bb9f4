//! Finds server settings and conditions that weaken the store's guarantees.

use super::super::error::VerbError;
use super::super::job_columns::LEASED;
use super::super::pool::STATEMENTS_MAX;
use super::super::row::{bytes, get, id16};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, read};
use super::sweep::Budget;
use crate::unreadable::unreadable_jobs;
use mysql_async::Value;
use rewheel_core::JobId;
use rewheel_core::store::{Risk, StoreResult};
use std::collections::{BTreeMap, HashSet};

/// A transaction that has been open for this long keeps the server from removing deleted rows.
const OLD_TRANSACTION_SECONDS: i64 = 3_600;

/// Below this size of a packet, batches of jobs with payloads of the default limit may not fit.
const PACKET_MIN: i64 = 16 * 1024 * 1024;

/// Live jobs that are read together.
const JOBS_READ: usize = 5_000;

/// Number of leased jobs without a claim from which on no others are looked for.
const STRANDED_MAX: usize = 1_000;

/// Indexes whose absence makes statements fail or scan whole tables.
const INDEXES: [(&str, &str); 22] = [
    ("rewheel_attempts", "job"),
    ("rewheel_audit", "job"),
    ("rewheel_audit", "submit"),
    ("rewheel_claims", "aside"),
    ("rewheel_claims", "holder"),
    ("rewheel_claims", "lane"),
    ("rewheel_dead", "lane"),
    ("rewheel_dead", "unannounced"),
    ("rewheel_finished", "expires"),
    ("rewheel_holders", "id"),
    ("rewheel_idempotency", "ends"),
    ("rewheel_jobs", "id"),
    ("rewheel_keys", "expires"),
    ("rewheel_kinds", "changed"),
    ("rewheel_lanes", "name"),
    ("rewheel_lanes", "tenant"),
    ("rewheel_lines", "head"),
    ("rewheel_lines", "idle"),
    ("rewheel_members", "job"),
    ("rewheel_members", "line"),
    ("rewheel_results", "expires"),
    ("rewheel_tokens", "valid_name"),
];

impl MysqlStore {
    /// Runs each check on its own: one that fails is a risk itself, and hides no other.
    pub(in super::super) async fn check_risks(&self) -> StoreResult<Vec<Risk>> {
        // Without an answer to the first, the server is not available.
        let mut risks = read!(self, tx => settings(tx))?;
        risks.extend(found(
            "old_transaction",
            async { read!(self, tx => old_transaction(tx)) }.await,
        ));
        risks.extend(found("indexes", async { read!(self, tx => indexes(tx)) }.await));
        risks.extend(found("unreadable", async { read!(self, tx => unreadable(tx)) }.await));
        risks.extend(found("claims", async { read!(self, tx => stranded(tx)) }.await));
        Ok(risks)
    }
}

/// Returns the result of a check.
fn found(name: &'static str, result: StoreResult<Option<Risk>>) -> Option<Risk> {
    result.unwrap_or_else(|error| {
        Some(Risk { name, message: format!("could not be checked: {}", error.with_causes()) })
    })
}

/// Looks for leased jobs that no sweep finds, page by page, for a quarter of the timeout: a store may have millions of jobs.
async fn stranded(tx: &mut Transaction<'_>) -> Result<Option<Risk>, VerbError> {
    let (mut lane, mut place) = (i64::MIN, i64::MIN);
    let (mut count, mut first, mut budget) = (0, None, Budget::of(tx));
    loop {
        let values = vec![lane.into(), lane.into(), place.into(), (JOBS_READ as u64).into()];
        let rows = tx.rows(include_str!("../sql/leased_claims.sql"), values).await?;
        let mut claims: BTreeMap<i64, Vec<JobId>> = BTreeMap::new();
        for row in &rows {
            (lane, place) = (get(row, 0)?, get(row, 1)?);
            if get::<u8>(row, 2)? == LEASED {
                claims.entry(get(row, 3)?).or_default().push(JobId::from_bytes(bytes(row, 4)?));
            }
        }
        for job in without_claim(tx, claims).await? {
            count += 1;
            first.get_or_insert(job);
        }
        if rows.len() < JOBS_READ || count >= STRANDED_MAX || budget.is_spent().await {
            break;
        }
    }
    let Some(job) = first else { return Ok(None) };
    let message = format!(
        "{count} leased jobs (for example {job}) belong to no claim, so no sweep frees them: see `Leased jobs without a claim` in docs/mysql.md"
    );
    Ok(Some(Risk { name: "claims", message }))
}

/// Returns those of the given jobs whose claim does not exist. Since they were read, some may have ended, and their claims with them.
async fn without_claim(
    tx: &mut Transaction<'_>,
    mut claims: BTreeMap<i64, Vec<JobId>>,
) -> Result<Vec<JobId>, VerbError> {
    let list: Vec<Value> = claims.keys().copied().map(Value::from).collect();
    for row in tx.run_list(include_str!("../sql/claims_exist.sql"), &[], &list, &[]).await?.rows {
        claims.remove(&get(&row, 0)?);
    }
    let ids: Vec<Value> = claims.values().flatten().map(|id| id16(id.to_bytes())).collect();
    let rows = tx.run_list(include_str!("../sql/stranded.sql"), &[], &ids, &[]).await?.rows;
    rows.iter().map(|row| Ok(JobId::from_bytes(bytes(row, 0)?))).collect()
}

/// Reads the settings that decide what a crash can lose.
async fn settings(tx: &mut Transaction<'_>) -> Result<Vec<Risk>, VerbError> {
    let mut risks = Vec::new();
    let Some(row) = tx.find(include_str!("../sql/risks.sql"), Vec::new()).await? else {
        return Ok(risks);
    };
    let text = |at| get::<String>(&row, at);
    let is_on = |text: &str| matches!(text, "1" | "ON");
    let mut add = |name, message: String| risks.push(Risk { name, message });
    let flush = text(0)?;
    if flush == "0" || flush == "2" {
        add(
            "innodb_flush_log_at_trx_commit",
            format!("{flush}: a crash may lose the last acknowledged jobs; set it to 1"),
        );
    }
    let doublewrite = text(1)?;
    if !is_on(&doublewrite) {
        add(
            "innodb_doublewrite",
            format!(
                "{doublewrite}: a crash may leave torn pages; turn it on, unless the file system writes pages atomically"
            ),
        );
    }
    let (has_binlog, sync_binlog) = (is_on(&text(2)?), text(3)?);
    if has_binlog && sync_binlog != "1" {
        add(
            "sync_binlog",
            format!(
                "{sync_binlog}: a crash of the machine may lose the last acknowledged jobs, or replicas may differ; set it to 1"
            ),
        );
    }
    let (statements, nodes): (u64, u64) = (get(&row, 5)?, get(&row, 6)?);
    let per_node = (tx.shared.connections_max * STATEMENTS_MAX) as u64;
    let needed = nodes.max(1) * per_node;
    if statements < needed {
        add(
            "max_prepared_stmt_count",
            format!(
                "{statements}: {} nodes may need {needed} prepared statements ({per_node} each); set it to {needed} or more, or lower `pool_max`",
                nodes.max(1)
            ),
        );
    }
    let packet: i64 = get(&row, 4)?;
    if packet < PACKET_MIN {
        add(
            "max_allowed_packet",
            format!(
                "{packet} bytes: the server rejects batches that are larger; set it to {PACKET_MIN} or more"
            ),
        );
    }
    Ok(risks)
}

/// Looks for transactions that are open for long, if the user may see those of others.
async fn old_transaction(tx: &mut Transaction<'_>) -> Result<Option<Risk>, VerbError> {
    let found = tx.find(include_str!("../sql/old_transaction.sql"), Vec::new()).await;
    let row = match found {
        Ok(row) => row,
        Err(trouble) if trouble.is_forbidden() => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    let age: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
    let message = || {
        format!(
            "a transaction has been open for {} min and keeps deleted rows on the disk; find it in information_schema.innodb_trx",
            age / 60
        )
    };
    Ok((age > OLD_TRANSACTION_SECONDS)
        .then(|| Risk { name: "old_transaction", message: message() }))
}

async fn indexes(tx: &mut Transaction<'_>) -> Result<Option<Risk>, VerbError> {
    let mut known: HashSet<(String, String)> = HashSet::new();
    for row in tx.rows(include_str!("../sql/index_names.sql"), Vec::new()).await? {
        known.insert((get(&row, 0)?, get(&row, 1)?));
    }
    let is_missing = |(table, index): &&(&str, &str)| {
        !known.contains(&((*table).to_owned(), (*index).to_owned()))
    };
    let missing =
        INDEXES.iter().filter(is_missing).map(|(table, index)| format!("{table}.{index}"));
    let missing: Vec<String> = missing.collect();
    let message = || {
        format!(
            "{}: missing, so statements fail or scan whole tables; create them",
            missing.join(", ")
        )
    };
    Ok((!missing.is_empty()).then(|| Risk { name: "indexes", message: message() }))
}

pub(in super::super) async fn unreadable(
    tx: &mut Transaction<'_>,
) -> Result<Option<Risk>, VerbError> {
    let rows = tx.rows(include_str!("../sql/unreadable.sql"), Vec::new()).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (job, reason) = (JobId::from_bytes(bytes(first, 0)?), get::<String>(first, 1)?);
    Ok(Some(unreadable_jobs(rows.len() as u64, &job.to_string(), &reason)))
}
