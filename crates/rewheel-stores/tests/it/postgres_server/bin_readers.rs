//! Tests of transactions that keep a bin of finished jobs in use.

use super::bins::{MINUTE, SHORT, Scene};
use super::support::counted;
use rewheel_core::store::Store;

/// An operator learns which transaction keeps a bin for too long.
#[tokio::test]
async fn a_bin_that_stays_in_use_is_a_risk() {
    let scene = Scene::new().await;
    let node = &scene.node;
    let risk = async || {
        let risks = node.store.risks().await.expect("risks");
        risks.into_iter().find(|risk| risk.name == "finished_bins").map(|risk| risk.message)
    };
    scene.fill(20, SHORT).await;
    let reader = scene.schema.connect().await;
    let read = format!(
        "SET application_name = 'report'; BEGIN; SELECT count(*) FROM {}.finished",
        scene.schema.name()
    );
    reader.batch_execute(&read).await.expect("a report");
    let pid = counted(&reader, "SELECT pg_backend_pid()::bigint").await;
    scene.wait(SHORT + 2 * MINUTE);
    node.prune_all().await;
    assert_eq!(risk().await, None, "a report may take some minutes");
    scene.wait(15 * MINUTE);
    node.prune_all().await;
    let message = risk().await.expect("a risk");
    let who = format!("process {pid} (report, idle in transaction) keeps it in use");
    assert!(message.contains(&who), "{message}");
    reader.batch_execute("COMMIT").await.expect("the report ends");
    let message = risk().await.expect("a risk");
    assert!(message.contains("no transaction uses it now"), "{message}");
    node.prune_all().await;
    assert_eq!(risk().await, None);
}
