//! Opens the database file, for writing or for reading.

use super::error::{VerbError, broken};
use super::migrate::{check_current, migrate};
use super::{SqliteOptions, Synchronous};
use crate::open_mode::Tables;
use rewheel_core::store::{Risk, StoreError, StoreResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::PathBuf;
use std::time::Duration;

/// How long to wait for another process that is writing to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of retries in cases where SQLite itself does not wait.
const BUSY_TRIES: u32 = 500;

/// The cache size. The pages of a busy store fit; more memory did not make it faster.
const CACHE_KIB: i64 = 64 * 1024;

/// The page size, twice SQLite's default: a row has a few hundred bytes, and larger pages make flatter trees.
const PAGE_BYTES: i64 = 8 * 1024;

/// Maximum number of symbolic links to follow to a database file.
#[cfg(unix)]
const LINKS_MAX: usize = 8;

/// Only the owner can read and write.
#[cfg(unix)]
const PRIVATE_MODE: u32 = 0o600;

#[derive(Clone, Debug)]
pub(super) struct Files {
    path: PathBuf,
    synchronous: Synchronous,
    tables: Tables,
}

impl Files {
    pub(super) fn new(path: PathBuf, options: &SqliteOptions) -> Files {
        Files { path, synchronous: options.synchronous, tables: Tables::Migrate }
    }

    /// Chooses whether the file and its tables may be created and migrated.
    pub(super) fn with(self, tables: Tables) -> Files {
        Files { tables, ..self }
    }

    /// Opens the file for writing. May also create it and migrate its tables.
    pub(super) fn open_writer(&self) -> StoreResult<Connection> {
        match self.tables {
            Tables::Migrate => {
                self.create_private();
                self.open_writer_with(OpenFlags::SQLITE_OPEN_CREATE)
            }
            Tables::Keep => self.open_writer_with(OpenFlags::empty()),
        }
    }

    /// Creates the file so that only its owner can read it: SQLite would create it with the mode 0644. SQLite gives the
    /// `-wal`, `-shm` and `-journal` files the mode of the database file. An existing file keeps its mode.
    ///
    /// Errors are ignored here: SQLite gets the same error when it opens the file, and reports it.
    #[cfg(unix)]
    fn create_private(&self) {
        use std::os::unix::fs::OpenOptionsExt as _;
        if self.path.as_os_str().as_encoded_bytes().starts_with(b":") {
            // `:memory:` is not a file.
            return;
        }
        let mut path = self.path.clone();
        // Follow a link to a file that does not exist yet: SQLite would create that file readable for all users.
        for _ in 0..LINKS_MAX {
            let Ok(target) = std::fs::read_link(&path) else { break };
            path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
        }
        // Only `create_new`: closing a file that is open elsewhere in this process would release SQLite's locks on it.
        let _ =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(PRIVATE_MODE).open(&path);
    }

    #[cfg(not(unix))]
    fn create_private(&self) {}

    /// Reports the files that other users of this machine can read or write.
    #[cfg(unix)]
    pub(super) fn risks(&self) -> Option<Risk> {
        use std::os::unix::fs::PermissionsExt as _;
        let shared: Vec<String> = ["", "-wal", "-shm", "-journal"]
            .into_iter()
            .filter_map(|suffix| {
                let mut path = self.path.clone().into_os_string();
                path.push(suffix);
                let mode = std::fs::metadata(&path).ok()?.permissions().mode() & 0o777;
                let path = PathBuf::from(path);
                (mode & !PRIVATE_MODE != 0).then(|| format!("{} ({mode:04o})", path.display()))
            })
            .collect();
        let message = format!(
            "other users of this machine can open {}: the files contain payloads, callback headers and signing secrets; run `chmod 600` on each",
            shared.join(", ")
        );
        (!shared.is_empty()).then_some(Risk { name: "file_mode", message })
    }

    #[cfg(not(unix))]
    pub(super) fn risks(&self) -> Option<Risk> {
        None
    }

    /// Returns the size of the write-ahead log; 0 if there is none.
    pub(super) fn log_bytes(&self) -> u64 {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        std::fs::metadata(path).map_or(0, |log| log.len())
    }

    /// Opens the file again. It does not create a missing file, because the acknowledged data is in the old one.
    pub(super) fn reopen_writer(&self) -> StoreResult<Connection> {
        self.open_writer_with(OpenFlags::empty())
    }

    fn open_writer_with(&self, flags: OpenFlags) -> StoreResult<Connection> {
        let connection =
            self.open(flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.prepare(&connection) {
                Ok(()) => return Ok(connection),
                // SQLite waits for a lock, but not for the locks of a file that is being created.
                Err(VerbError::Sql(error)) if is_busy(&error) && tries < BUSY_TRIES => {
                    std::thread::park_timeout(BUSY_TIMEOUT / BUSY_TRIES);
                }
                Err(trouble) => return Err(self.explain(trouble)),
            }
        }
    }

    /// Opens the file for reading.
    pub(super) fn open_reader(&self) -> StoreResult<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = self.open(flags)?;
        tune(&connection).map_err(|trouble| self.explain(trouble))?;
        Ok(connection)
    }

    fn open(&self, flags: OpenFlags) -> StoreResult<Connection> {
        Connection::open_with_flags(&self.path, flags).map_err(|error| self.explain(error.into()))
    }

    /// Prepares the connection for writing.
    fn prepare(&self, connection: &Connection) -> Result<(), VerbError> {
        // The caller retries; with a busy timeout, each retry would wait as well.
        connection.busy_timeout(Duration::ZERO)?;
        match self.tables {
            Tables::Migrate => {
                use_log(connection)?;
                connection.pragma_update(None, "synchronous", self.synchronous.as_str())?;
                migrate(connection)?;
            }
            // The journal mode is written to the file, so it stays what it is.
            Tables::Keep => {
                check_current(connection)?;
                connection.pragma_update(None, "synchronous", self.synchronous.as_str())?;
            }
        }
        tune(connection)
    }

    /// Adds the file name to an error.
    fn explain(&self, trouble: VerbError) -> StoreError {
        match StoreError::from(trouble) {
            StoreError::Broken { what, source } => {
                StoreError::Broken { what: format!("{}: {what}", self.path.display()), source }
            }
            other @ (StoreError::Unavailable(_)
            | StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Rejected(_)
            | StoreError::HolderDead(_)
            | StoreError::Closed) => other,
        }
    }
}

/// Lets a file use a write-ahead log.
fn use_log(connection: &Connection) -> Result<(), VerbError> {
    // Takes effect only on an empty file.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(VerbError::Said(broken(
        format!(
            "SQLite cannot use a write-ahead log for this file (its journal mode is `{mode}`): put the file on \
             a local disk"
        ),
        None,
    )))
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn tune(connection: &Connection) -> Result<(), VerbError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    rusqlite::vtab::array::load_module(connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Files, SqliteOptions};

    #[test]
    fn a_file_that_is_gone_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rewheel.db");
        let files = Files::new(path.clone(), &SqliteOptions::default());
        drop(files.open_writer().unwrap());
        assert!(files.reopen_writer().is_ok());
        std::fs::remove_file(&path).unwrap();
        assert!(files.reopen_writer().is_err() && !path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_files_that_are_created() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rewheel.db");
        let files = Files::new(path.clone(), &SqliteOptions::default());
        let connection = files.open_writer().unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        let mode = |suffix: &str| {
            let path = format!("{}{suffix}", path.display());
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(["", "-wal", "-shm"].map(mode), [0o600; 3]);
        assert!(files.risks().is_none());
        // An existing file keeps its mode, and is reported.
        drop(connection);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let _connection = files.open_writer().unwrap();
        assert_eq!(mode(""), 0o644);
        let risk = files.risks().unwrap();
        assert!(risk.message.contains("rewheel.db (0644), "), "{}", risk.message);
        assert!(risk.message.contains("rewheel.db-wal (0644)"), "{}", risk.message);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_that_is_created_makes_it_no_less_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (link, real) = (folder.path().join("link.db"), folder.path().join("real.db"));
        std::os::unix::fs::symlink("real.db", &link).unwrap();
        let files = Files::new(link, &SqliteOptions::default());
        let _connection = files.open_writer().unwrap();
        let mode = std::fs::metadata(real).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
}
