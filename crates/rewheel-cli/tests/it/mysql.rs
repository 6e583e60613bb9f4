//! Tests the command with a store in MariaDB: the demo, what `doctor` says, wrong URLs, and encryption.

use crate::demo;
use crate::mariadb::Server;
use crate::shell::{Ran, run};
use std::path::Path;
use tempfile::TempDir;

fn doctor(folder: &Path, url: &str) -> Ran {
    run(folder, &["doctor", "--json", "--store", url])
}

/// Creates the tables: `doctor` only looks.
fn migrate(folder: &Path, url: &str) {
    let ran = run(folder, &["migrate", "--store", url]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// The names of the checks that failed.
fn failed(ran: &Ran) -> Vec<String> {
    let checks = ran.json()["checks"].as_array().unwrap().clone();
    let failed = checks.iter().filter(|check| check["ok"] == false);
    failed.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_demo_runs_on_mariadb() {
    let folder = TempDir::new().unwrap();
    let server = Server::start().await;
    demo::runs_on(folder.path(), &server.store);
    let found = doctor(folder.path(), &server.store);
    assert!(found.code == 0 && found.json()["books"]["missing"] == 0, "{found:?}");
}

/// Each setting of the table in `docs/mysql.md`, and the limits that a node needs.
#[tokio::test]
async fn doctor_names_each_setting_that_can_lose_jobs_or_stop_nodes() {
    let folder = TempDir::new().unwrap();
    let options = ["--log-bin=log", "--sync-binlog=0", "--skip-innodb-doublewrite"];
    let server = Server::with(&options).await;
    migrate(folder.path(), &server.store);
    let found = doctor(folder.path(), &server.store);
    assert_eq!(
        (failed(&found), found.code),
        (vec!["innodb_doublewrite".to_owned(), "sync_binlog".to_owned()], 1),
        "{found:?}"
    );
    server.run("SET GLOBAL sync_binlog = 1");
    for (setting, usual, name, text) in [
        (
            "innodb_flush_log_at_trx_commit = 2",
            "innodb_flush_log_at_trx_commit = 1",
            "innodb_flush_log_at_trx_commit",
            "2: a crash",
        ),
        (
            "innodb_flush_log_at_trx_commit = 0",
            "innodb_flush_log_at_trx_commit = 1",
            "innodb_flush_log_at_trx_commit",
            "0: a crash",
        ),
        (
            "max_prepared_stmt_count = 500",
            "max_prepared_stmt_count = 16382",
            "max_prepared_stmt_count",
            "500: 1 nodes",
        ),
        (
            "max_allowed_packet = 1048576",
            "max_allowed_packet = 16777216",
            "max_allowed_packet",
            "1048576 bytes",
        ),
    ] {
        server.run(&format!("SET GLOBAL {setting}"));
        let found = doctor(folder.path(), &server.store);
        assert_eq!(found.code, 1, "{setting}: {found:?}");
        let mut names = failed(&found);
        names.retain(|name| name != "innodb_doublewrite");
        assert_eq!(names, [name], "{setting}: {found:?}");
        assert!(found.out.contains(text), "{setting}: {found:?}");
        server.run(&format!("SET GLOBAL {usual}"));
    }
}

#[tokio::test]
async fn a_wrong_url_is_explained_without_its_password() {
    let folder = TempDir::new().unwrap();
    let server = Server::start().await;
    let at = server.store.rsplit_once('@').unwrap().1.to_owned();
    let address = at.split_once('/').unwrap().0.to_owned();
    for (url, text) in [
        (format!("mysql://rewheel:hunter2@{at}"), "rejected the login: check user and password"),
        (format!("mysql://stranger:hunter2@{at}"), "rejected the login: check user and password"),
        (format!("mysql://rewheel:rewheel@{address}/hunter2"), "database"),
        (
            format!("mysql://rewheel:hunter2@{at}?pool=3"),
            "`pool=***` is not a setting of the MySQL store",
        ),
        (format!("mysql://rewheel:hunter2@{at}?tls=maybe"), "tls=maybe: use off, on or verify"),
        (format!("mysql://rewheel:hunter2@{at}?tls=verify&tls_ca=none.pem"), "SSL"),
        (format!("mysql://rewheel:hunter2@{address}"), "use mysql://HOST/DATABASE"),
        ("mysql://rewheel:hunter2@127.0.0.1:1/chaos".to_owned(), "127.0.0.1:1"),
    ] {
        let refused = doctor(folder.path(), &url);
        assert_ne!(refused.code, 0, "{url}: {refused:?}");
        assert!(refused.err.contains(text), "{url}: {refused:?}");
        let shown = format!("{}{}", refused.err, refused.out);
        assert!(!shown.contains(":hunter2@"), "{url}: {refused:?}");
    }
}

/// The server takes only encrypted connections.
#[tokio::test]
async fn an_encrypted_connection_proves_the_server_by_its_certificate() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["server", "other"] {
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(path(&format!("{name}.pem")), made.cert.pem()).unwrap();
        std::fs::write(path(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
    }
    let [cert, key] = [path("server.pem"), path("server.key")];
    let options = [
        format!("--ssl-cert={cert}"),
        format!("--ssl-key={key}"),
        "--require-secure-transport=ON".to_owned(),
    ];
    let server = Server::with(&options.each_ref().map(String::as_str)).await;
    let asked = |settings: &str| doctor(folder.path(), &format!("{}{settings}", server.store));
    let plain = asked("");
    assert_ne!(plain.code, 0, "{plain:?}");
    migrate(folder.path(), &format!("{}?tls=on", server.store));
    for settings in ["?tls=on".to_owned(), format!("?tls=verify&tls_ca={cert}")] {
        let found = asked(&settings);
        assert!(found.code == 0 && found.json()["ok"] == true, "{settings}: {found:?}");
    }
    // Another certificate, and none that the machine trusts.
    for settings in [format!("?tls=verify&tls_ca={}", path("other.pem")), "?tls=verify".to_owned()]
    {
        let strange = asked(&settings);
        assert_ne!(strange.code, 0, "{settings}: {strange:?}");
        assert!(strange.err.to_lowercase().contains("certificate"), "{settings}: {strange:?}");
    }
}
