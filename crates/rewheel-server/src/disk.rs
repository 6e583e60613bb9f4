//! Reads the free disk space of the store's file.

use crate::config::Config;
use std::path::{Path, PathBuf};

/// Says how much space is free on the disk of the store, as an error if that is too little. `None` unless the store is a file of this
/// machine: a database server monitors its own disk.
pub fn disk_space(config: &Config) -> Option<Result<String, String>> {
    Some(space(&folder(&config.store.url)?, config.server.disk_free_bytes_min))
}

/// Returns the folder of a store that is a local file.
fn folder(url: &str) -> Option<PathBuf> {
    let file = url.strip_prefix("sqlite://")?.split('?').next()?;
    let folder = Path::new(file).parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

fn space(folder: &Path, enough: u64) -> Result<String, String> {
    match free_bytes(folder) {
        Ok(Some(free)) => judge(free, enough),
        Ok(None) => Ok("the free disk space is not known on this system".to_owned()),
        // The store itself reports whether it can write.
        Err(error) => {
            Err(format!("failed to read the free space of {}: {error}", folder.display()))
        }
    }
}

fn judge(free: u64, enough: u64) -> Result<String, String> {
    const MIB: u64 = 1024 * 1024;
    let said = format!("{} MiB are free", free / MIB);
    if free < enough {
        return Err(format!(
            "{said}, less than server.disk_free_bytes_min ({} MiB): make space on the disk; when the disk is full, submits fail",
            enough / MIB
        ));
    }
    Ok(said)
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
    use super::{folder, judge, space};
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
        assert_eq!(judge(600 * mib, 512 * mib).unwrap(), "600 MiB are free");
        let little = judge(100 * mib, 512 * mib).unwrap_err();
        let start = "100 MiB are free, less than server.disk_free_bytes_min (512 MiB)";
        assert!(little.starts_with(start), "{little}");
    }

    #[test]
    fn a_disk_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        assert!(space(folder.path(), 0).is_ok());
        assert!(space(folder.path(), u64::MAX).is_err());
        assert!(space(Path::new("/nowhere/at/all"), 0).is_err());
    }
}
