//! Keeps jobs in one SQLite file, for processes on one machine.
//!
//! One thread writes. It commits all waiting verbs together, so that one disk write serves all of them, and answers them after the
//! commit. Reads have their own threads and connections, and see everything that was committed before they began.

mod error;
mod queue;
mod transaction;
mod writer;
mod files;
mod space;
mod migrate;
mod row;
mod job_columns;
mod verbs;
mod store_traits;

use self::files::Files;
use self::queue::{Queue, Urgency};
use self::transaction::Transaction;
use self::writer::Writer;
use crate::groups::CheckedTo;
use crate::open_mode::Tables;
use crate::wakeup::Wakeup;
use rewheel_core::store::{ClockOffset, StoreError, StoreResult};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Number of reader threads. One file gains little from more.
const READERS: usize = 2;

/// A store in one SQLite file.
///
/// Clones share it. It is closed by [`Store::close`](rewheel_core::store::Store::close), or when the last clone is dropped. Acknowledged
/// writes are safe either way.
///
/// ```
/// use rewheel_core::store::ReadStore;
/// use rewheel_stores::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let store = SqliteStore::open(folder.path().join("rewheel.db")).await?;
/// assert_eq!(store.books().await?.submitted, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// Options for opening a file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// Moves the store's clock, in tests.
    pub clock: ClockOffset,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Waits for the disk: acknowledged writes survive a power cut.
    #[default]
    Full,
    /// Waits for the operating system: acknowledged writes survive a crash of the process, but a power cut may lose the last of them.
    Normal,
}

impl Synchronous {
    /// Returns SQLite's name for this setting.
    pub const fn as_str(self) -> &'static str {
        match self {
            Synchronous::Full => "full",
            Synchronous::Normal => "normal",
        }
    }
}

struct Shared {
    files: Files,
    writes: Queue,
    reads: Queue,
    woken: Wakeup,
    groups_checked: CheckedTo,
    clock: ClockOffset,
    synchronous: Synchronous,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    /// Says what is wrong with the file or its folder, and what to do.
    pub async fn open(path: impl AsRef<Path>) -> StoreResult<SqliteStore> {
        SqliteStore::open_with(path, SqliteOptions::default()).await
    }

    /// Opens a file with the given options.
    ///
    /// # Errors
    /// Says what is wrong with the file or its folder, and what to do.
    pub async fn open_with(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> StoreResult<SqliteStore> {
        SqliteStore::open_tables(path, options, Tables::Migrate).await
    }

    pub(crate) async fn open_tables(
        path: impl AsRef<Path>,
        options: SqliteOptions,
        tables: Tables,
    ) -> StoreResult<SqliteStore> {
        let path = path.as_ref();
        SqliteStore::open_file(path, options, tables).await.map_err(|error| match error {
            StoreError::Broken { what, source } => {
                StoreError::Broken { what: format!("{}: {what}", path.display()), source }
            }
            StoreError::Unavailable(why) => {
                StoreError::Unavailable(format!("{}: {why}", path.display()).into())
            }
            error @ (StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Rejected(_)
            | StoreError::HolderDead(_)
            | StoreError::Closed) => error,
        })
    }

    async fn open_file(
        path: &Path,
        options: SqliteOptions,
        tables: Tables,
    ) -> StoreResult<SqliteStore> {
        let files = Files::new(path.to_owned(), &options).with(tables);
        let shared = Arc::new(Shared {
            files: files.clone(),
            writes: Queue::new(),
            reads: Queue::new(),
            woken: Wakeup::default(),
            groups_checked: CheckedTo::default(),
            clock: options.clock.clone(),
            synchronous: options.synchronous,
            threads: Mutex::default(),
        });
        let (opened, answer) = oneshot::channel();
        let writing = {
            let (files, queue, woken) =
                (files.clone(), shared.writes.clone(), shared.woken.clone());
            let clock = options.clock.clone();
            move || match files.open_writer() {
                Ok(connection) => {
                    let _ = opened.send(Ok(()));
                    Writer { files, connection, queue, clock, woken }.run();
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let mut threads = vec![spawn("rewheel-sqlite-write", writing)?];
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed))?;
        for _ in 0..READERS {
            let connection = files.open_reader()?;
            let (queue, clock) = (shared.reads.clone(), options.clock.clone());
            let reading = move || writer::read(&connection, &queue, &clock);
            threads.push(spawn("rewheel-sqlite-read", reading)?);
        }
        *shared.threads.lock().unwrap_or_else(PoisonError::into_inner) = threads;
        Ok(SqliteStore { shared })
    }

    /// Runs a write.
    async fn write<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, error::VerbError> + Send + 'static,
    ) -> StoreResult<T> {
        self.shared.writes.ask(Urgency::Work, weight, work).await
    }

    /// Runs an urgent write, such as a heartbeat: a holder's lease depends on it.
    async fn live<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, error::VerbError> + Send + 'static,
    ) -> StoreResult<T> {
        self.shared.writes.ask(Urgency::Life, 1, work).await
    }

    /// Runs a read that the engine's work depends on, so that it does not wait behind other reads.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, error::VerbError> + Send + 'static,
    ) -> StoreResult<T> {
        self.shared.reads.ask(Urgency::Life, 1, work).await
    }

    /// Runs a read.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, error::VerbError> + Send + 'static,
    ) -> StoreResult<T> {
        self.shared.reads.ask(Urgency::Work, 1, work).await
    }

    /// Closes the store, and waits until the threads have finished the last write.
    fn close_and_wait(&self) {
        self.shared.close();
        let threads = std::mem::take(
            &mut *self.shared.threads.lock().unwrap_or_else(PoisonError::into_inner),
        );
        for thread in threads {
            // A thread that panicked has already reported its error.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn close(&self) {
        self.reads.close();
        self.writes.close();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> StoreResult<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| StoreError::Unavailable(error.into()))
}

#[cfg(test)]
mod tests;
