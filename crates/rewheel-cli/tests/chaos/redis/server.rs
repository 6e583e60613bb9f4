//! A private Redis server that a cell may harm.

use rewheel_testkit::RedisProcess;
use std::path::PathBuf;
use tempfile::TempDir;

/// Every write is on the disk before it is answered.
const SAFE: &str = "--appendonly yes --appendfsync always";

/// Writes reach the disk once a second.
const EVERY_SECOND: &str = "--appendonly yes --appendfsync everysec";

/// A server with its own data.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: RedisProcess,
    /// Deleted after the server has ended.
    _folder: TempDir,
}

impl Server {
    /// Starts a server that loses nothing which it has answered.
    pub(crate) fn start() -> Server {
        Server::with(SAFE)
    }

    /// Starts a server that may lose the last second.
    pub(crate) fn that_writes_every_second() -> Server {
        Server::with(EVERY_SECOND)
    }

    fn with(settings: &str) -> Server {
        let folder = tempfile::tempdir().unwrap();
        Server { process: RedisProcess::start(folder.path(), settings), _folder: folder }
    }

    /// The URL for the nodes.
    pub(crate) fn store(&self) -> String {
        format!("{}/0?prefix=chaos", self.process.url())
    }

    /// Returns the part of the append-only file to which the server writes now.
    pub(crate) fn appended_file(&self) -> PathBuf {
        let folder = self.process.folder().join("appendonlydir");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_appended = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
        files.filter(is_appended).max().expect("the server appends to a file")
    }
}
