//! PostgreSQL: conflicts of two real transactions, connections that break, fences in a table.

use crate::net::{Fault, Proxy};
use rewheel::axum::fence_sql;
use rewheel::database::postgres::retry_transaction;
use rewheel::database::{CONFLICT, TransactionError, connect_with_retry};
use rewheel::{Category, Class, Classify, GiveUpReason, Random, Retry, Verdict, millis, seconds};
use std::net::ToSocketAddrs;
use tokio::task::JoinSet;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error, IsolationLevel, NoTls};

fn config() -> Config {
    let url = std::env::var("REWHEEL_TEST_POSTGRES").expect(
        "REWHEEL_TEST_POSTGRES names no server: run `cargo xtask test`, or see `cargo xtask services up`",
    );
    url.parse().unwrap()
}

/// Connections, and the tasks that drive them.
struct Connections {
    tasks: JoinSet<()>,
    schema: String,
}

impl Connections {
    fn new() -> Connections {
        let schema = format!("test_{:016x}", Random::thread().next());
        Connections { tasks: JoinSet::new(), schema }
    }

    async fn open(&mut self, config: &Config) -> Result<Client, Error> {
        let mut config = config.clone();
        config.options(format!("-c search_path={}", self.schema));
        let (client, connection) = config.connect(NoTls).await?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(client)
    }

    /// Creates the schema of the test, with accounts 1 and 2.
    async fn create(&mut self) -> Client {
        let client = self.open(&config()).await.unwrap();
        let schema = &self.schema;
        let create = format!(
            "CREATE SCHEMA {schema};
             CREATE TABLE accounts (id bigint PRIMARY KEY, cents bigint NOT NULL);
             INSERT INTO accounts VALUES (1, 1000), (2, 1000);"
        );
        client.batch_execute(&create).await.unwrap();
        client
    }

    async fn drop_schema(&self, client: &Client) {
        client.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.schema)).await.unwrap();
    }
}

async fn sum(client: &Client) -> i64 {
    let sum = "SELECT sum(cents)::bigint FROM accounts";
    client.query_one(sum, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn serialization_failures_are_repeated_until_all_work_is_done() {
    let mut connections = Connections::new();
    let admin = connections.create().await;
    let mut work = JoinSet::new();
    for _ in 0..4 {
        let mut client = connections.open(&config()).await.unwrap();
        work.spawn(async move {
            let policy = CONFLICT.attempts_max(1_000).deadline(seconds(300));
            for _ in 0..10 {
                let isolation = IsolationLevel::Serializable;
                let work = retry_transaction(&mut client, isolation, policy, |tx| {
                    Box::pin(async move {
                        let read = "SELECT cents FROM accounts WHERE id = 1";
                        let cents: i64 = tx.query_one(read, &[]).await?.get(0);
                        let write = "UPDATE accounts SET cents = $1 WHERE id = 1";
                        tx.execute(write, &[&(cents + 1)]).await
                    })
                });
                work.await.unwrap();
            }
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    assert_eq!(sum(&admin).await, 2_040, "a booking was lost");
    connections.drop_schema(&admin).await;
}

#[tokio::test]
async fn a_deadlock_is_repeated() {
    let mut connections = Connections::new();
    let admin = connections.create().await;
    let mut work = JoinSet::new();
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    for (first, second) in [(1_i64, 2_i64), (2, 1)] {
        let mut client = connections.open(&config()).await.unwrap();
        let barrier = std::sync::Arc::clone(&barrier);
        work.spawn(async move {
            let (isolation, mut runs) = (IsolationLevel::ReadCommitted, 0);
            let work = retry_transaction(&mut client, isolation, CONFLICT, |tx| {
                runs += 1;
                let both_have_a_row = (runs == 1).then(|| std::sync::Arc::clone(&barrier));
                Box::pin(async move {
                    let write = "UPDATE accounts SET cents = cents + 1 WHERE id = $1";
                    tx.execute(write, &[&first]).await?;
                    if let Some(barrier) = both_have_a_row {
                        barrier.wait().await;
                    }
                    tx.execute(write, &[&second]).await
                })
            });
            work.await.unwrap();
            runs
        });
    }
    let runs: Vec<i32> = work.join_all().await;
    assert_eq!((runs.iter().sum::<i32>(), sum(&admin).await), (3, 2_004));
    connections.drop_schema(&admin).await;
}

#[tokio::test]
async fn a_constraint_is_not_repeated_and_writes_nothing() {
    let mut connections = Connections::new();
    let mut client = connections.create().await;
    let isolation = IsolationLevel::ReadCommitted;
    let error = retry_transaction(&mut client, isolation, CONFLICT, |tx| {
        Box::pin(async move {
            tx.execute("UPDATE accounts SET cents = 0", &[]).await?;
            tx.execute("INSERT INTO accounts VALUES (1, 0)", &[]).await
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    let last = error.into_last().unwrap();
    assert_eq!(last.classify(), Class::stop(Category::Rejected).with_code("23505"));
    assert_eq!(sum(&client).await, 2_000);
    connections.drop_schema(&client).await;
}

/// Returns the settings of a connection through a proxy.
async fn through_proxy(script: &[Fault]) -> (Config, Proxy) {
    let mut config = config();
    let Some(Host::Tcp(host)) = config.get_hosts().first() else { panic!("the URL names no host") };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let target = (host.as_str(), port).to_socket_addrs().unwrap().next().unwrap();
    let proxy = Proxy::to(target, script).await;
    let mut changed = Config::new();
    changed.host("127.0.0.1").port(proxy.address.port());
    config.get_user().map(|user| changed.user(user));
    config.get_password().map(|password| changed.password(password));
    config.get_dbname().map(|name| changed.dbname(name));
    config = changed;
    (config, proxy)
}

#[tokio::test]
async fn connecting_survives_connections_that_break() {
    let faults = [Fault::Reset, Fault::CutAfter(0), Fault::CutAfter(5)];
    let (config, proxy) = through_proxy(&faults).await;
    let policy = Retry::fixed(millis(1)).attempts_max(9);
    let (_client, _connection) =
        connect_with_retry(policy, || config.connect(NoTls)).await.unwrap();
    assert_eq!(proxy.connections(), 4);
}

#[tokio::test]
async fn a_connection_that_is_killed_before_the_commit_is_lost() {
    let mut connections = Connections::new();
    let admin = connections.create().await;
    let mut client = connections.open(&config()).await.unwrap();
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let isolation = IsolationLevel::ReadCommitted;
    let killer = std::sync::Arc::new(connections.open(&config()).await.unwrap());
    let error = retry_transaction(&mut client, isolation, CONFLICT, |tx| {
        let killer = std::sync::Arc::clone(&killer);
        Box::pin(async move {
            tx.execute("UPDATE accounts SET cents = 0", &[]).await?;
            killer.execute("SELECT pg_terminate_backend($1)", &[&pid]).await?;
            // The server ends the session at the latest with this statement.
            tx.query_one("SELECT pg_sleep(60)", &[]).await
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.attempts(), 1);
    let last = error.into_last().unwrap();
    assert!(matches!(last, TransactionError::ConnectionLost(_)), "{last:?}");
    assert_eq!(last.classify().verdict, Verdict::Stop);
    assert_eq!(sum(&admin).await, 2_000);
    connections.drop_schema(&admin).await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_not_repeated_and_may_have_been_done() {
    let mut connections = Connections::new();
    let admin = connections.create().await;
    let (config, proxy) = through_proxy(&[Fault::Swallow]).await;
    let mut client = connections.open(&config).await.unwrap();
    let swallow = std::sync::Arc::new(proxy.swallow());
    let error = retry_transaction(&mut client, IsolationLevel::ReadCommitted, CONFLICT, |tx| {
        let swallow = std::sync::Arc::clone(&swallow);
        Box::pin(async move {
            tx.execute("UPDATE accounts SET cents = cents + 1", &[]).await?;
            swallow();
            Ok::<_, Error>(())
        })
    });
    let error = error.await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    let last = error.into_last().unwrap();
    assert!(matches!(last, TransactionError::CommitUnknown(_)), "{last:?}");
    assert_eq!(sum(&admin).await, 2_002, "the server has committed");
    connections.drop_schema(&admin).await;
}

#[tokio::test]
async fn fences_in_a_table_admit_no_older_attempt() {
    let mut connections = Connections::new();
    let client = connections.create().await;
    client.batch_execute(fence_sql::CREATE).await.unwrap();
    for (job, fence, rows) in [("a", 2, 1), ("a", 1, 0), ("a", 2, 1), ("b", 1, 1), ("a", 3, 1)] {
        let fence: i64 = fence;
        let admitted = client.execute(fence_sql::ADMIT, &[&job, &fence]).await.unwrap();
        assert_eq!(admitted, rows, "{job} {fence}");
    }
    assert_eq!(client.execute(fence_sql::PRUNE, &[&3_600.0_f64]).await.unwrap(), 0);
    assert_eq!(client.execute(fence_sql::PRUNE, &[&-3_600.0_f64]).await.unwrap(), 2);
    connections.drop_schema(&client).await;
}
