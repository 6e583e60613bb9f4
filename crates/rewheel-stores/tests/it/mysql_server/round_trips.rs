//! Tests that batches take few round trips, however many jobs they have.

use super::support::open_at;
use mysql_async::prelude::Queryable;
use rewheel_core::Retain;
use rewheel_core::store::Settlement;
use rewheel_testkit::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Number of jobs in a batch.
const JOBS: usize = 400;

/// Forwards connections to the server, and counts how often clients sent something.
struct Proxy {
    url: String,
    asked: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Proxy {
    async fn start(database: &Database) -> Proxy {
        let (login, rest) = database.url().rsplit_once('@').expect("a login");
        let (server, name) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("{login}@{}/{name}", listener.local_addr().expect("an address"));
        let (server, asked) = (server.to_owned(), Arc::new(AtomicUsize::new(0)));
        let (counted, mut task) = (Arc::clone(&asked), JoinSet::new());
        task.spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("a server");
                let (mut client_says, mut client_hears) = client.into_split();
                let (mut server_says, mut server_hears) = server.into_split();
                let counted = Arc::clone(&counted);
                pumps.spawn(async move {
                    let mut bytes = vec![0; 64 * 1024];
                    while let Ok(count @ 1..) = client_says.read(&mut bytes).await {
                        counted.fetch_add(1, Ordering::SeqCst);
                        if server_hears.write_all(&bytes[..count]).await.is_err() {
                            return;
                        }
                    }
                });
                pumps.spawn(async move { drop(copy(&mut server_says, &mut client_hears).await) });
            }
        });
        Proxy { url, asked, _task: task }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// A takeover of thousands of jobs must not take minutes, nor exceed a timeout, where the server is some milliseconds away.
#[tokio::test]
async fn a_sweep_takes_a_few_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let subject = open_at(&proxy.url).await;
    subject.kinds(&["charge"]).await;
    let (by, dead) = (subject.holder().await, subject.holder().await);
    subject.insert(&subject.jobs("charge", JOBS)).await;
    assert_eq!(subject.claim(dead, &["charge"], JOBS).await.len(), JOBS);
    subject.store.leave(dead).await.expect("it left");
    let before = proxy.asked();
    assert_eq!(subject.sweep(by).await.len(), JOBS);
    let asked = proxy.asked() - before;
    assert!(asked <= JOBS / 8, "{asked} round trips");
    subject.balance().await;
}

#[tokio::test]
async fn a_batch_of_successes_takes_a_few_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let subject = open_at(&proxy.url).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", JOBS)).await;
    let leased = subject.claim(holder, &["charge"], JOBS).await;
    let settlements: Vec<Settlement> =
        leased.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    let before = proxy.asked();
    subject.store.settle(holder, &settlements).await.expect("settled");
    let asked = proxy.asked() - before;
    assert!(asked <= JOBS / 8, "{asked} round trips");
}

/// Fences are large after a failover, but the histories of jobs are as short as before: none is searched for records.
#[tokio::test]
async fn a_later_epoch_takes_as_many_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let (mut fails, mut drops) = (Vec::new(), Vec::new());
    for epoch in 0..2_u64 {
        let subject = open_at(&proxy.url).await;
        subject.kinds(&["charge"]).await;
        let holder = subject.holder().await;
        // The least of some, because a connection prepares its statements first.
        let mut least = usize::MAX;
        for _ in 0..6 {
            subject.submit("charge").await;
            let lease = subject.claim_only(holder, "charge").await.lease();
            assert_eq!(lease.fence.get(), (epoch << 32) + 1);
            let before = proxy.asked();
            subject.settle(holder, &subject.dead(lease)).await;
            least = least.min(proxy.asked() - before);
        }
        fails.push(least);

        subject.insert(&subject.jobs("charge", JOBS)).await;
        let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
        let leased = subject.claim(holder, &["charge"], JOBS).await;
        let settlements: Vec<Settlement> = leased
            .iter()
            .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
            .collect();
        let before = proxy.asked();
        subject.store.settle(holder, &settlements).await.expect("settled");
        drops.push(proxy.asked() - before);
        let mut connection = database.connect().await;
        connection.query_drop("UPDATE rewheel_epochs SET server = 'another'").await.expect("moved");
    }
    assert_eq!(fails[0], fails[1]);
    assert!(drops.iter().all(|asked| *asked <= JOBS / 8), "{drops:?}");
}
