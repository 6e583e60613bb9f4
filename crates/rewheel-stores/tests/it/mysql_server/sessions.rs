//! Tests that a store sets what its sessions need, whatever the server's defaults are.

use super::node::Node;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rewheel_core::store::{Claim, ClockOffset, Settled, Settlement, StoreError};
use rewheel_core::{Fence, Format, HolderId, NewHolder, Role, Timestamp};
use rewheel_stores::MysqlStore;
use rewheel_testkit::{Database, Subject, lane, seconds};
use std::sync::Arc;
use std::time::Duration;

/// More than the number of values from which MariaDB turns a list into a join that scans the table.
const MANY: usize = 1_001;

/// What the sessions of a user without privileges begin with.
const DEFAULTS: &str = "SET SESSION autocommit = 0, completion_type = 'CHAIN', sql_select_limit = 1, sql_mode = '', \
     time_zone = '+05:30', tx_isolation = 'REPEATABLE-READ', lock_wait_timeout = 1";

/// A server whose new sessions begin with unsuitable settings. Dropping it restores its setting.
///
/// `init_connect` is for users without privileges, and the other tests have some. A new server lets every user work in databases whose names
/// begin with `test_`.
struct Hostile<'d> {
    database: &'d Database,
    user: String,
    /// Holds a named lock: the tests that need the setting run one after the other.
    alone: Conn,
    before: String,
}

/// The longest wait for the other tests of this file.
const ALONE_SECONDS: u32 = 300;

impl<'d> Hostile<'d> {
    async fn start(database: &'d Database) -> Hostile<'d> {
        let mut alone = database.connect().await;
        let lock = format!("SELECT GET_LOCK('rewheel test of init_connect', {ALONE_SECONDS})");
        let locked: Option<u8> = alone.query_first(lock).await.expect("an answer");
        assert_eq!(locked, Some(1), "another test has the lock");
        let before: Option<String> =
            alone.query_first("SELECT @@GLOBAL.init_connect").await.expect("a setting");
        let name = database.name();
        let user = format!("u{}", &name[name.len() - 16..]);
        for sql in [
            format!("SET GLOBAL init_connect = {}", quoted(DEFAULTS)),
            format!("CREATE USER {user}@'%' IDENTIFIED BY 'secret'"),
        ] {
            alone.query_drop(sql).await.expect("a user");
        }
        Hostile { database, user, alone, before: before.unwrap_or_default() }
    }

    /// Opens a store.
    async fn open(&self) -> Subject {
        let (_, address) = self.database.url().split_once('@').expect("the URL names a user");
        let store = MysqlStore::open(&format!("mysql://{}:secret@{address}", self.user)).await;
        let store = store.expect("a fresh database opens");
        Subject::new(Arc::new(store), ClockOffset::default())
    }
}

impl Drop for Hostile<'_> {
    fn drop(&mut self) {
        // Also after a failed test. The lock ends with its connection, after this.
        let (user, before) = (&self.user, quoted(&self.before));
        let restore = format!("SET GLOBAL init_connect = {before}; DROP USER IF EXISTS {user}@'%'");
        self.database.run(restore);
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[tokio::test]
async fn a_store_does_not_depend_on_the_defaults_of_the_server() {
    let database = Database::fresh();
    let server = Hostile::start(&database).await;
    let subject = server.open().await;
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 3)).await;
    let holder = subject.holder().await;
    let other = subject.holder().await;
    assert_eq!(subject.claim(holder, &["charge"], 10).await.len(), 3);
    // A statement without a limit of its own.
    assert_eq!(subject.store.holders().await.expect("holders").len(), 2);

    // Single statements are committed: the epoch that a restore begins is seen by another process.
    subject.store.renew(holder).await.expect("a heartbeat");
    subject.store.renew(other).await.expect("a heartbeat");
    let mut connection = database.connect().await;
    connection.query_drop("UPDATE rewheel_renewals SET renewals = 0").await.expect("older data");
    subject.store.renew(holder).await.expect("a heartbeat");
    let node = Node::start(&database).await;
    let (_, lease) = node.leased("charge").await;
    assert_eq!(lease.fence, Fence::new((1 << 32) + 1));
}

/// Trap 13 of the prototype: local times repeat, or are hours away.
#[tokio::test]
async fn the_time_does_not_depend_on_the_sessions_time_zone() {
    let database = Database::fresh();
    let server = Hostile::start(&database).await;
    let subject = server.open().await;
    let mut connection = database.connect().await;
    let sql = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)";
    let before: Option<i64> = connection.query_first(sql).await.expect("a time");
    let now = subject.store.now().await.expect("a time").as_millis();
    let after: Option<i64> = connection.query_first(sql).await.expect("a time");
    assert!(before <= Some(now) && Some(now) <= after, "{before:?} {now} {after:?}");
}

/// Trap 14 of the prototype: a server that is not strict cuts values off.
#[tokio::test]
async fn a_value_that_does_not_fit_is_rejected_and_not_cut_off() {
    let database = Database::fresh();
    let server = Hostile::start(&database).await;
    let subject = server.open().await;
    let holder = NewHolder {
        id: HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random),
        name: "n".repeat(300),
        role: Role::Engine,
        lease_ttl: seconds(10),
        format: Format::CURRENT,
    };
    let joined = subject.store.join(&holder).await;
    assert!(matches!(joined, Err(StoreError::Rejected(_))), "{joined:?}");
    assert!(subject.store.holders().await.expect("holders").is_empty());
}

/// Trap 11 of the prototype. A scan would wait for the row of another transaction.
#[tokio::test]
async fn a_long_list_locks_only_its_own_rows() {
    let database = Database::fresh();
    let server = Hostile::start(&database).await;
    let subject = server.open().await;
    subject.kinds(&["charge"]).await;
    for _ in 0..2 {
        subject.insert(&subject.jobs("charge", MANY)).await;
    }
    let holder = subject.holder().await;
    let mut leases = Vec::new();
    while leases.len() <= MANY {
        let visit = [subject.visit(lane("charge"), MANY)];
        let claim = Claim { holder, visits: &visit, horizon: Duration::ZERO, limit: MANY };
        let leased = subject.store.claim(&claim).await.expect("a claim");
        leases.extend(leased.iter().map(|leased| leased.lease()));
    }
    let mut other = database.connect().await;
    other.query_drop("START TRANSACTION").await.expect("a transaction");
    let lock = "SELECT 1 FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? FOR UPDATE";
    let first = (leases[0].job.to_bytes().to_vec(),);
    assert!(other.exec_first::<u8, _, _>(lock, first).await.expect("a lock").is_some());
    let settlements: Vec<_> =
        leases[1..=MANY].iter().map(|lease| Settlement::succeed(*lease)).collect();
    let settled = subject.store.settle(holder, &settlements).await.expect("settled");
    assert!(settled.iter().all(|settled| matches!(settled, Settled::Applied(_))));
}

#[tokio::test]
async fn doctor_compares_the_limit_of_prepared_statements_with_the_fleet() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let risk = async || {
        let risks = node.store.risks().await.expect("risks");
        risks.into_iter().find(|risk| risk.name == "max_prepared_stmt_count")
    };
    let mut server = database.connect().await;
    let limit = "SELECT @@GLOBAL.max_prepared_stmt_count";
    let limit: Option<usize> = server.query_first(limit).await.expect("a number");
    // Eight connections for work and two for heartbeats, with 64 statements each.
    let fitting = limit.expect("a row") / (10 * 64);
    for _ in 0..fitting {
        node.holder().await;
    }
    assert_eq!(risk().await, None);
    node.holder().await;
    let message = risk().await.expect("a risk").message;
    assert!(message.contains(&format!("{} nodes", fitting + 1)), "{message}");
}

/// The setting is the server's, and other tests use the same server.
#[tokio::test]
async fn the_tests_of_sessions_leave_the_server_as_it_was() {
    let database = Database::fresh();
    let setting = async || {
        let mut connection = database.connect().await;
        let found = connection.query_first("SELECT @@GLOBAL.init_connect").await;
        found.expect("a setting").unwrap_or_else(String::new)
    };
    let mut hostile = Hostile::start(&database).await;
    assert_eq!(setting().await, DEFAULTS);
    let before = hostile.before.clone();
    assert_ne!(before, DEFAULTS, "an earlier test has left it");
    // The lock outlives the drop: no other test may change the setting in between.
    let alone = std::mem::replace(&mut hostile.alone, database.connect().await);
    drop(hostile);
    assert_eq!(setting().await, before);
    drop(alone);
}
