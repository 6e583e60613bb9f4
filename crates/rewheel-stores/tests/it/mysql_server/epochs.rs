//! A failover or restore begins an epoch: fences are larger than all before, and every node notices.

use mysql_async::prelude::Queryable;
use rewheel::Random;
use rewheel_core::store::{ClockOffset, StoreChange, StoreError};
use rewheel_core::{Fence, Limits};
use rewheel_stores::MysqlStore;
use rewheel_testkit::{Database, Subject, seconds};
use std::sync::Arc;

async fn open(database: &Database) -> Subject {
    let store = MysqlStore::open(database.url()).await.expect("a database opens");
    let mut subject = Subject::new(Arc::new(store), ClockOffset::default());
    // Several nodes must not choose the same ids.
    subject.random = Random::thread();
    subject
}

/// The first fence of an epoch.
const fn first_fence(epoch: u64) -> Fence {
    Fence::new((epoch << 32) + 1)
}

#[tokio::test]
async fn data_that_moves_to_another_server_gets_larger_fences_on_every_node() {
    let database = Database::fresh();
    let old = open(&database).await;
    old.kinds(&["charge"]).await;
    let (_, lease) = old.leased("charge").await;
    assert_eq!(lease.fence, first_fence(0));
    // As if the data had been copied from there.
    let mut connection = database.connect().await;
    connection.query_drop("UPDATE rewheel_epochs SET server = 'another'").await.unwrap();
    let mut watch = old.store.watch();
    let new = open(&database).await;
    let (_, lease) = new.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
    let (_, lease) = old.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
    assert_eq!(watch.changed().await, StoreChange::Replaced);
    // The next connections find the server that they know.
    let again = open(&database).await;
    let (_, lease) = again.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
}

#[tokio::test]
async fn a_heartbeat_that_goes_back_shows_that_older_data_was_restored() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    for _ in 0..3 {
        subject.store.renew(holder).await.unwrap();
    }
    let mut connection = database.connect().await;
    connection.query_drop("UPDATE rewheel_renewals SET renewals = 1").await.unwrap();
    subject.store.renew(holder).await.unwrap();
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
    subject.store.renew(holder).await.unwrap();
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
}

/// The backup is older than the holder: there is no heartbeat that could go back.
#[tokio::test]
async fn a_holder_that_is_gone_shows_that_older_data_was_restored() {
    let database = Database::fresh();
    let subject = open(&database).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.store.renew(holder).await.unwrap();
    let mut connection = database.connect().await;
    connection.query_drop("DELETE FROM rewheel_holders").await.unwrap();
    let mut watch = subject.store.watch();
    let renewed = subject.store.renew(holder).await;
    assert!(matches!(renewed, Err(StoreError::HolderDead(_))), "{renewed:?}");
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
    assert_eq!(watch.changed().await, StoreChange::Replaced);
    // It is noticed once.
    let renewed = subject.store.renew(holder).await;
    assert!(matches!(renewed, Err(StoreError::HolderDead(_))), "{renewed:?}");
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(1));
}

/// A holder that another one expired is dead, but its row shows that the data is not older than it.
#[tokio::test]
async fn a_holder_that_was_expired_begins_no_epoch() {
    let database = Database::fresh();
    let subject = open(&database).await;
    let holder = subject.holder().await;
    subject.store.renew(holder).await.unwrap();
    subject.store.leave(holder).await.unwrap();
    let renewed = subject.store.renew(holder).await;
    assert!(matches!(renewed, Err(StoreError::HolderDead(_))), "{renewed:?}");
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(0));
}

/// Its process was suspended for so long that the store has deleted it, as it deletes every holder a day after its death.
#[tokio::test]
async fn a_holder_that_was_pruned_begins_no_epoch() {
    let database = Database::fresh();
    let subject = super::support::open(&database).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.store.renew(holder).await.unwrap();
    subject.store.leave(holder).await.unwrap();
    subject.clock.advance(Limits::DEAD_HOLDERS_KEPT + seconds(60));
    assert_eq!(subject.prune(10).await.holders, 1);
    let renewed = subject.store.renew(holder).await;
    assert!(matches!(renewed, Err(StoreError::HolderDead(_))), "{renewed:?}");
    let (_, lease) = subject.leased("charge").await;
    assert_eq!(lease.fence, first_fence(0));
}
