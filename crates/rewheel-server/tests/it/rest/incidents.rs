//! Tests reading incidents.

use super::served::{config, served};
use serde_json::json;

#[tokio::test]
async fn failures_of_one_cause_are_one_incident() {
    served(config(), async |api| {
        // No server listens on this port.
        let settings = json!({
            "runner": "callback", "attempts_max": 1,
            "callback": {"url": "http://127.0.0.1:1/hook/{payload.order}", "allow": ["127.0.0.0/8"]},
        });
        let put = api.put("/v1/kinds/parcel", &settings.to_string()).await;
        assert_eq!(put.status, 200, "{put:?}");
        let empty = api.get("/v1/incidents").await;
        assert_eq!(empty.body, json!({"items":[],"next":null,"complete":true}));
        let mut ids = Vec::new();
        for order in 0..3 {
            let job = json!({"kind": "parcel", "payload": {"order": order}}).to_string();
            ids.push(api.post("/v1/jobs", &job).await.body["id"].clone());
        }
        let incidents = loop {
            let found = api.get("/v1/incidents?kind=parcel").await.body;
            if found["items"][0]["dead"] == 3 {
                break found;
            }
        };
        assert_eq!(incidents["items"].as_array().map(Vec::len), Some(1), "{incidents}");
        let incident = &incidents["items"][0];
        let what = (&incident["kind"], &incident["category"], &incident["count"]);
        assert_eq!(what, (&json!("parcel"), &json!("io"), &json!(3)));
        assert_eq!(incident["examples"].as_array().map(Vec::len), Some(3));
        assert!(incident["examples"].as_array().is_some_and(|some| some.contains(&ids[0])));
        assert!(incident["first_seen"].as_str() <= incident["last_seen"].as_str());
        let id = incident["id"].as_str().unwrap_or_default();
        let one = api.get(&format!("/v1/incidents/{id}")).await;
        let mut expected = incident.clone();
        expected["complete"] = json!(true);
        assert_eq!((one.status, &one.body), (200, &expected));
        let job = api.get(&format!("/v1/jobs/{}", ids[0].as_str().unwrap())).await;
        assert_eq!(job.body["incident"], json!(id));
        let jobs = api.get(&format!("/v1/jobs?incident={id}&state=dead&attempt=1")).await;
        assert_eq!(jobs.body["items"].as_array().map(Vec::len), Some(3), "{jobs:?}");
        for none in ["00ff", &id[1..], "0"] {
            assert_eq!(api.get(&format!("/v1/incidents/{none}")).await.problem(), "not_found");
            let jobs = api.get(&format!("/v1/jobs?incident={none}")).await;
            assert_eq!(jobs.body["items"], json!([]), "{none}");
        }
        assert_eq!(api.get(&format!("/v1/incidents/{id}?kind=a")).await.problem(), "bad_query");
        let other = api.get("/v1/incidents?kind=mail").await;
        assert_eq!(other.body["items"], json!([]));
        for bad in ["kind=No!", "limit=0", "who=me"] {
            let answer = api.get(&format!("/v1/incidents?{bad}")).await;
            assert_eq!((answer.status, &answer.body["code"]), (400, &json!("bad_query")), "{bad}");
        }
    })
    .await;
}
