//! Tests the idempotency keys that a killed process leaves behind, on SQLite and PostgreSQL.

use rewheel::idempotency::{
    AfterCrash, Answered, Fingerprint, Idempotency, IdempotencyError, IdempotencyKey,
    IdempotencyStore,
};
use rewheel_core::store::ClockOffset;
use rewheel_stores::{SqliteOptions, SqliteStore};
use std::error::Error;
use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

type Tested = Result<(), Box<dyn Error>>;

/// Names what the process to be killed should do, and on which store; not set in the test itself.
const PART: &str = "REWHEEL_CRASH_PART";
const STORE: &str = "REWHEEL_CRASH_STORE";

const LEASE: Duration = Duration::from_secs(60);

fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey::new("crash", name).expect("a key")
}

fn charge() -> Fingerprint {
    Fingerprint::of(&[b"charge"])
}

async fn open(url: &str, clock: &ClockOffset) -> Arc<dyn IdempotencyStore> {
    #[cfg(feature = "test-postgres")]
    if url.starts_with("postgres") {
        return Arc::new(postgres::open(url, clock).await);
    }
    let mut options = SqliteOptions::default();
    options.clock = clock.clone();
    Arc::new(SqliteStore::open_with(url, options).await.expect("a file"))
}

#[expect(clippy::print_stdout, reason = "the test that waits for it reads it")]
fn say(line: &str) {
    println!("said {line}");
}

/// Not a test: the entry point of the other process, which runs until it is killed.
#[tokio::test]
async fn other_parts() -> Tested {
    let Ok(part) = std::env::var(PART) else { return Ok(()) };
    let url = std::env::var(STORE)?;
    let store = open(&url, &ClockOffset::default()).await;
    let idempotency = Idempotency::new(store).lease(LEASE);
    match part.as_str() {
        "in-the-middle" => {
            let work = |_| async {
                say("at work");
                pending::<Result<Vec<u8>, String>>().await
            };
            idempotency.run(key("k"), charge(), work).await?;
        }
        "after-the-answer" => {
            let work = |_| async { Ok::<_, String>(b"of the dead".to_vec()) };
            idempotency.run(key("k"), charge(), work).await?;
            say("answered");
        }
        #[cfg(feature = "test-postgres")]
        transaction => postgres::part(transaction, &url, &idempotency).await,
        #[cfg(not(feature = "test-postgres"))]
        other => return Err(format!("no such part: {other}").into()),
    }
    pending().await
}

/// Runs a part in another process, and kills it at its first output line.
fn kill(part: &str, url: &str) -> Tested {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", "idempotency_crash::other_parts", "--nocapture"])
        .env(PART, part)
        .env(STORE, url);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(child.stdout.take().ok_or("its output is a pipe")?);
    let said = output.lines().map_while(Result::ok).any(|line| line.contains("said "));
    child.kill()?;
    child.wait()?;
    assert!(said, "it ended unexpectedly");
    Ok(())
}

async fn ask(idempotency: &Idempotency) -> Result<Answered, IdempotencyError<String>> {
    let work = |_| async { Ok(b"of the living".to_vec()) };
    idempotency.run(key("k"), charge(), work).await
}

/// The key is in flight until its lease expires. Then the work runs again, or its outcome is
/// unknown.
async fn dies_in_the_middle(url: &str) -> Tested {
    kill("in-the-middle", url)?;
    let clock = ClockOffset::default();
    let idempotency = Idempotency::new(open(url, &clock).await);
    let refused = ask(&idempotency).await.expect_err("it is in flight");
    let IdempotencyError::InFlight { left } = refused else { panic!("{refused}") };
    assert!(left > LEASE / 2 && left <= LEASE, "{left:?}");
    clock.advance(LEASE);
    let careful = idempotency.clone().after_crash(AfterCrash::Unknown);
    let refused = ask(&careful).await.expect_err("the outcome is unknown");
    assert!(matches!(refused, IdempotencyError::Unknown), "{refused}");
    let answered = ask(&idempotency).await?;
    assert_eq!((answered.bytes.as_slice(), answered.replayed), (&b"of the living"[..], false));
    let again = ask(&careful).await?;
    assert_eq!((again.bytes.as_slice(), again.replayed), (&b"of the living"[..], true));
    Ok(())
}

/// A stored response stays.
async fn dies_after_the_answer(url: &str) -> Tested {
    kill("after-the-answer", url)?;
    let clock = ClockOffset::default();
    let idempotency = Idempotency::new(open(url, &clock).await);
    clock.advance(LEASE);
    let again = ask(&idempotency).await?;
    assert_eq!((again.bytes.as_slice(), again.replayed), (&b"of the dead"[..], true));
    Ok(())
}

#[tokio::test]
async fn a_process_that_dies_in_the_middle_on_sqlite() -> Tested {
    let folder = tempfile::tempdir()?;
    dies_in_the_middle(&folder.path().join("keys.db").display().to_string()).await
}

#[tokio::test]
async fn a_process_that_dies_after_its_answer_on_sqlite() -> Tested {
    let folder = tempfile::tempdir()?;
    dies_after_the_answer(&folder.path().join("keys.db").display().to_string()).await
}

#[cfg(feature = "test-postgres")]
mod postgres {
    use super::{LEASE, Tested, charge, key, kill, say};
    use rewheel::idempotency::Entry;
    use rewheel::idempotency::{Finished, Idempotency, Ticket};
    use rewheel_core::store::ClockOffset;
    use rewheel_stores::{PostgresOptions, PostgresStore};
    use rewheel_testkit::Schema;
    use std::future::pending;
    use tokio_postgres::{Client, NoTls, Transaction};

    pub(super) async fn open(url: &str, clock: &ClockOffset) -> PostgresStore {
        let mut options = PostgresOptions::parse(url).expect("a URL");
        (options.clock, options.pool_max) = (clock.clone(), 3);
        PostgresStore::open_with(options).await.expect("a schema")
    }

    async fn begin(idempotency: &Idempotency) -> Entry {
        idempotency.begin(key("k"), charge()).await.expect("a store")
    }

    /// Charges in its own transaction, together with the response.
    async fn charge_in(
        transaction: &Transaction<'_>,
        store: &PostgresStore,
        schema: &str,
        ticket: &Ticket,
    ) -> Finished {
        let sql = format!("INSERT INTO {schema}.charges VALUES (4200)");
        transaction.batch_execute(&sql).await.expect("a charge");
        store.finish_in(transaction, ticket, b"charged").await.expect("an answer")
    }

    /// Runs in the other process: charges, and is killed before or after the commit.
    pub(super) async fn part(part: &str, url: &str, idempotency: &Idempotency) {
        let store = open(url, &ClockOffset::default()).await;
        let Entry::Run(run) = begin(idempotency).await else { panic!("it is new") };
        let (server, schema) = url.split_once("?schema=").expect("a schema");
        let mut client = connect(server).await;
        let transaction = client.transaction().await.expect("a transaction");
        let finished = charge_in(&transaction, &store, schema, &run.ticket()).await;
        assert_eq!(finished, Finished::Stored);
        if part == "after-the-commit" {
            transaction.commit().await.expect("committed");
            say("committed");
            return pending().await;
        }
        say("charged");
        pending::<()>().await;
        drop(transaction);
    }

    #[expect(clippy::disallowed_methods, reason = "the connection of a test")]
    async fn connect(server: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.expect("a server");
        tokio::spawn(connection);
        client
    }

    async fn charges(schema: &Schema) -> i64 {
        let sql = format!("SELECT count(*) FROM {}.charges", schema.name());
        schema.connect().await.query_one(&sql, &[]).await.expect("a count").get(0)
    }

    async fn shop(clock: &ClockOffset) -> (Schema, PostgresStore) {
        let schema = Schema::fresh();
        let store = open(schema.url(), clock).await;
        let table = format!("CREATE TABLE {}.charges (cents integer)", schema.name());
        schema.connect().await.batch_execute(&table).await.expect("a table");
        (schema, store)
    }

    #[tokio::test]
    async fn a_process_that_dies_in_the_middle_on_postgres() -> Tested {
        let schema = Schema::fresh();
        super::dies_in_the_middle(schema.url()).await
    }

    #[tokio::test]
    async fn a_process_that_dies_after_its_answer_on_postgres() -> Tested {
        let schema = Schema::fresh();
        super::dies_after_the_answer(schema.url()).await
    }

    /// With the response in the transaction, the work is done exactly once, wherever the process is
    /// killed.
    #[tokio::test]
    async fn a_transaction_is_done_exactly_once() -> Tested {
        for (part, done_by_the_dead) in [("before-the-commit", 0), ("after-the-commit", 1)] {
            let clock = ClockOffset::default();
            let (schema, store) = shop(&clock).await;
            kill(part, schema.url())?;
            clock.advance(LEASE);
            let idempotency = Idempotency::new(store.clone());
            let entry = begin(&idempotency).await;
            assert_eq!(charges(&schema).await, done_by_the_dead, "{part}");
            match entry {
                Entry::Done(answer) => {
                    assert_eq!((&answer[..], part), (&b"charged"[..], "after-the-commit"))
                }
                Entry::Run(run) => {
                    assert_eq!(part, "before-the-commit");
                    let mut client = schema.connect().await;
                    let transaction = client.transaction().await?;
                    let finished =
                        charge_in(&transaction, &store, schema.name(), &run.ticket()).await;
                    assert_eq!(finished, Finished::Stored);
                    transaction.commit().await?;
                }
                other @ (Entry::InFlight { .. } | Entry::Unknown | Entry::Reused) => {
                    panic!("{other:?}")
                }
            }
            assert_eq!(charges(&schema).await, 1, "{part}");
            assert!(matches!(begin(&idempotency).await, Entry::Done(_)));
        }
        Ok(())
    }

    /// A takeover waits for a transaction that contains the response, and then gets it.
    #[tokio::test]
    async fn a_takeover_waits_for_a_transaction_that_answers() -> Tested {
        let clock = ClockOffset::default();
        let (schema, store) = shop(&clock).await;
        let idempotency = Idempotency::new(store.clone());
        let Entry::Run(slow) = begin(&idempotency).await else { panic!("it is new") };
        let mut client = schema.connect().await;
        let transaction = client.transaction().await?;
        charge_in(&transaction, &store, schema.name(), &slow.ticket()).await;
        // A request that only asks does not wait for the transaction.
        assert!(matches!(begin(&idempotency).await, Entry::InFlight { .. }));
        clock.advance(LEASE);
        let (entry, committed) = tokio::join!(begin(&idempotency), async {
            // Commit only after another transaction waits for it.
            let waits = format!(
                "SELECT count(*) FROM pg_stat_activity
                  WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE {}.idempotency%'",
                schema.name()
            );
            let visitor = schema.connect().await;
            while visitor.query_one(&waits, &[]).await.expect("locks").get::<_, i64>(0) == 0 {
                tokio::task::yield_now().await;
            }
            transaction.commit().await
        });
        committed?;
        assert!(matches!(entry, Entry::Done(answer) if answer == b"charged"));
        assert_eq!(charges(&schema).await, 1);
        Ok(())
    }

    /// A run that was taken over notices it before it commits.
    #[tokio::test]
    async fn a_transaction_that_is_too_late_is_told() -> Tested {
        let clock = ClockOffset::default();
        let (schema, store) = shop(&clock).await;
        let idempotency = Idempotency::new(store.clone());
        let Entry::Run(slow) = begin(&idempotency).await else { panic!("it is new") };
        clock.advance(LEASE);
        let Entry::Run(newer) = begin(&idempotency).await else { panic!("no run took it over") };
        let mut client = schema.connect().await;
        let transaction = client.transaction().await?;
        let finished = charge_in(&transaction, &store, schema.name(), &slow.ticket()).await;
        assert_eq!(finished, Finished::Lost);
        transaction.rollback().await?;
        assert_eq!((newer.finish(b"newer").await?, charges(&schema).await), (Finished::Stored, 0));
        Ok(())
    }
}
