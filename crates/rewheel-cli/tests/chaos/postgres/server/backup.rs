//! Dumps a database and restores it elsewhere, as the documentation says.

use super::{Server, run};
use crate::postgres::database::Database;
use std::path::PathBuf;

impl Server {
    /// Dumps a schema of a database, and returns the file.
    pub(crate) fn dump(&self, database: &Database, schema: &str) -> PathBuf {
        let file = self.folder.path().join("rewheel.dump");
        let mut dump = self.command("pg_dump");
        dump.arg(format!("--schema={schema}")).arg("--format=custom");
        run(dump.arg("--file").arg(&file).arg(format!("--dbname={}", database.url)));
        file
    }

    /// Restores a dump into a new database.
    pub(crate) fn restore(&self, database: &Database, file: &std::path::Path) {
        let mut restore = self.command("pg_restore");
        restore.args(["--no-owner", "--exit-on-error"]);
        run(restore.arg(format!("--dbname={}", database.url)).arg(file));
    }
}
