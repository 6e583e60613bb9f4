//! Finds space on the disk that a file takes without need.

use rewheel_core::store::Risk;

const MIB: u64 = 1024 * 1024;

/// A write-ahead log of a busy store has some MiB: SQLite moves it into the file, unless a reader still needs it.
const WAL_BYTES_MAX: u64 = 256 * MIB;

/// Free pages of a file that is smaller are not worth a pause.
const FREE_BYTES_MAX: u64 = 1024 * MIB;

/// The sizes of a file in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub(super) log: u64,
    pub(super) free: u64,
    pub(super) all: u64,
}

impl Space {
    pub(super) fn risks(self) -> Vec<Risk> {
        let mut risks = Vec::new();
        if self.log > WAL_BYTES_MAX {
            let message = format!(
                "the write-ahead log has {} MiB, so reads become slower and the disk fills: a program reads the file without an end, such as a forgotten `sqlite3`; end it",
                self.log / MIB
            );
            risks.push(Risk { name: "wal", message });
        }
        if self.free > FREE_BYTES_MAX && self.free > self.all / 2 {
            let message = format!(
                "{} MiB of the {} MiB of the file are free: new jobs use them; to return them to the disk, stop the server and run `sqlite3 FILE VACUUM`, which needs as much free space as the rest of the file",
                self.free / MIB,
                self.all / MIB
            );
            risks.push(Risk { name: "free_pages", message });
        }
        risks
    }
}

#[cfg(test)]
mod tests {
    use super::{MIB, Space};

    #[test]
    fn a_long_log_and_many_free_pages_are_risks() {
        let names = |log: u64, free: u64, all: u64| {
            let space = Space { log: log * MIB, free: free * MIB, all: all * MIB };
            space.risks().into_iter().map(|risk| risk.name).collect::<Vec<_>>()
        };
        assert_eq!(names(4, 0, 100), [""; 0]);
        assert_eq!(names(300, 0, 100), ["wal"]);
        assert_eq!(names(0, 900, 1_000), [""; 0], "small");
        assert_eq!(names(0, 2_000, 10_000), [""; 0], "less than half");
        assert_eq!(names(300, 6_000, 10_000), ["wal", "free_pages"]);
    }
}
