//! The list of a job's columns, from which statements and positions are made.
//!
//! Each store has one such list. Its SQL files contain `{live_job}` and the like in place of column names, see
//! [`JobColumns::meaning`], and its code reads a column at [`JobColumns::position`], which is computed when the program is compiled.

/// A column that every table of jobs has. `S` says how a store writes the value of a new job.
pub(crate) struct Column<S> {
    name: &'static str,
    role: Role<S>,
}

/// Which statements write a column without naming it.
enum Role<S> {
    /// Given with a new job: inserts store it, and moves between tables copy it.
    Submitted(S),
    /// Set by the store: moves between tables copy it.
    Moved,
    /// None: every statement that inserts or moves a job names it and says what becomes of it.
    Named,
}

impl<S> Column<S> {
    pub(crate) const fn submitted(name: &'static str, value: S) -> Column<S> {
        Column { name, role: Role::Submitted(value) }
    }

    pub(crate) const fn moved(name: &'static str) -> Column<S> {
        Column { name, role: Role::Moved }
    }

    pub(crate) const fn named(name: &'static str) -> Column<S> {
        Column { name, role: Role::Named }
    }

    fn is_submitted(&self) -> bool {
        matches!(self.role, Role::Submitted(_))
    }

    fn is_moved(&self) -> bool {
        matches!(self.role, Role::Submitted(_) | Role::Moved)
    }
}

/// A column that tells a job's state, with the SQL that reads it. A claim does not read it: its jobs are all leased.
pub(crate) struct StatusColumn {
    pub(crate) name: &'static str,
    /// Reads it from the hot table.
    pub(crate) live: &'static str,
    /// Reads it from the dead letters and the finished jobs.
    pub(crate) ended: &'static str,
}

/// The columns of a job in the order in which statements return them.
pub(crate) struct JobColumns<S: 'static> {
    pub(crate) columns: &'static [Column<S>],
    /// They follow the others.
    pub(crate) status: &'static [StatusColumn],
    /// The SQL that stands for a payload that is not read.
    pub(crate) no_payload: &'static str,
}

impl<S> JobColumns<S> {
    /// Returns where statements return a column. Call it in a constant: then an unknown name does not compile.
    pub(crate) const fn position(&self, name: &str) -> usize {
        let mut at = 0;
        while at < self.columns.len() {
            if is_same(self.columns[at].name, name) {
                return at;
            }
            at += 1;
        }
        let mut at = 0;
        while at < self.status.len() {
            if is_same(self.status[at].name, name) {
                return self.columns.len() + at;
            }
            at += 1;
        }
        panic!("a job has no such column");
    }

    /// Returns what a name in braces stands for in an SQL file.
    pub(crate) fn meaning(&self, name: &str) -> Option<String> {
        let names = |is_wanted: fn(&Column<S>) -> bool| {
            let wanted = self.columns.iter().filter(|column| is_wanted(column));
            wanted.map(|column| column.name).collect::<Vec<_>>().join(", ")
        };
        Some(match name {
            // Reads a job of the hot table.
            "live_job" => self.read("jobs.", Some(|status| status.live), true),
            "live_job_without_payload" => self.read("jobs.", Some(|status| status.live), false),
            // Reads a job of the other two tables.
            "ended_job" => self.read("", Some(|status| status.ended), true),
            "ended_job_without_payload" => self.read("", Some(|status| status.ended), false),
            // Reads a job that is being claimed.
            "claimed_job" => self.read("jobs.", None, true),
            // What an insert stores as it was given.
            "submitted" => names(Column::is_submitted),
            // Sets what an insert stores as it was given, from the row `given` of another submit. The id of the job stays.
            "replaced" => {
                let replaced = self.columns.iter().filter(|column| column.is_submitted());
                let replaced = replaced.filter(|column| column.name != "id");
                replaced
                    .map(|column| format!("{0} = given.{0}", column.name))
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            // What a move from table to table copies as it is.
            "moved" => names(Column::is_moved),
            _ => return None,
        })
    }

    fn read(
        &self,
        table: &str,
        status: Option<fn(&StatusColumn) -> &'static str>,
        payload: bool,
    ) -> String {
        let facts = self.columns.iter().map(|column| match column.name {
            "payload" if !payload => format!("{} AS payload", self.no_payload),
            name => format!("{table}{name}"),
        });
        let told = self.status.iter().filter_map(|column| {
            status.map(|status| format!("{} AS {}", status(column), column.name))
        });
        facts.chain(told).collect::<Vec<_>>().join(", ")
    }

    /// Returns how many columns a statement returns for `{claimed_job}`.
    pub(crate) const fn claimed(&self) -> usize {
        self.columns.len()
    }

    /// Returns how many columns `{submitted}` are.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) const fn submitted(&self) -> usize {
        let (mut at, mut submitted) = (0, 0);
        while at < self.columns.len() {
            if matches!(self.columns[at].role, Role::Submitted(_)) {
                submitted += 1;
            }
            at += 1;
        }
        submitted
    }

    /// Returns how to write the values of a new job, in the order of `{submitted}`.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'static str, &'static S)> {
        self.columns.iter().filter_map(|column| match &column.role {
            Role::Submitted(value) => Some((column.name, value)),
            Role::Moved | Role::Named => None,
        })
    }
}

/// Compares two texts, also in constants.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
pub(crate) mod testing {
    use super::JobColumns;
    use std::collections::BTreeSet;

    /// A table of jobs with the columns that are not part of a [`Job`](rewheel_core::Job).
    pub(crate) struct JobTable {
        pub(crate) name: &'static str,
        pub(crate) is_live: bool,
        pub(crate) internal: &'static [&'static str],
    }

    impl<S> JobColumns<S> {
        /// Compares the list with the columns that a table really has.
        pub(crate) fn check_table(&self, table: &JobTable, real: &[String]) {
            let columns = self.columns.iter().map(|column| column.name);
            let status = self.status.iter().filter(|column| match table.is_live {
                true => column.live == format!("jobs.{}", column.name),
                false => column.ended == column.name,
            });
            let listed: BTreeSet<&str> = columns
                .chain(status.map(|column| column.name))
                .chain(table.internal.iter().copied())
                .collect();
            let real: BTreeSet<&str> = real.iter().map(String::as_str).collect();
            let unlisted: Vec<_> = real.difference(&listed).collect();
            let missing: Vec<_> = listed.difference(&real).collect();
            assert!(
                unlisted.is_empty() && missing.is_empty(),
                "{}: the list of columns lacks {unlisted:?}, the table lacks {missing:?}",
                table.name
            );
        }

        /// Checks that a statement gives a value to every column of a job in the table that it inserts into.
        pub(crate) fn check_insert(&self, text: &str, table: &str, except: &[&str]) {
            let start = format!("INTO {table}");
            let (_, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{start}: {text}"));
            let (_, rest) = rest.split_once('(').expect("a list of columns");
            let (list, _) = rest.split_once(')').expect("a list of columns");
            let given: Vec<&str> = list.split(',').map(str::trim).collect();
            let unique: BTreeSet<&str> = given.iter().copied().collect();
            assert_eq!(unique.len(), given.len(), "a column twice: {text}");
            for column in self.columns {
                let is_excepted = except.contains(&column.name);
                assert!(unique.contains(column.name) != is_excepted, "{}: {text}", column.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, JobColumns, StatusColumn};
    use crate::template::fill_in;

    const COLUMNS: JobColumns<u8> = JobColumns {
        columns: &[
            Column::submitted("id", 1),
            Column::named("due_ms"),
            Column::moved("created_ms"),
            Column::submitted("payload", 2),
        ],
        status: &[StatusColumn { name: "ended_ms", live: "NULL", ended: "ended_ms" }],
        no_payload: "NULL",
    };

    #[test]
    fn each_name_in_braces_is_a_list_of_columns() {
        let filled = |text: &str| fill_in(text, |name| COLUMNS.meaning(name));
        assert_eq!(
            filled("SELECT {live_job} FROM jobs"),
            "SELECT jobs.id, jobs.due_ms, jobs.created_ms, jobs.payload, NULL AS ended_ms FROM jobs"
        );
        assert_eq!(
            filled("{ended_job_without_payload}"),
            "id, due_ms, created_ms, NULL AS payload, ended_ms AS ended_ms"
        );
        assert_eq!(filled("{claimed_job}"), "jobs.id, jobs.due_ms, jobs.created_ms, jobs.payload");
        assert_eq!(filled("({submitted}) {moved};"), "(id, payload) id, created_ms, payload;");
        assert_eq!(filled("SET {replaced}"), "SET payload = given.payload");
    }

    #[test]
    fn an_unknown_name_stays_for_the_database_to_reject() {
        let filled = |text: &str| fill_in(text, |name| COLUMNS.meaning(name));
        assert_eq!(filled("{jobs} {moved} {"), "{jobs} id, created_ms, payload {");
        assert_eq!(filled("{{submitted}"), "{id, payload");
    }

    #[test]
    fn positions_are_those_in_the_list() {
        assert_eq!(COLUMNS.position("id"), 0);
        assert_eq!(COLUMNS.position("payload"), 3);
        assert_eq!(COLUMNS.position("ended_ms"), COLUMNS.claimed());
        assert_eq!(COLUMNS.values().map(|(name, _)| name).collect::<Vec<_>>(), ["id", "payload"]);
    }
}
