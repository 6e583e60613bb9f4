//! Tests the store behind a connection pooler in transaction mode.

use super::support::{Node, Stranger, address, server, soon, url_by};
use rewheel_core::store::{
    ChangeVerb, Filter, Insert, Inserted, PageRequest, Prune, ReadStore, Settled, Settlement,
    Store, Sweep,
};
use rewheel_core::{Decision, HolderId, Key, Lease, NewJob, Retain};
use rewheel_testkit::{Schema, lane, seconds};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_postgres::SimpleQueryMessage;

/// Concurrent tasks, over two connections to the server.
const TASKS: usize = 8;

/// A running pooler; it ends with this value.
pub(crate) struct Bouncer {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Bouncer {
    /// Starts pgbouncer, if it is installed.
    pub(crate) async fn start() -> Option<Bouncer> {
        let places = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&places)
            .chain([Path::new("/usr/sbin").to_owned()])
            .map(|folder| folder.join("pgbouncer"))
            .find(|program| program.is_file())?;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, config(port)).expect("a file");
        let mut command = Command::new(program);
        if is_root(folder.path()) {
            // It does not run as root, and must be able to read its file as another user.
            readable(folder.path());
            command.args(["-u", "nobody"]);
        }
        let process = command
            .args(["-q".as_ref(), file.as_os_str()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let bouncer = Bouncer { process, port, _folder: folder };
        soon("pgbouncer", async {
            while Stranger::try_at(&bouncer.url()).await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        Some(bouncer)
    }

    /// Returns the URL of a store behind it.
    pub(crate) fn store_url(&self, schema: &Schema) -> String {
        url_by(schema, "127.0.0.1", self.port, "pooler=transaction")
    }

    fn url(&self) -> String {
        let config = server();
        let database = config.get_dbname().unwrap_or("postgres");
        format!("postgres://user@127.0.0.1:{}/{database}", self.port)
    }
}

fn is_root(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).is_ok_and(|folder| folder.uid() == 0)
}

fn readable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, everybody).expect("rights");
}

/// The settings that a user needs, with few connections.
fn config(port: u16) -> String {
    let (host, server_port) = address();
    let config = server();
    let user = config.get_user().unwrap_or("postgres");
    let password = config.get_password().map_or(String::new(), |password| {
        format!(" password={}", String::from_utf8_lossy(password))
    });
    format!(
        "[databases]\n* = host={host} port={server_port} user={user}{password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nunix_socket_dir =\n\
         pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\n"
    )
}

/// Runs the life cycle of some jobs, as one task of a node. Returns how many jobs it submitted.
async fn life(node: Arc<Node>, task: usize, holder: HolderId) -> usize {
    let store = &node.subject.store;
    let mut brought = 0;
    for round in 0..5 {
        let jobs: Vec<NewJob> = (0..6)
            .map(|n| NewJob {
                key: (n % 2 == 0)
                    .then(|| Key::parse(&format!("{task}-{round}-{n}")).expect("a key")),
                ..node.job("a")
            })
            .collect();
        node.insert(&jobs).await;
        brought += jobs.len();
        let again = [NewJob { id: node.id(), ..jobs[0].clone() }];
        let answers = store.insert(&Insert::new(&again)).await.expect("an answer");
        assert!(matches!(answers[..], [Inserted::Duplicate { .. }]), "{answers:?}");

        let leased = node.claim(holder, &["a"], 5).await;
        let leases: Vec<Lease> = leased.iter().map(|leased| leased.lease()).collect();
        let settlements: Vec<Settlement> =
            leases.iter().enumerate().map(|(n, lease)| settlement(&node, n, *lease)).collect();
        let (settle, give_back) = leases.split_at(leases.len().min(4));
        let settled = store.settle(holder, &settlements[..settle.len()]).await.expect("settled");
        assert!(
            settled.iter().all(|settled| matches!(settled, Settled::Applied(_))),
            "{settled:?}"
        );
        store.give_back(holder, give_back, Retain::default()).await.expect("given back");
        node.change(jobs[1].id, ChangeVerb::Pause).await;
        node.change(jobs[1].id, ChangeVerb::Resume).await;
        store.sweep(&Sweep::new(holder, 100, Retain::default())).await.expect("swept");
        store.list(&Filter::default(), &PageRequest::first(10)).await.expect("a page");
        let prune = Prune { limit: 100, audit_older_than: seconds(1_000) };
        store.prune(&prune).await.expect("pruned");
        store.renew(holder).await.expect("it lives");
    }
    brought
}

fn settlement(node: &Node, nth: usize, lease: Lease) -> Settlement {
    let keep = Retain { job: Duration::ZERO, key: seconds(60) };
    match nth {
        0 => Settlement { keep, ..Settlement::succeed(lease) },
        1 => node.retry(lease, seconds(60), false),
        2 => node.dead(lease),
        _ => Settlement { decision: Decision::Cancel, ..Settlement::succeed(lease) },
    }
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that did not run must not look as if it had")]
async fn a_store_works_behind_a_transaction_pooler() {
    let Some(bouncer) = Bouncer::start().await else {
        eprintln!("skipped: there is no pgbouncer");
        return;
    };
    let schema = Schema::fresh();
    let url = format!("{}&pool_max=6", bouncer.store_url(&schema));
    let node = Arc::new(Node::open(&url).await);
    node.kinds(&["a"]).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let holder = node.holder().await;
        tasks.spawn(life(Arc::clone(&node), task, holder));
    }
    let brought: usize = tokio::time::timeout(seconds(180), tasks.join_all())
        .await
        .expect("they end")
        .into_iter()
        .sum();
    let books = node.store.books().await.expect("books");
    assert_eq!((books.submitted, books.missing()), (brought as u64, 0));
    assert_eq!(node.lanes(&["a"]).await.first().map(|head| head.lane.clone()), Some(lane("a")));

    // Settings of a transaction must not stay on connections that others get.
    let (mut one, mut two) =
        (Stranger::at(&bouncer.url()).await, Stranger::at(&bouncer.url()).await);
    let first = one.client.transaction().await.expect("a transaction");
    let second = two.client.transaction().await.expect("a transaction");
    for transaction in [&first, &second] {
        for (name, default) in
            [("enable_seqscan", "on"), ("plan_cache_mode", "auto"), ("statement_timeout", "0")]
        {
            let rows = transaction.simple_query(&format!("SHOW {name}")).await.expect("a setting");
            let value = rows.iter().find_map(|message| {
                if let SimpleQueryMessage::Row(row) = message { row.get(0) } else { None }
            });
            assert_eq!(value, Some(default), "{name} stayed");
        }
    }
    node.store.close().await.expect("it closes");
}
