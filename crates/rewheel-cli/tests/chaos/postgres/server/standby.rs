//! Replication of a server: copies it, promotes the copy, and lets the old primary follow.

use super::{Server, run};
use crate::postgres::database::Connection;
use std::process::Command;
use std::time::{Duration, Instant};

/// Settings of a server that takes part in a failover: `pg_rewind` needs them.
pub(crate) const REPLICATED: [&str; 2] = ["wal_log_hints=on", "wal_keep_size=256MB"];

/// How long a change of a server may take.
const PATIENCE: Duration = Duration::from_secs(120);

impl Server {
    /// Returns host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes a standby with `pg_basebackup`; returns once it follows.
    pub(crate) async fn standby(&self) -> Server {
        // In the file too: `pg_rewind` recovers a killed server without the options of its start. It would delete the log that it needs.
        for option in REPLICATED {
            let (name, value) = option.split_once('=').expect("a name and a value");
            self.tell(&format!("ALTER SYSTEM SET {name} = '{value}'")).await;
        }
        let mut standby = Server::prepare(self.programs.clone(), &self.options);
        let mut copy = standby.command("pg_basebackup");
        copy.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]);
        run(copy.arg("-d").arg(self.conninfo()).arg("-D").arg(standby.data()));
        standby.go_on().await;
        self.wait_for("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
            .await;
        standby
    }

    /// Lets every commit wait until a standby has it.
    pub(crate) async fn commit_synchronously(&self) {
        self.tell("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        self.tell("SELECT pg_reload_conf()").await;
        self.wait_for("SELECT sync_state FROM pg_stat_replication", "sync").await;
    }

    /// Lets a standby receive nothing more.
    pub(crate) async fn stop_following(&self) {
        self.tell("ALTER SYSTEM SET primary_conninfo = ''").await;
        self.tell("SELECT pg_reload_conf()").await;
        self.wait_for("SELECT count(*) FROM pg_stat_wal_receiver", "0").await;
    }

    /// Makes a standby the primary; returns once it accepts writes.
    pub(crate) async fn promote(&self) {
        self.tell("SELECT pg_promote(true, 120)").await;
        self.wait_for("SELECT pg_is_in_recovery()", "f").await;
    }

    /// SIGKILL, to the server and all its processes.
    pub(crate) async fn kill(&mut self) {
        let children = self.children();
        self.signal("KILL", &children);
        let mut process = self.process.take().expect("it runs");
        process.wait().await.unwrap();
    }

    /// SIGSTOP, to the server and all its processes: it accepts connections, and does not answer.
    pub(crate) fn pause(&self) {
        // The server first, so that it starts no further process.
        self.signal("STOP", &[]);
        self.signal("STOP", &self.children());
    }

    /// SIGCONT: it answers again.
    pub(crate) fn go_on_after_pause(&self) {
        self.signal("CONT", &self.children());
    }

    /// Throws away what only this server has, and lets it follow the new primary. It must not run.
    pub(crate) async fn follow(&mut self, primary: &Server) {
        // The new primary's control file still has its old timeline until then.
        primary.tell("CHECKPOINT").await;
        let mut rewind = self.command("pg_rewind");
        rewind.arg("--source-server").arg(primary.conninfo()).arg("--write-recovery-conf");
        rewind.arg("--target-pgdata").arg(self.data());
        let started = Instant::now();
        loop {
            let output = rewind.output().unwrap();
            if output.status.success() {
                break;
            }
            // Its last process may not have ended yet.
            assert!(started.elapsed() < PATIENCE, "{output:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.go_on().await;
        primary
            .wait_for("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
            .await;
    }

    /// Runs one statement as superuser.
    pub(crate) async fn tell(&self, sql: &str) {
        let connection = Connection::open(&self.url).await.unwrap();
        connection.client.batch_execute(sql).await.unwrap();
    }

    /// Waits until a query returns this text.
    pub(crate) async fn wait_for(&self, sql: &str, expected: &str) {
        self.wait_for_in(&self.url, sql, expected).await;
    }

    /// The same in another database.
    pub(crate) async fn wait_for_in(&self, url: &str, sql: &str, expected: &str) {
        let connection = Connection::open(url).await.unwrap();
        let started = Instant::now();
        loop {
            let rows = connection.client.simple_query(sql).await.unwrap();
            let found: Vec<String> = rows
                .iter()
                .filter_map(|message| {
                    let tokio_postgres::SimpleQueryMessage::Row(row) = message else { return None };
                    row.get(0).map(str::to_owned)
                })
                .collect();
            if found == [expected] {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{sql}: {found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn conninfo(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    fn pid(&self) -> String {
        self.process.as_ref().and_then(tokio::process::Child::id).expect("it runs").to_string()
    }

    pub(super) fn children(&self) -> Vec<String> {
        let listed = Command::new("pgrep").args(["-P", &self.pid()]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
    }

    /// Sends a signal to the server and then to these processes.
    pub(super) fn signal(&self, name: &str, others: &[String]) {
        let _ = Command::new("kill").arg(format!("-{name}")).arg(self.pid()).args(others).status();
    }
}
