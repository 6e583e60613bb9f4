//! Finds server settings and conditions that weaken the store's guarantees.

use super::super::error::VerbError;
use super::super::session::Session;
use super::super::statements::RISKS;
use rewheel_core::store::Risk;

/// A transaction that has been open for this long prevents vacuum from removing dead rows.
const OLD_TRANSACTION_SECONDS: i64 = 3_600;

/// Indexes whose absence makes queries scan whole tables.
const INDEXES: [&str; 28] = [
    "jobs_due",
    "jobs_held",
    "jobs_wanted",
    "jobs_deadline",
    "jobs_paused",
    "dead_lane",
    "dead_unannounced",
    "finished_expires",
    "attempts_job",
    "keys_expires",
    "audit_job",
    "audit_submit",
    "idempotency_ends",
    "kinds_changed",
    "lanes_tenant",
    "results_expires",
    "jobs_parent",
    "dead_parent",
    "finished_parent",
    "jobs_blocked",
    "finished_group",
    "group_checks_xact",
    "group_members_live",
    "group_members_dead",
    "group_members_key",
    "finished_bin_0_expires",
    "finished_bin_0_parent",
    "finished_bin_0_group",
];

pub(in super::super) async fn risks(session: &Session<'_>) -> Result<Vec<Risk>, VerbError> {
    let row = session.one(&RISKS, &[&INDEXES.as_slice()]).await?;
    let (fsync, pages, commit): (&str, &str, &str) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let mut risks = Vec::new();
    let mut add = |name, message: String| risks.push(Risk { name, message });
    if fsync != "on" {
        add(
            "fsync",
            "off: a crash of the database machine may corrupt the database; turn it on".to_owned(),
        );
    }
    if pages != "on" {
        add("full_page_writes", "off: a crash may leave torn pages; turn it on".to_owned());
    }
    if commit == "off" {
        let message = "off: a crash of PostgreSQL may lose the last acknowledged jobs; set it to `on` for this user or database";
        add("synchronous_commit", message.to_owned());
    }
    if commit == "local" && !row.try_get::<_, &str>(8)?.is_empty() {
        let message = "local: commits do not wait for the synchronous standby, so a failover may lose the last acknowledged jobs; set it to `on` for this user or database";
        add("synchronous_commit", message.to_owned());
    }
    let age: i64 = row.try_get(3)?;
    if age > OLD_TRANSACTION_SECONDS {
        let message = format!(
            "a transaction has been open for {} min and blocks vacuum; find it in pg_stat_activity",
            age / 60
        );
        add("old_transaction", message);
    }
    let slots: i64 = row.try_get(4)?;
    if slots > 0 {
        let message = format!(
            "{slots} inactive replication slots retain WAL and block vacuum; drop these slots"
        );
        add("replication_slots", message);
    }
    let indexes: &str = row.try_get(5)?;
    if !indexes.is_empty() {
        let message = format!(
            "{indexes}: missing or invalid, so queries scan whole tables; REINDEX invalid indexes, and create missing indexes"
        );
        add("indexes", message);
    }
    if row.try_get::<_, &str>(6)? != "on" {
        add("autovacuum", "off: claims become slower over time; turn it on".to_owned());
    }
    let gone: i64 = row.try_get(7)?;
    if gone > 0 {
        let message = format!(
            "{gone} dead rows are not vacuumed, so claims become slower: autovacuum is blocked or too slow; see pg_stat_activity for old transactions"
        );
        add("dead_rows", message);
    }
    risks.extend(super::unreadable::unreadable(session).await?);
    risks.extend(super::forgotten::forgotten(session).await?);
    risks.extend(super::bins::stuck(session).await?);
    Ok(risks)
}
