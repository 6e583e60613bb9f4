//! Tests that a SQLite file survives a killed process and a full disk, and that a replaced file is noticed.

use rewheel::Random;
use rewheel_core::store::{
    Claim, Filter, Insert, Inserted, KindStore, LeaseStore, PageRequest, ReadStore, Settlement,
    Store, StoreError, SubmitStore, Visit, WorkStore,
};
use rewheel_core::{
    Actor, HolderId, JobId, KindName, Lane, NewHolder, NewJob, NewKind, Priority, Shard, Timestamp,
};
use rewheel_stores::{ConnectError, SqliteStore, connect, connect_existing};
use std::collections::HashSet;
use std::error::Error;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

type Tested = Result<(), Box<dyn Error>>;

/// Names what the process to be killed should do; not set in the test itself.
const PART: &str = "REWHEEL_CRASH_PART";
const FILE: &str = "REWHEEL_CRASH_FILE";

fn kind() -> KindName {
    KindName::parse("crash").expect("a kind")
}

fn jobs(random: &Random, count: usize, payload_bytes: usize) -> Vec<NewJob> {
    let now = Timestamp::from_millis(1_700_000_000_000);
    (0..count)
        .map(|_| NewJob::new(JobId::new(now, random), kind(), vec![7; payload_bytes]))
        .collect()
}

async fn open(file: &Path) -> Result<SqliteStore, StoreError> {
    let store = SqliteStore::open(file).await?;
    let new = NewKind {
        name: kind(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    store.put_kinds(&[new], &Actor::new("crash")).await?;
    Ok(store)
}

async fn all_ids(store: &SqliteStore) -> Result<HashSet<String>, StoreError> {
    let mut found = HashSet::new();
    let mut page = PageRequest::first(1_000);
    loop {
        let answer = store.list(&Filter::default(), &page).await?;
        found.extend(answer.items.iter().map(|job| job.id.to_string()));
        match answer.next {
            Some(cursor) => page = PageRequest::behind(cursor, 1_000),
            None => return Ok(found),
        }
    }
}

/// Runs this program again to do one part of a test.
fn part(name: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "crash::other_parts", "--nocapture", "--test-threads=1"]);
    command.env(PART, name).env(FILE, file).stdout(Stdio::piped());
    command
}

/// Not a test: the entry point of the other process.
#[tokio::test]
async fn other_parts() -> Tested {
    let Ok(name) = std::env::var(PART) else { return Ok(()) };
    let file = PathBuf::from(std::env::var(FILE)?);
    match name.as_str() {
        "submit" => submit_until_killed(&file).await,
        "fill" => fill_the_disk(&file).await,
        "outgrow" => outgrow_the_limit(&file).await,
        "open" => {
            let error = SqliteStore::open(&file).await.err().ok_or("it opened")?;
            say(&format!("refused {error}"));
            Ok(())
        }
        other => Err(format!("no such part: {other}").into()),
    }
}

#[expect(clippy::print_stdout, reason = "the test that waits for it reads it")]
fn say(line: &str) {
    println!("{line}");
}

/// Submits and settles until it is killed, and prints what was acknowledged.
async fn submit_until_killed(file: &Path) -> Tested {
    let store = open(file).await?;
    let random = Random::thread();
    let holder = HolderId::new(Timestamp::from_millis(0), &random);
    let lease_ttl = Duration::from_secs(60);
    store
        .join(&NewHolder {
            id: holder,
            name: "crash".to_owned(),
            role: rewheel_core::Role::Engine,
            lease_ttl,
            format: rewheel_core::Format::CURRENT,
        })
        .await?;
    let lane = Lane { kind: kind(), tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE };
    let visits = [Visit {
        lane,
        limit: 100,
        attempt_timeout: Duration::from_secs(30),
        attempt_timeout_ceiling: Duration::from_secs(3_600),
        grace: Duration::from_secs(5),
    }];
    loop {
        let batch = jobs(&random, 200, 500);
        let answers = store.insert(&Insert::new(&batch)).await?;
        assert!(answers.iter().all(|answer| matches!(answer, Inserted::Created { .. })));
        for job in &batch {
            say(&format!("stored {}", job.id));
        }
        let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 100 };
        let claimed = store.claim(&claim).await?;
        let settlements: Vec<Settlement> =
            claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
        store.settle(holder, &settlements).await?;
        for settlement in &settlements {
            say(&format!("settled {}", settlement.lease.job));
        }
    }
}

/// Reads a number of output lines of a process, kills it, and reads the rest.
fn kill_after(child: &mut Child, lines: usize) -> Vec<String> {
    let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let mut said = Vec::new();
    for line in output.lines() {
        // The last line may be incomplete: an incomplete line does not count as acknowledged.
        let Ok(line) = line else { break };
        said.push(line);
        if said.len() == lines {
            child.kill().expect("it runs until it is killed");
        }
    }
    child.wait().expect("it was started here");
    said
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_killed_process() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    let (mut stored, mut settled) = (HashSet::new(), HashSet::new());
    for round in 0..6 {
        let mut child = part("submit", &file).spawn()?;
        // Kill at different points of a flush.
        for line in kill_after(&mut child, 900 + round * 170) {
            match line.split_once(' ') {
                Some(("stored", id)) if id.len() == 36 => drop(stored.insert(id.to_owned())),
                Some(("settled", id)) if id.len() == 36 => drop(settled.insert(id.to_owned())),
                _ => {}
            }
        }
        let store = SqliteStore::open(&file).await?;
        let found = all_ids(&store).await?;
        assert!(stored.is_subset(&found), "{} are missing", stored.difference(&found).count());
        for id in &settled {
            let job = store.get(id.parse()?).await?.ok_or("a settled job is gone")?;
            assert!(job.state().is_final(), "{id} was settled, and is {}", job.state());
        }
        assert_eq!(store.books().await?.missing(), 0, "the books balance after a crash");
        store.close().await?;
    }
    assert!(stored.len() > 3_000 && settled.len() > 1_000, "{} {}", stored.len(), settled.len());
    Ok(())
}

/// Fills a disk completely, frees space, and continues. Runs on a small disk.
async fn fill_the_disk(file: &Path) -> Tested {
    let ballast = file.with_file_name("ballast");
    std::fs::write(&ballast, vec![0; 512 * 1024])?;
    let store = open(file).await?;
    let random = Random::thread();
    let mut stored = HashSet::new();
    let error = loop {
        let batch = jobs(&random, 50, 2_000);
        match store.insert(&Insert::new(&batch)).await {
            Ok(_) => stored.extend(batch.iter().map(|job| job.id.to_string())),
            Err(error) => break error,
        }
        assert!(stored.len() < 100_000, "the disk is not small");
    };
    assert!(matches!(error, StoreError::Full(_)), "not told apart: {error:?}");
    assert!(error.to_string().contains("make space on its disk"), "{error}");
    assert_eq!(all_ids(&store).await?, stored, "what was acknowledged, and nothing else");
    std::fs::remove_file(&ballast)?;
    let batch = jobs(&random, 1, 100);
    store.insert(&Insert::new(&batch)).await?;
    assert_eq!(store.books().await?.missing(), 0);
    say(&format!("survived with {} jobs", stored.len()));
    Ok(())
}

/// Writes until the file may not grow any more, and continues. Runs with a limit on the file size.
async fn outgrow_the_limit(file: &Path) -> Tested {
    let store = open(file).await?;
    let random = Random::thread();
    let (mut stored, mut doubtful) = (HashSet::new(), HashSet::new());
    let mut failures = 0;
    while failures < 20 {
        let batch = jobs(&random, 50, 2_000);
        let ids = batch.iter().map(|job| job.id.to_string());
        match store.insert(&Insert::new(&batch)).await {
            Ok(_) => stored.extend(ids),
            Err(StoreError::Ambiguous(_)) => doubtful.extend(ids),
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => return Err(error.into()),
        }
        failures = doubtful.len() / 50;
        assert!(stored.len() < 100_000, "files may grow");
        let found = all_ids(&store).await?;
        assert!(stored.is_subset(&found), "{} are missing", stored.difference(&found).count());
        assert!(
            found.difference(&stored).all(|id| doubtful.contains(id)),
            "no client submitted it"
        );
        assert_eq!(store.books().await?.missing(), 0);
    }
    say(&format!("survived with {} jobs", stored.len()));
    Ok(())
}

/// Runs a part on its own file system, after a shell command. Returns `None` if this process may not mount one.
fn on_small_disk(name: &str, prepare: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = folder.path().display().to_string();
    let file = folder.path().join("rewheel.db");
    let child = part(name, &file);
    let program = child.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> =
        child.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let script = format!(
        "mount -t tmpfs -o size=4m none {disk} && echo mounted && {prepare} exec {program} {}",
        arguments.join(" ")
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script.replace("DISK", &disk)]);
    command.env(PART, name).env(FILE, &file);
    let output = command.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !said.contains("mounted") {
        return None;
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    Some(said)
}

#[test]
fn a_full_disk_is_told_apart_and_survived() {
    match on_small_disk("fill", "") {
        Some(said) => assert!(said.contains("survived with"), "{said}"),
        None => say("not tested: a full disk (this process may not mount a small one)"),
    }
}

#[test]
fn a_commit_that_fails_loses_nothing_before_it() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    let child = part("outgrow", &file);
    let mut command = Command::new("sh");
    // Then a write beyond the limit fails and does not kill the process.
    command.args(["-c", "trap '' XFSZ && ulimit -f 4096 && exec \"$0\" \"$@\""]);
    command.arg(child.get_program()).args(child.get_args());
    command.env(PART, "outgrow").env(FILE, &file);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("survived with"), "{said}\n{complaints}");
    Ok(())
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let prepare = "touch DISK/rewheel.db && mount -o remount,ro DISK &&";
    match on_small_disk("open", prepare) {
        Some(said) => {
            assert!(said.contains("rewheel.db: the database file cannot be written"), "{said}");
        }
        None => say("not tested: a read-only disk (this process may not mount one)"),
    }
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_named() {
    let error = SqliteStore::open("/nowhere/at/all/rewheel.db").await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all/rewheel.db"), "{error}");
    assert!(error.contains("check that its folder exists"), "{error}");
}

#[tokio::test]
async fn a_file_of_something_else_is_refused_and_left_alone() -> Tested {
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database ".repeat(100))?;
    let error = SqliteStore::open(&text).await.unwrap_err().to_string();
    assert!(error.contains("is not a SQLite database"), "{error}");
    assert!(std::fs::read_to_string(&text)?.starts_with("not a database"));

    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)?.execute_batch("CREATE TABLE users (name TEXT)")?;
    let error = SqliteStore::open(&foreign).await.unwrap_err().to_string();
    assert!(error.contains("a SQLite database of another program"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_file_of_a_newer_rewheel_is_refused() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    open(&file).await?.close().await?;
    rusqlite::Connection::open(&file)?.pragma_update(None, "user_version", 1_000)?;
    let error = SqliteStore::open(&file).await.unwrap_err().to_string();
    assert!(error.contains("a newer version of Rewheel wrote the file"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_program_that_only_looks_changes_no_tables() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    let url = format!("sqlite://{}", file.display());
    let error = connect_existing(&url).await.unwrap_err().to_string();
    assert!(error.contains("cannot be opened") && !file.exists(), "{error}");
    open(&file).await?.close().await?;
    connect_existing(&url).await?.close().await?;

    let version = |file: &Path| -> rusqlite::Result<u32> {
        rusqlite::Connection::open(file)?.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    let current = version(&file)?;
    rusqlite::Connection::open(&file)?.pragma_update(None, "user_version", current - 1)?;
    let error = connect_existing(&url).await.unwrap_err().to_string();
    let wanted =
        format!("version {}, and this version of Rewheel needs version {current}", current - 1);
    assert!(error.contains(&wanted) && error.contains("run `rewheel migrate`"), "{error}");
    assert_eq!(version(&file)?, current - 1, "the tables were migrated");
    rusqlite::Connection::open(&file)?.pragma_update(None, "user_version", 1_000)?;
    let error = connect_existing(&url).await.unwrap_err().to_string();
    assert!(error.contains("a newer version of Rewheel wrote the file"), "{error}");

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "")?;
    let url = format!("sqlite://{}", empty.display());
    let error = connect_existing(&url).await.unwrap_err().to_string();
    assert!(error.contains("has no tables of Rewheel"), "{error}");
    assert_eq!(std::fs::metadata(&empty)?.len(), 0);
    Ok(())
}

/// The journal mode is a part of the file.
#[tokio::test]
async fn a_program_that_only_looks_keeps_the_journal_mode() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    open(&file).await?.close().await?;
    let mode = |wanted: Option<&str>| -> rusqlite::Result<String> {
        let connection = rusqlite::Connection::open(&file)?;
        match wanted {
            Some(mode) => {
                connection.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))
            }
            None => connection.pragma_query_value(None, "journal_mode", |row| row.get(0)),
        }
    };
    assert_eq!(mode(Some("delete"))?, "delete");
    let store = connect_existing(&format!("sqlite://{}", file.display())).await?;
    assert_eq!(store.books().await?.missing(), 0);
    store.close().await?;
    assert_eq!(mode(None)?, "delete");
    Ok(())
}

#[tokio::test]
async fn a_damaged_file_says_so_and_what_to_do() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    let store = open(&file).await?;
    store.insert(&Insert::new(&jobs(&Random::seeded(1), 2_000, 500))).await?;
    store.close().await?;
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&file)?;
    let bytes = damaged.metadata()?.len();
    for page in 2..bytes / 8_192 {
        damaged.seek(SeekFrom::Start(page * 8_192))?;
        damaged.write_all(&[0xa5; 64])?;
    }
    drop(damaged);
    let error = match open(&file).await {
        Err(error) => error,
        Ok(store) => {
            store.insert(&Insert::new(&jobs(&Random::seeded(2), 100, 500))).await.unwrap_err()
        }
    };
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(error.to_string().contains("is damaged: stop every process"), "{error}");
    Ok(())
}

#[tokio::test]
async fn ten_that_start_at_once_make_the_tables_once() -> Tested {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rewheel.db");
    let opened: Vec<_> = (0..10)
        .map(|_| {
            let file = file.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                runtime.expect("a runtime").block_on(async { open(&file).await.map(drop) })
            })
        })
        .collect();
    for thread in opened {
        thread.join().expect("it does not panic")?;
    }
    let store = SqliteStore::open(&file).await?;
    assert_eq!(store.kinds().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_wrong_url_says_which_are_right() {
    for url in ["", "rewheel.db", "sqlite://", "oracle://x", "memory://x"] {
        let error = connect(url).await.unwrap_err();
        assert!(matches!(error, ConnectError::Url { .. }), "{url}: {error}");
        assert!(error.to_string().contains("sqlite://rewheel.db"), "{url}: {error}");
    }
    let error = connect("sqlite://x.db?mode=fast").await.unwrap_err().to_string();
    // The value of an unknown setting may be a password.
    assert!(error.contains("`mode=***` is not a setting"), "{error}");
}
