//! Reads the free disk space of the store's file.

use rewheel::axum::Health;
use std::path::{Path, PathBuf};

/// Returns the folder of a store that is a local file; a database server monitors its own disk.
pub(super) fn folder(url: &str) -> Option<PathBuf> {
    let file = url.strip_prefix("sqlite://")?.split('?').next()?;
    let folder = Path::new(file).parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// Reports the free space, and whether it is enough.
pub(super) fn health(folder: &Path, enough: u64) -> Health {
    match free_bytes(folder) {
        Ok(Some(free)) => judge(free, enough),
        Ok(None) => Health::ok("the free disk space is not known on this system"),
        // The store itself reports whether it can write.
        Err(error) => Health::degraded(format!(
            "failed to read the free space of {}: {error}",
            folder.display()
        )),
    }
}

fn judge(free: u64, enough: u64) -> Health {
    const MIB: u64 = 1024 * 1024;
    let said = format!("{} MiB are free", free / MIB);
    if free < enough {
        let hint = format!(
            "{said}, less than server.disk_free_bytes_min ({} MiB): make space on the disk; when the disk is full, submits fail",
            enough / MIB
        );
        return Health::degraded(hint);
    }
    Health::ok(said)
}

/// Returns the space that an ordinary user may still use.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> std::io::Result<Option<u64>> {
    let told = rustix::fs::statvfs(folder)?;
    Ok(Some(told.f_bavail.saturating_mul(told.f_frsize)))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> std::io::Result<Option<u64>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{folder, health, judge};
    use rewheel::axum::HealthState;
    use std::path::{Path, PathBuf};

    #[test]
    fn only_a_file_of_this_machine_has_a_folder() {
        assert_eq!(folder("sqlite://rewheel.db"), Some(PathBuf::from(".")));
        let absolute = folder("sqlite:///var/lib/rewheel.db?synchronous=normal");
        assert_eq!(absolute, Some(PathBuf::from("/var/lib")));
        assert_eq!(folder("postgres://db/shop"), None);
        assert_eq!(folder("memory://"), None);
    }

    #[test]
    fn little_room_is_told_before_there_is_none() {
        let mib = 1024 * 1024;
        assert_eq!(judge(600 * mib, 512 * mib).state, HealthState::Ok);
        let little = judge(100 * mib, 512 * mib);
        assert_eq!(little.state, HealthState::Degraded);
        assert!(
            little
                .message
                .starts_with("100 MiB are free, less than server.disk_free_bytes_min (512 MiB)"),
            "{little:?}"
        );
    }

    #[test]
    fn a_disk_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(health(folder.path(), 0).state, HealthState::Ok);
        assert_eq!(health(folder.path(), u64::MAX).state, HealthState::Degraded);
        assert_eq!(health(Path::new("/nowhere/at/all"), 0).state, HealthState::Degraded);
    }
}
