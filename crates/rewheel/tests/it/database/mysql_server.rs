//! MariaDB or MySQL: conflicts of two real transactions, connections that break.

use crate::net::{Fault, Proxy};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder, TxOpts};
use rewheel::database::mysql::retry_transaction;
use rewheel::database::{CONFLICT, TransactionError, connect_with_retry};
use rewheel::{Category, Class, Classify, GiveUpReason, Random, Retry, Verdict, millis};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use tokio::sync::{Barrier, Mutex};
use tokio::task::JoinSet;

fn server() -> Opts {
    let url = std::env::var("REWHEEL_TEST_MYSQL").expect(
        "REWHEEL_TEST_MYSQL names no server: run `cargo xtask test`, or see `cargo xtask services up`",
    );
    Opts::from_url(&url).unwrap()
}

/// A database for one test, with accounts 1 and 2.
struct Bank {
    admin: Conn,
    name: String,
}

impl Bank {
    async fn create() -> Bank {
        let mut admin = Conn::new(server()).await.unwrap();
        let name = format!("test_{:016x}", Random::thread().next());
        admin.query_drop(format!("CREATE DATABASE {name}")).await.unwrap();
        admin.query_drop(format!("USE {name}")).await.unwrap();
        let table =
            "CREATE TABLE accounts (id bigint PRIMARY KEY, cents bigint NOT NULL) ENGINE = InnoDB";
        admin.query_drop(table).await.unwrap();
        admin.query_drop("INSERT INTO accounts VALUES (1, 1000), (2, 1000)").await.unwrap();
        Bank { admin, name }
    }

    async fn open(&self) -> Conn {
        Conn::new(OptsBuilder::from_opts(server()).db_name(Some(&self.name))).await.unwrap()
    }

    async fn sum(&mut self) -> i64 {
        let sum = "SELECT CAST(SUM(cents) AS SIGNED) FROM accounts";
        self.admin.query_first(sum).await.unwrap().unwrap()
    }

    async fn drop_it(mut self) {
        self.admin.query_drop(format!("DROP DATABASE {}", self.name)).await.unwrap();
    }
}

const ADD: &str = "UPDATE accounts SET cents = cents + 1 WHERE id = ?";

#[tokio::test]
async fn a_deadlock_is_repeated() {
    let mut bank = Bank::create().await;
    let mut work = JoinSet::new();
    let barrier = Arc::new(Barrier::new(2));
    for (first, second) in [(1_i64, 2_i64), (2, 1)] {
        let (mut connection, barrier) = (bank.open().await, Arc::clone(&barrier));
        work.spawn(async move {
            let (options, mut runs) = (TxOpts::default(), 0);
            let work = retry_transaction(&mut connection, &options, CONFLICT, |tx| {
                runs += 1;
                let both_have_a_row = (runs == 1).then(|| Arc::clone(&barrier));
                Box::pin(async move {
                    tx.exec_drop(ADD, (first,)).await?;
                    if let Some(barrier) = both_have_a_row {
                        barrier.wait().await;
                    }
                    tx.exec_drop(ADD, (second,)).await
                })
            });
            work.await.unwrap();
            runs
        });
    }
    let runs: Vec<i32> = work.join_all().await;
    assert_eq!((runs.iter().sum::<i32>(), bank.sum().await), (3, 2_004));
    bank.drop_it().await;
}

#[tokio::test]
async fn a_lock_that_is_not_free_in_time_is_waited_for_again() {
    let mut bank = Bank::create().await;
    let mut connection = bank.open().await;
    // MariaDB does not wait at all then, MySQL a second.
    connection.query_drop("SET SESSION innodb_lock_wait_timeout = 0").await.unwrap();
    let mut holder = bank.open().await;
    holder.query_drop("BEGIN").await.unwrap();
    holder.exec_drop(ADD, (1,)).await.unwrap();
    let (holder, mut runs) = (Arc::new(Mutex::new(holder)), 0);
    let options = TxOpts::default();
    let work = retry_transaction(&mut connection, &options, CONFLICT, |tx| {
        runs += 1;
        let releases = (runs == 2).then(|| Arc::clone(&holder));
        Box::pin(async move {
            tx.exec_drop(ADD, (2,)).await?;
            if let Some(holder) = releases {
                holder.lock().await.query_drop("COMMIT").await?;
            }
            tx.exec_drop(ADD, (1,)).await
        })
    });
    work.await.unwrap();
    assert_eq!((runs, bank.sum().await), (2, 2_003), "the first run was rolled back as a whole");
    bank.drop_it().await;
}

#[tokio::test]
async fn a_constraint_is_not_repeated_and_writes_nothing() {
    let mut bank = Bank::create().await;
    let mut connection = bank.open().await;
    let options = TxOpts::default();
    let error = retry_transaction(&mut connection, &options, CONFLICT, |tx| {
        Box::pin(async move {
            tx.query_drop("UPDATE accounts SET cents = 0").await?;
            tx.query_drop("INSERT INTO accounts VALUES (1, 0)").await
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    let class = error.into_last().unwrap().classify();
    assert_eq!(class, Class::stop(Category::Rejected).with_code(1062_u16));
    assert_eq!(bank.sum().await, 2_000);
    bank.drop_it().await;
}

#[tokio::test]
async fn a_connection_that_is_killed_before_the_commit_is_lost() {
    let mut bank = Bank::create().await;
    let mut connection = bank.open().await;
    let (id, killer) = (connection.id(), Arc::new(Mutex::new(bank.open().await)));
    let options = TxOpts::default();
    let error = retry_transaction(&mut connection, &options, CONFLICT, |tx| {
        let killer = Arc::clone(&killer);
        Box::pin(async move {
            tx.query_drop("UPDATE accounts SET cents = 0").await?;
            killer.lock().await.query_drop(format!("KILL CONNECTION {id}")).await?;
            // The server ends the session at the latest with this statement.
            tx.query_drop("SELECT SLEEP(60)").await
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.attempts(), 1);
    let last = error.into_last().unwrap();
    assert!(matches!(last, TransactionError::ConnectionLost(_)), "{last:?}");
    assert_eq!(last.classify().verdict, Verdict::Stop);
    assert_eq!(bank.sum().await, 2_000);
    bank.drop_it().await;
}

/// Returns the settings of a connection to this database through a proxy.
async fn through_proxy(bank: &Bank, script: &[Fault]) -> (Opts, Proxy) {
    let opts = server();
    let target = (opts.ip_or_hostname(), opts.tcp_port()).to_socket_addrs().unwrap();
    let proxy = Proxy::to(target.into_iter().next().unwrap(), script).await;
    let through = OptsBuilder::from_opts(opts).prefer_socket(false).db_name(Some(&bank.name));
    let through = through.ip_or_hostname("127.0.0.1").tcp_port(proxy.address.port());
    (through.into(), proxy)
}

#[tokio::test]
async fn connecting_survives_connections_that_break() {
    let bank = Bank::create().await;
    let (opts, mut proxy) =
        through_proxy(&bank, &[Fault::Reset, Fault::Reset, Fault::Swallow]).await;
    let policy = Retry::fixed(millis(1)).attempts_max(9);
    let connect = || Conn::new(opts.clone());
    let mut connection = connect_with_retry(policy, connect).await.unwrap();
    assert_eq!(connection.query_first::<i64, _>("SELECT 7").await.unwrap(), Some(7));
    proxy.wait_for(3).await;
    assert_eq!(proxy.connections(), 3);
    bank.drop_it().await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_not_repeated_and_may_have_been_done() {
    let mut bank = Bank::create().await;
    let (opts, proxy) = through_proxy(&bank, &[Fault::Swallow]).await;
    let mut connection = Conn::new(opts).await.unwrap();
    let swallow = Arc::new(proxy.swallow());
    let options = TxOpts::default();
    let error = retry_transaction(&mut connection, &options, CONFLICT, |tx| {
        let swallow = Arc::clone(&swallow);
        Box::pin(async move {
            tx.query_drop("UPDATE accounts SET cents = cents + 1").await?;
            swallow();
            Ok::<_, Error>(())
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    let last = error.into_last().unwrap();
    assert!(matches!(last, TransactionError::CommitUnknown(_)), "{last:?}");
    assert_eq!(bank.sum().await, 2_002, "the server has committed");
    bank.drop_it().await;
}
