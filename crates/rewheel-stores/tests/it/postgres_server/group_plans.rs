//! Tests that statements about groups read only the rows they need, whatever the table statistics say.

use super::support::{Node, counted, named, until};
use rewheel_core::store::{Filter, PageRequest, ReadStore, Store};
use rewheel_core::{GroupKey, NewJob};
use rewheel_testkit::Schema;

/// How many rows may be read where tens of thousands exist.
const FEW: i64 = 2_000;

/// The server's count of rows that were read from tables about groups.
async fn rows_read(schema: &Schema) -> i64 {
    let (visitor, name) = (schema.connect().await, schema.name());
    // A connection reports its statistics when it ends.
    let connections =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
    until(&visitor, &connections, 0).await;
    let read = format!(
        "SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes
                  WHERE schemaname = '{name}' AND relname LIKE 'group%')::bigint
              + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
                  WHERE schemaname = '{name}' AND relname LIKE 'group%')::bigint"
    );
    counted(&visitor, &read).await
}

/// Opens a node beside other members of groups, which `fill` stores. Returns how many rows it reads in `work`.
async fn cost(fill: &str, work: impl AsyncFnOnce(&Node)) -> i64 {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    node.store.close().await.expect("it closes");
    let fill = fill.replace("s.", &format!("{}.", schema.name()));
    {
        let filler = schema.connect().await;
        filler.batch_execute(&fill).await.expect("rows");
        let pid = counted(&filler, "SELECT pg_backend_pid()::bigint").await;
        drop(filler);
        // A connection reports its statistics when it ends.
        let connection = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        let visitor = schema.connect().await;
        until(&visitor, &connection, 0).await;
    }
    let before = rows_read(&schema).await;
    let node = Node::open(&named(&schema, "")).await;
    work(&node).await;
    node.store.close().await.expect("it closes");
    rows_read(&schema).await - before
}

fn grouped(node: &Node) -> NewJob {
    NewJob { group_key: GroupKey::parse("customer-17").ok(), ..node.job("mail") }
}

#[tokio::test]
async fn a_list_of_a_group_reads_no_other_group() {
    let fill = "INSERT INTO s.group_members (job, group_key, kind, tenant, dead)
                SELECT gen_random_uuid(), 'other-' || n, 'mail', '', n % 2 = 0 FROM generate_series(1, 30000) AS n";
    let read = cost(fill, async |node| {
        node.insert(&[grouped(node), grouped(node)]).await;
        let filter = Filter { group_key: GroupKey::parse("customer-17").ok(), ..Filter::default() };
        let page = node.store.list(&filter, &PageRequest::first(10)).await.expect("a page");
        assert_eq!(page.items.len(), 2);
    })
    .await;
    assert!(read < FEW, "{read} rows were read");
}

#[tokio::test]
async fn a_release_reads_no_dead_letters() {
    let fill = "INSERT INTO s.group_members (job, group_key, kind, tenant, dead)
                SELECT gen_random_uuid(), 'customer-17', 'mail', '', true FROM generate_series(1, 30000) AS n";
    let read = cost(fill, async |node| {
        let jobs = [grouped(node), grouped(node), grouped(node)];
        node.insert(&jobs).await;
        let holder = node.holder().await;
        for job in jobs {
            let lease = node.claim_only(holder, "mail").await.lease();
            assert_eq!(lease.job, job.id);
            node.succeed(holder, lease).await;
        }
        assert_eq!(node.store.stuck_groups(10).await.expect("a list"), []);
    })
    .await;
    assert!(read < FEW, "{read} rows were read");
}

#[tokio::test]
async fn a_count_of_stuck_groups_reads_lines_and_not_members() {
    let fill = "INSERT INTO s.group_members (job, group_key, kind, tenant)
                SELECT gen_random_uuid(), 'other-' || n % 10, 'mail', '' FROM generate_series(1, 30000) AS n";
    let read = cost(fill, async |node| {
        assert_eq!(node.store.stuck_groups(100).await.expect("a list").len(), 10);
    })
    .await;
    assert!(read < FEW, "{read} rows were read");
}
