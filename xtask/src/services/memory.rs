//! The folder for the data of a test server: in memory, where there is enough.
//!
//! Each test makes its own tables, and deletes them at its end. On a disk, that takes ten times as long as most tests (MariaDB: 1.5 to 2.2 s
//! for all tables of a store, 0.15 s in memory). The servers keep their settings for durability: what tests check does not change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::repository::{self, Repository};

/// Linux keeps the files of this folder in memory.
const MEMORY: &str = "/dev/shm";

/// Containers have 64 MiB by default. All servers of a test run need less than 2 GiB together.
const BYTES_MIN: u64 = 4 * 1024 * 1024 * 1024;

/// Returns the folder for the data of the server `name`; it may not exist yet.
pub(super) fn folder(repository: &Repository, name: &str) -> PathBuf {
    let on_disk = repository.target_dir().join("services").join(name);
    let bytes = available(repository).unwrap_or(0);
    if bytes < BYTES_MIN { on_disk } else { in_memory(&on_disk) }
}

/// Returns the folders that [`folder`] may have returned earlier.
pub(super) fn folders(repository: &Repository, name: &str) -> [PathBuf; 2] {
    let on_disk = repository.target_dir().join("services").join(name);
    [in_memory(&on_disk), on_disk]
}

/// Each checkout has a folder of its own, which is the same in every run.
fn in_memory(on_disk: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    on_disk.hash(&mut hasher);
    let name = on_disk.file_name().unwrap_or_default().to_string_lossy();
    Path::new(MEMORY).join(format!("rewheel-test-{name}-{:016x}", hasher.finish()))
}

fn available(repository: &Repository) -> Option<u64> {
    let mut df = repository.program("df");
    let text = repository::read(df.args(["--block-size=1", "--output=avail", MEMORY])).ok()?;
    text.lines().nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::in_memory;
    use std::path::Path;

    #[test]
    fn checkouts_and_servers_do_not_share_a_folder() {
        let one = in_memory(Path::new("/a/target/services/mariadb"));
        assert_eq!(one, in_memory(Path::new("/a/target/services/mariadb")));
        assert_ne!(one, in_memory(Path::new("/b/target/services/mariadb")));
        assert_ne!(one, in_memory(Path::new("/a/target/services/postgres")));
    }
}
