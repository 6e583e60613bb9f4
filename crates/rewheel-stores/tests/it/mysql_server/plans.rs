//! Tests that no statement scans or sorts a table that grows, whatever the statistics say.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};
use rewheel_stores::MysqlStore;
use rewheel_testkit::Database;
use std::path::Path;

/// Rows in each large table: a scan of so many is never the best plan.
const MANY: u32 = 20_000;

/// Jobs that are due in the future, in the lanes that have due jobs.
const FUTURE: u32 = 100_000;

/// What a statement may read of a large table, by the server's estimate: its lists have three values, and its limits are 1.
const ROWS_MAX: u64 = 1_000;

/// Statements that read whole tables or indexes, because they count all rows, or because the table stays small.
const WHOLE: [&str; 6] = ["books", "tally", "sample_now", "index_names", "tokens", "named_lanes"];

/// Tables that stay small, or whose first rows are read in order.
const SMALL: [&str; 17] = [
    "given",
    "holders",
    "renewals",
    "kinds",
    "lanes",
    "limits",
    "reserved",
    "claims",
    "claim_ends",
    "kind_names",
    "ledger",
    "unreadable",
    "wanted",
    "epochs",
    "steps",
    "tokens",
    "innodb_trx",
];

/// Returns each statement that reads or changes rows, with parameters instead of lists.
fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mysql/sql");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder of statements") {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        let lines = text.lines().map(|line| line.split_once("-- ").map_or(line, |(sql, _)| sql));
        let sql = lines.collect::<Vec<_>>().join("\n").trim().trim_end_matches(';').to_owned();
        let is_insert = ["INSERT", "REPLACE"].iter().any(|verb| sql.starts_with(verb));
        let reads = !is_insert || sql.contains("SELECT");
        if !reads || WHOLE.contains(&name.as_str()) || sql.contains("{submitted") {
            continue;
        }
        let columns = [
            ("{live_job}", "jobs.*"),
            ("{live_job_without_payload}", "jobs.*"),
            ("{ended_job}", "*"),
            ("{ended_job_without_payload}", "*"),
            ("{claimed_job}", "jobs.*"),
            ("{list}", "?,?,?"),
            ("{moved}", "id, created_ms, payload"),
        ];
        let filled = columns.iter().fold(sql, |sql, (name, meaning)| sql.replace(name, meaning));
        found.push((name, filled));
    }
    found.sort();
    found
}

/// Returns a value for each parameter: a number behind LIMIT, otherwise a text, which the server takes for what the column is.
fn values(sql: &str) -> Vec<Value> {
    let parts: Vec<&str> = sql.split('?').collect();
    let before = &parts[..parts.len() - 1];
    let is_limit = |part: &str| part.trim_end().ends_with("LIMIT");
    before.iter().map(|part| if is_limit(part) { 1.into() } else { "1".into() }).collect()
}

/// Returns what is wrong with the plans of all statements.
async fn complaints(connection: &mut Conn) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, sql) in statements() {
        let explain = format!("EXPLAIN {sql}");
        let rows: Vec<Row> = match connection.exec(explain.as_str(), values(&sql)).await {
            Ok(rows) => rows,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        for row in rows {
            let text = |column: &str| row.get::<Option<String>, _>(column).flatten();
            let (table, access) = (text("table").unwrap_or_default(), text("type"));
            let table = table.trim_start_matches("rewheel_");
            let extra = text("Extra").unwrap_or_default();
            let is_large = !table.is_empty() && !table.starts_with('<') && !SMALL.contains(&table);
            let estimate = estimate(&row);
            // A range that a limit ends soon is estimated as a whole; a whole index is estimated up to the limit.
            let is_ended = access.as_deref() != Some("index") && sql.contains("LIMIT");
            let reads_many = estimate > ROWS_MAX && !is_ended;
            let scans = access.as_deref() == Some("ALL") || reads_many;
            if is_large && (scans || extra.contains("filesort")) {
                wrong.push(format!("{name}: {table} {access:?} {estimate} rows {extra}"));
            }
        }
    }
    wrong
}

/// Returns how many rows the server expects to read.
fn estimate(row: &Row) -> u64 {
    let text = match row.get::<Value, _>("rows") {
        Some(Value::Bytes(text)) => String::from_utf8_lossy(&text).into_owned(),
        Some(Value::Int(rows)) => rows.to_string(),
        Some(Value::UInt(rows)) => rows.to_string(),
        Some(_) | None => String::new(),
    };
    text.parse().unwrap_or(0)
}

async fn fill(connection: &mut Conn) {
    let numbers_to = |last: u32| {
        format!(
            "(WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {last}) SELECT n FROM n) AS numbers"
        )
    };
    let (numbers, future) = (numbers_to(MANY), numbers_to(FUTURE));
    connection
        .query_drop(format!("SET SESSION max_recursive_iterations = {FUTURE}"))
        .await
        .expect("MariaDB");
    let job = "due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted, created_ms, payload";
    let new = "n, 'submitted', 0, 1, 0, 0, 0, 0, n, ''";
    let id = "UNHEX(LPAD(HEX(n), 32, '0'))";
    for insert in [
        format!(
            "INSERT INTO rewheel_jobs (lane, place, id, state, {job}) SELECT 1 + n % 3, n, {id}, 0, {new} FROM {numbers}"
        ),
        // Behind all others in their lanes.
        format!(
            "INSERT INTO rewheel_jobs (lane, place, id, state, {job}) SELECT 1 + n % 3, (1 << 62) + n, UNHEX(LPAD(HEX(n + {MANY}), 32, '0')), 0, {new} FROM {future}"
        ),
        format!(
            "INSERT INTO rewheel_dead (id, lane, state, ended_ms, {job}) SELECT {id}, 1, 'dead', n, {new} FROM {numbers}"
        ),
        format!(
            "INSERT INTO rewheel_finished (id, lane, state, ended_ms, expires_ms, {job}) SELECT {id}, 1, 'succeeded', n, n, {new} FROM {numbers}"
        ),
        format!(
            "INSERT INTO rewheel_keys (name, job, payload_hash, expires_ms) SELECT UNHEX(LPAD(HEX(n), 64, '0')), {id}, UNHEX(REPEAT('00', 32)), n FROM {numbers}"
        ),
        format!(
            "INSERT INTO rewheel_audit (at_ms, who, what, job, `before`, `after`) SELECT n, '', '', {id}, '', '' FROM {numbers}"
        ),
        format!("INSERT INTO rewheel_results (job, expires_ms) SELECT {id}, n FROM {numbers}"),
        format!(
            "INSERT INTO rewheel_attempts (job, attempt, fence, holder, started_ms, duration_ms, category, message, decision) SELECT {id}, 1, 1, {id}, 1, 1, 'io', '', 'retry' FROM {numbers}"
        ),
    ] {
        connection.query_drop(insert).await.expect("rows");
    }
}

#[tokio::test]
async fn no_statement_scans_or_sorts_a_table_that_grows() {
    let database = Database::fresh();
    drop(MysqlStore::open(database.url()).await.expect("a fresh database opens"));
    let mut connection = database.connect().await;
    for setting in
        ["in_predicate_conversion_threshold = 0", "TRANSACTION ISOLATION LEVEL READ COMMITTED"]
    {
        // MySQL does not have the first.
        let _ = connection.query_drop(format!("SET SESSION {setting}")).await;
    }
    let checked = statements().len();
    assert!(checked > 100, "{checked} statements were found");
    let empty = complaints(&mut connection).await;
    assert!(empty.is_empty(), "on empty tables: {empty:#?}");
    fill(&mut connection).await;
    let filled = complaints(&mut connection).await;
    assert!(filled.is_empty(), "with old statistics: {filled:#?}");
    let analyze = "ANALYZE TABLE rewheel_jobs, rewheel_dead, rewheel_finished, rewheel_keys, rewheel_audit, rewheel_results, rewheel_attempts";
    connection.query_drop(analyze).await.expect("statistics");
    let analyzed = complaints(&mut connection).await;
    assert!(analyzed.is_empty(), "with new statistics: {analyzed:#?}");
}
