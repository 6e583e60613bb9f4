//! Checks that no statement compares every row of one set with every row of another.
//!
//! Sessions have no hash joins and no merge joins (see `GUARDS`), so a join of two sets without an index becomes a nested loop that reads
//! the second set again for each row of the first: with a batch of a thousand jobs, a million comparisons.

use super::super::GUARDS;
use super::{ALL, ALL_OF_NEW_JOBS, SETTLE_KEEP_RESULTS, Statement};
use crate::PostgresStore;
use rewheel_testkit::Schema;
use serde_json::Value;
use std::collections::HashMap;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Sets that a loop may read again, since they are small in every call.
const SMALL: &[(&str, &str)] = &[
    // The lanes of one tenant, read for each job of a claim that is younger than two seconds.
    ("sql/reserve.sql", "mine_2"),
    // Read for each unreadable job: there are few, or the operator is told.
    ("sql/reserve.sql", "mine_5"),
];

#[tokio::test]
async fn no_statement_compares_two_sets_row_by_row() {
    let schema = Schema::fresh();
    PostgresStore::open(schema.url()).await.expect("the store opens");
    let client = schema.connect().await;
    for (name, value) in GUARDS {
        client.batch_execute(&format!("SET {name} = {value}")).await.expect("a setting");
    }
    let of_new_jobs = ALL_OF_NEW_JOBS
        .iter()
        .flat_map(|(file, forms)| forms.0.iter().map(move |sql| (*file, sql)));
    let all = ALL.iter().map(|(file, sql)| (*file, *sql)).chain(of_new_jobs);
    let mut found = Vec::new();
    for (file, sql) in all.chain([("sql/settle_results.sql", &SETTLE_KEEP_RESULTS)]) {
        let Some(plan) = plan(&client, schema.name(), sql).await else { continue };
        let mut sets = HashMap::new();
        collect_sets(&plan, &mut sets);
        loops(&plan, false, &sets, &mut |set| {
            if !SMALL.contains(&(file, set)) {
                found.push(format!("{file}: {set}"));
            }
        });
    }
    assert!(
        found.is_empty(),
        "sets that a nested loop reads for each row of another set: {found:#?}"
    );
}

/// Returns the plan of a statement, whatever its parameters are; `None` if it is no query.
async fn plan(client: &Client, schema: &str, sql: &Statement) -> Option<Value> {
    let text = sql.text.replace("rewheel.", &format!("{schema}."));
    let types: Vec<&str> = sql.types.iter().map(|kind| kind.name()).collect();
    let nulls = vec!["NULL"; types.len()].join(", ");
    let (types, nulls) = match types.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("({})", types.join(", ")), format!("({nulls})")),
    };
    let prepared = client.batch_execute(&format!("PREPARE one {types} AS {text}")).await;
    // BEGIN, SAVEPOINT and the like have no plan.
    prepared.ok()?;
    let explain = format!("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE one {nulls}");
    let answer =
        client.simple_query(&explain).await.unwrap_or_else(|error| panic!("{error}: {text}"));
    client.batch_execute("DEALLOCATE one").await.expect("forgotten");
    let lines = answer.iter().filter_map(|message| {
        if let SimpleQueryMessage::Row(row) = message { row.get(0) } else { None }
    });
    let plans: Value = serde_json::from_str(&lines.collect::<String>()).expect("a plan");
    Some(plans[0]["Plan"].clone())
}

fn children(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["Plans"].as_array().into_iter().flatten()
}

/// Finds how the sets that a statement names (`WITH … AS`) are made.
fn collect_sets<'p>(plan: &'p Value, sets: &mut HashMap<&'p str, &'p Value>) {
    if let Some(name) = plan["Subplan Name"].as_str().and_then(|name| name.strip_prefix("CTE ")) {
        sets.insert(name, plan);
    }
    children(plan).for_each(|child| collect_sets(child, sets));
}

/// Reports each set that is read again for every row of another set.
fn loops<'p>(
    plan: &'p Value,
    is_repeated: bool,
    sets: &HashMap<&str, &'p Value>,
    report: &mut impl FnMut(&'p str),
) {
    let node = plan["Node Type"].as_str().unwrap_or_default();
    if is_repeated && is_set(plan) && !yields_one_row(plan, sets) {
        report(plan["Alias"].as_str().unwrap_or_default());
    }
    let mut has_rows = false;
    for child in children(plan) {
        let relationship = child["Parent Relationship"].as_str();
        // A set is made once. A subplan is hashed or depends on the row; neither is a join.
        let is_part = matches!(relationship, Some("Outer" | "Inner" | "Member" | "Subquery"));
        let is_inner = node == "Nested Loop" && relationship == Some("Inner") && has_rows;
        loops(child, is_part && (is_repeated || is_inner), sets, report);
        if relationship == Some("Outer") {
            has_rows = !yields_one_row(child, sets);
        }
    }
}

/// Returns whether a part of a plan reads all rows of a set. The elements of an array in a row of another set belong to that row.
fn is_set(plan: &Value) -> bool {
    match plan["Node Type"].as_str() {
        Some("CTE Scan") => true,
        Some("Function Scan") => {
            plan["Function Call"].as_str().is_some_and(|call| call.contains('$'))
        }
        _ => false,
    }
}

/// Returns whether a part of a plan gives at most one row.
fn yields_one_row(plan: &Value, sets: &HashMap<&str, &Value>) -> bool {
    match plan["Node Type"].as_str() {
        Some("CTE Scan") => plan["CTE Name"]
            .as_str()
            .and_then(|name| sets.get(name))
            .is_some_and(|set| is_one_row(set)),
        Some("Nested Loop") => children(plan)
            .filter(|child| {
                matches!(child["Parent Relationship"].as_str(), Some("Outer" | "Inner"))
            })
            .all(|child| yields_one_row(child, sets)),
        _ => is_one_row(plan),
    }
}

/// Returns whether a set has at most one row: a value, a count, or a row with a certain number.
fn is_one_row(plan: &Value) -> bool {
    match plan["Node Type"].as_str() {
        Some("Result") => children(plan).all(|child| child["Parent Relationship"] != "Outer"),
        Some("Aggregate") => plan["Strategy"] == "Plain",
        Some("LockRows" | "Subquery Scan" | "ModifyTable") => children(plan)
            .filter(|child| child["Parent Relationship"] != "InitPlan")
            .all(is_one_row),
        Some("Index Scan" | "Index Only Scan") => plan["Plan Rows"].as_f64() == Some(1.0),
        _ => false,
    }
}
