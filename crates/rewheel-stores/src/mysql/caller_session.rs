//! Checks the session of a caller's transaction.

use super::error::{Stage, judge};
use super::link::Link;
use super::row::get;
use rewheel_core::store::{StoreError, StoreResult};

/// Reads the settings of a caller's session that decide whether its writes are correct. The two servers have different names for the level.
const SESSION: &str = "SHOW SESSION VARIABLES \
     WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', 'sql_mode')";

/// Refuses a session in which a verb would decide by old rows, or lock the gaps between rows, or truncate values.
///
/// A level that is set for one transaction only (`SET TRANSACTION` without `SESSION`) cannot be seen. That is why the level of the session is
/// required, and why a read that decides a write locks what it reads.
pub(super) async fn check_session(link: &mut dyn Link) -> StoreResult<()> {
    let rows = link.query(SESSION).await.map_err(|error| judge(error.into(), Stage::Open))?.rows;
    for row in &rows {
        let read = |at| get::<String>(row, at).map_err(|trouble| judge(trouble, Stage::Open));
        let (name, value) = (read(0)?, read(1)?);
        if name.ends_with("_isolation") && value != "READ-COMMITTED" {
            let what = format!(
                "the session of this transaction has the isolation level {value}: run `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED` \
                 on the connection before the transaction begins"
            );
            return Err(StoreError::Rejected(what.into()));
        }
        if name == "sql_mode" && !value.contains("STRICT_") {
            let what = format!(
                "the session of this transaction truncates values that are too long (its sql_mode is '{value}'): add STRICT_TRANS_TABLES to \
                 its sql_mode before the transaction begins"
            );
            return Err(StoreError::Rejected(what.into()));
        }
    }
    Ok(())
}
