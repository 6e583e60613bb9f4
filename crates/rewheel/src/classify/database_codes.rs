//! Classifies the error codes of databases. No driver is needed for it.

use super::{Category, Class};

/// Not repeated, although the database is to blame: its disk or memory is full until an operator acts.
const FULL: Class = Class::stop(Category::Transient);
const PASSES: Class = Class::retry(Category::Transient);
const BROKEN: Class = Class::retry(Category::Io);
const BUSY: Class = Class::retry(Category::Throttled);
const WRONG: Class = Class::stop(Category::Rejected);
/// The statement took too long. To repeat a slow statement adds load.
const SLOW: Class = Class::stop(Category::Timeout);

impl Class {
    /// Classifies a failure by its SQLSTATE, of any SQL database. The code of the class is the SQLSTATE.
    ///
    /// | SQLSTATE | verdict | category |
    /// |---|---|---|
    /// | 40001, 40P01 and others of class 40, 55P03, 55006: serialization failure, deadlock, lock | retry | `transient` |
    /// | 57P01, 57P02, 57P03, 57P05: the server starts, stops or fails over | retry | `transient` |
    /// | class 08: connection | retry | `io` |
    /// | 53300: too many connections | retry | `throttled` |
    /// | 53200, 58030: out of memory, I/O error of the server | retry | `transient` |
    /// | 53100: disk full | stop | `transient` |
    /// | 57014: the statement was cancelled, for example because it took too long | stop | `timeout` |
    /// | class XX, HY: internal errors, errors without a state of their own | stop | `unknown` |
    /// | any other: the statement or its data is wrong, or the login | stop | `rejected` |
    ///
    /// ```
    /// use rewheel::{Category, Class};
    ///
    /// assert_eq!(Class::of_sqlstate("40P01"), Class::retry(Category::Transient).with_code("40P01"));
    /// assert_eq!(Class::of_sqlstate("23505"), Class::stop(Category::Rejected).with_code("23505"));
    /// ```
    pub fn of_sqlstate(state: &str) -> Class {
        let is_state = state.len() == 5 && state.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let class = match (if is_state { &state[..2] } else { "" }, state) {
            // An integrity constraint, and "statement completion unknown".
            ("40", "40002") => WRONG,
            ("40", "40003") => Class::stop(Category::Unknown),
            ("40", _) | ("55", "55P03" | "55006") => PASSES,
            ("57", "57P01" | "57P02" | "57P03" | "57P05") => PASSES,
            ("57", "57014") => SLOW,
            ("08", _) => BROKEN,
            ("53", "53300") => BUSY,
            ("53", "53200") | ("58", "58030") => PASSES,
            ("53", "53100") => FULL,
            ("XX" | "HY" | "", _) => Class::stop(Category::Unknown),
            _ => WRONG,
        };
        class.with_code(state.to_owned())
    }

    /// Classifies a failure by the error number of MySQL or MariaDB.
    ///
    /// | number | verdict | category |
    /// |---|---|---|
    /// | 1213, 1205, 1020, 1614, 3101, 3572: deadlock, lock wait timeout, conflict | retry | `transient` |
    /// | 1053, 1047, 1836: the server stops, is not ready, or became read-only | retry | `transient` |
    /// | 2002, 2003, 2006, 2013, 1152, 1158 to 1161, 1927, 4031: connection | retry | `io` |
    /// | 1040, 1203, 1226: too many connections | retry | `throttled` |
    /// | 1021, 1114: disk full | stop | `transient` |
    /// | 1317, 1969, 3024: the statement was cancelled or took too long | stop | `timeout` |
    /// | 1105: unknown error | stop | `unknown` |
    /// | any other: the statement or its data is wrong, or the login | stop | `rejected` |
    ///
    /// After 1205 the server has rolled back only the statement: roll the transaction back before you repeat it.
    pub fn of_mysql(number: u16) -> Class {
        let class = match number {
            1213 | 1205 | 1020 | 1614 | 3101 | 3572 | 1053 | 1047 | 1836 => PASSES,
            2002 | 2003 | 2006 | 2013 | 1152 | 1158..=1161 | 1927 | 4031 => BROKEN,
            1040 | 1203 | 1226 => BUSY,
            1021 | 1114 => FULL,
            1317 | 1969 | 3024 => SLOW,
            1105 => Class::stop(Category::Unknown),
            _ => WRONG,
        };
        class.with_code(number)
    }

    /// Classifies a failure by the result code of SQLite, plain or extended.
    ///
    /// | code | verdict | category |
    /// |---|---|---|
    /// | `BUSY` (5), `LOCKED` (6), `PROTOCOL` (15), `SCHEMA` (17), `NOMEM` (7) | retry | `transient` |
    /// | `IOERR` (10) | retry | `io` |
    /// | `FULL` (13), `CANTOPEN` (14), `CORRUPT` (11), `NOTADB` (26) | stop | `io` |
    /// | `INTERRUPT` (9) | stop | `cancelled` |
    /// | any other | stop | `rejected` |
    ///
    /// After `BUSY_SNAPSHOT` (517) only the whole transaction can be repeated.
    pub fn of_sqlite(code: i32) -> Class {
        let class = match code & 0xff {
            5 | 6 | 7 | 15 | 17 => PASSES,
            10 => BROKEN,
            11 | 13 | 14 | 26 => Class::stop(Category::Io),
            9 => Class::stop(Category::Cancelled),
            _ => WRONG,
        };
        class.with_code(u32::try_from(code).unwrap_or_default())
    }

    /// Classifies a failure by the first word of the error of Redis or Valkey.
    ///
    /// | word | verdict | category |
    /// |---|---|---|
    /// | `LOADING`, `BUSY`, `TRYAGAIN`, `CLUSTERDOWN`, `MASTERDOWN`, `NOREPLICAS`, `READONLY`, `UNBLOCKED` | retry | `transient` |
    /// | `MOVED`, `ASK`: the client of a cluster has old information | retry | `transient` |
    /// | `OOM`, `MISCONF`: memory or disk is full | stop | `transient` |
    /// | any other | stop | `rejected` |
    ///
    /// ```
    /// use rewheel::{Class, Verdict};
    ///
    /// assert_eq!(Class::of_redis("LOADING").verdict, Verdict::Retry);
    /// assert_eq!(Class::of_redis("WRONGTYPE").verdict, Verdict::Stop);
    /// ```
    pub fn of_redis(word: &str) -> Class {
        let class = match word {
            "LOADING" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "NOREPLICAS"
            | "READONLY" | "UNBLOCKED" | "MOVED" | "ASK" => PASSES,
            "OOM" | "MISCONF" => FULL,
            _ => WRONG,
        };
        class.with_code(word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, Class};
    use crate::classify::Verdict;

    #[track_caller]
    fn check(class: Class, verdict: Verdict, category: Category) {
        assert_eq!((class.verdict, class.category), (verdict, category), "{:?}", class.code);
    }

    #[test]
    fn sqlstates() {
        let check = |state, verdict, category| check(Class::of_sqlstate(state), verdict, category);
        for state in ["40001", "40P01", "55P03", "57P01", "57P03", "53200"] {
            check(state, Verdict::Retry, Category::Transient);
        }
        check("08006", Verdict::Retry, Category::Io);
        check("53300", Verdict::Retry, Category::Throttled);
        check("53100", Verdict::Stop, Category::Transient);
        check("57014", Verdict::Stop, Category::Timeout);
        for state in ["23505", "42601", "28P01", "3D000", "40002", "57P04", "25006"] {
            check(state, Verdict::Stop, Category::Rejected);
        }
        for state in ["", "X", "XX000", "HY000", "40003", "ü"] {
            check(state, Verdict::Stop, Category::Unknown);
        }
    }

    #[test]
    fn numbers_of_mysql() {
        let check = |number, verdict, category| check(Class::of_mysql(number), verdict, category);
        for number in [1213, 1205] {
            check(number, Verdict::Retry, Category::Transient);
        }
        for number in [2006, 2013, 1160] {
            check(number, Verdict::Retry, Category::Io);
        }
        check(1040, Verdict::Retry, Category::Throttled);
        check(1114, Verdict::Stop, Category::Transient);
        check(3024, Verdict::Stop, Category::Timeout);
        for number in [0, 1062, 1045, 1064, u16::MAX] {
            check(number, Verdict::Stop, Category::Rejected);
        }
    }

    #[test]
    fn codes_of_sqlite() {
        let check = |code, verdict, category| check(Class::of_sqlite(code), verdict, category);
        for code in [5, 6, 261, 517] {
            check(code, Verdict::Retry, Category::Transient);
        }
        check(10 | (3 << 8), Verdict::Retry, Category::Io);
        check(13, Verdict::Stop, Category::Io);
        check(9, Verdict::Stop, Category::Cancelled);
        for code in [0, -1, 1, 19, 2067] {
            check(code, Verdict::Stop, Category::Rejected);
        }
    }

    #[test]
    fn words_of_redis() {
        let check = |word, verdict, category| check(Class::of_redis(word), verdict, category);
        for word in ["LOADING", "TRYAGAIN", "CLUSTERDOWN", "MOVED", "READONLY"] {
            check(word, Verdict::Retry, Category::Transient);
        }
        check("OOM", Verdict::Stop, Category::Transient);
        for word in ["", "ERR", "WRONGTYPE", "loading", "NOAUTH"] {
            check(word, Verdict::Stop, Category::Rejected);
        }
    }
}
