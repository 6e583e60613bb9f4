//! A node with a store of its own, and a user's connection beside it.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Transaction, TxOpts};
use rewheel::Random;
use rewheel_core::store::ClockOffset;
use rewheel_stores::{MysqlOptions, MysqlStore};
use rewheel_testkit::{Database, Subject};
use std::ops::Deref;
use std::sync::Arc;

/// A node. Several of them may share a database.
pub(super) struct Node {
    pub(super) mysql: MysqlStore,
    subject: Subject,
}

impl Node {
    pub(super) async fn start(database: &Database) -> Node {
        let clock = ClockOffset::default();
        let mut options = MysqlOptions::parse(database.url()).expect("a URL");
        options.clock = clock.clone();
        let mysql = MysqlStore::open_with(options).await.expect("a database opens");
        let mut subject = Subject::new(Arc::new(mysql.clone()), clock);
        // Several nodes must not choose the same ids.
        subject.random = Random::thread();
        Node { mysql, subject }
    }
}

impl Deref for Node {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// Returns a connection of a user whose transactions the store accepts.
pub(super) async fn user(database: &Database) -> Conn {
    let mut user = database.connect().await;
    let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
    user.query_drop(level).await.expect("a level");
    user
}

pub(super) async fn begin(user: &mut Conn) -> Transaction<'_> {
    user.start_transaction(TxOpts::new()).await.expect("a transaction")
}
