//! Tests the list of holders, and statistics.

use super::served::{config, served};
use serde_json::json;

#[tokio::test]
async fn who_runs_and_how_it_goes_is_told() {
    served(config(), async |api| {
        api.submit(r#","delay":"1h""#).await;
        let holders = api.get("/v1/holders").await;
        assert_eq!(holders.status, 200, "{holders:?}");
        let holder = &holders.body["items"][0];
        assert_eq!((&holder["state"], &holder["here"]), (&json!("alive"), &json!(true)));
        assert_eq!((&holder["lease_ttl"], &holder["died"]), (&json!("10s"), &json!(null)));
        let stats = api.get("/v1/stats").await.body;
        assert_eq!(stats["jobs"], json!({"scheduled": 1, "leased": 0, "paused": 0, "dead": 0}));
        assert_eq!(
            (&stats["holders"]["alive"], &stats["here"]["holder"]),
            (&json!(1), &holder["id"])
        );
        assert_eq!(stats["here"]["concurrency"], stats["here"]["concurrency_free"]);
        assert!(stats["as_of"].is_string() && stats["approximate"] == false);
        assert!(stats["oldest_due"].is_string() && stats["here"]["decisions"] == json!([]));
        // A small number of jobs is counted for each request.
        api.submit(r#","delay":"1h""#).await;
        assert_eq!(api.get("/v1/stats").await.body["jobs"]["scheduled"], 2);
        for bad in ["/v1/holders?limit=0", "/v1/stats?all=1"] {
            assert_eq!(api.get(bad).await.problem(), "bad_query");
        }
    })
    .await;
}

#[tokio::test]
async fn every_part_says_how_it_is() {
    served(config(), async |api| {
        let health = api.get("/health").await;
        assert_eq!((health.status, &health.body["ok"]), (200, &json!(true)));
        for part in ["store", "jobs", "engine", "lease", "concurrency"] {
            let part = &health.body["components"][part];
            assert!(part["ok"] == true && part["message"].is_string(), "{health:?}");
            assert_eq!(part["state"], "ok");
        }
    })
    .await;
}

#[tokio::test]
async fn jobs_that_cannot_be_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rewheel.db");
    let mut config = config();
    config.store.url = format!("sqlite://{}", file.display());
    served(config, async |api| {
        let set_aside =
            "INSERT INTO unreadable (job, at_ms, reason) VALUES (zeroblob(16), 1, 'a backoff')";
        rusqlite::Connection::open(&file).unwrap().execute_batch(set_aside).unwrap();
        let health = api.get("/health").await;
        assert_eq!((health.status, &health.body["state"]), (200, &json!("degraded")));
        let jobs = &health.body["components"]["jobs"];
        assert_eq!(jobs["state"], "degraded");
        assert!(
            jobs["message"].as_str().is_some_and(|text| text.contains("cannot be read")),
            "{jobs}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_disk_that_fills_up_is_told_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.store.url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    config.server.disk_free_bytes_min = u64::MAX;
    served(config, async |api| {
        let health = api.get("/health").await;
        assert_eq!((health.status, &health.body["ok"]), (200, &json!(true)), "it still works");
        let disk = &health.body["components"]["disk"];
        assert_eq!(
            (&health.body["state"], &disk["state"]),
            (&json!("degraded"), &json!("degraded"))
        );
        assert!(
            disk["message"].as_str().is_some_and(|text| text.contains("MiB are free, less than")),
            "{disk}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_history_tells_what_happened_from_what_is_unknown() {
    served(config(), async |api| {
        let points = loop {
            let history = api.get("/v1/history?since=10m").await;
            assert_eq!(history.status, 200, "{history:?}");
            assert_eq!(history.body["bounds_ms"].as_array().map(Vec::len), Some(16));
            let points = history.body["points"].as_array().unwrap().clone();
            // A node reports when it starts.
            if points.last().is_some_and(|point| point["counts"]["submitted"] == 0) {
                break points;
            }
        };
        assert!((10..=12).contains(&points.len()), "{}", points.len());
        let first = &points[0];
        assert_eq!((&first["counts"], &first["reported"]), (&json!(null), &json!(0)));
        let last = points.last().unwrap();
        assert_eq!((&last["minutes"], &last["reported"]), (&json!(1), &json!(1)));
        assert_eq!(last["counts"]["duration"]["p95_ms"], json!(null));
        let other = api.get("/v1/history?kind=other&since=1m").await.body;
        let last = other["points"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["counts"]["submitted"], 0, "{last}");
        let day = api.get("/v1/history").await.body;
        // The first hours are in slots of five minutes that begin at round times.
        assert!((432..=438).contains(&day["points"].as_array().unwrap().len()));
        for bad in
            ["since=10s", "since=25h", "since=soon", "kind=No!", "until=1h", "since=1h&since=2h"]
        {
            assert_eq!(
                api.get(&format!("/v1/history?{bad}")).await.problem(),
                "bad_query",
                "{bad}"
            );
        }
    })
    .await;
}
