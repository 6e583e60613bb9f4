//! Tests reading and changing jobs.

use super::served::{config, served};
use serde_json::json;

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    served(config(), async |api| {
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(api.submit("").await);
        }
        ids.reverse();
        let mut found = Vec::new();
        let mut path = "/v1/jobs?limit=2".to_owned();
        loop {
            let page = api.get(&path).await;
            assert_eq!(page.status, 200, "{page:?}");
            for job in page.body["items"].as_array().unwrap() {
                assert!(job.get("payload").is_none() && job.get("attempts").is_none());
                found.push(job["id"].as_str().unwrap().to_owned());
            }
            let Some(next) = page.body["next"].as_str() else { break };
            path = format!("/v1/jobs?limit=2&cursor={next}");
        }
        found.sort();
        ids.sort();
        assert_eq!(found, ids);
    })
    .await;
}

#[tokio::test]
async fn a_list_is_filtered() {
    served(config(), async |api| {
        let late = api.submit(r#","delay":"2h","tenant":"shop","key":"find-me""#).await;
        let gone = api.submit("").await;
        api.post(&format!("/v1/jobs/{gone}/cancel"), "").await;
        let cases = [
            ("state=cancelled", vec![&gone]),
            ("state=scheduled", vec![&late]),
            ("state=scheduled&state=cancelled", vec![&gone, &late]),
            ("kind=mail&tenant=shop", vec![&late]),
            ("kind=other", vec![]),
            ("q=FIND", vec![&late]),
            ("category=timeout", vec![]),
            ("created_before=2001-01-01T00:00:00Z", vec![]),
            ("due_before=2001-01-01T00:00:00Z", vec![]),
            ("due_after=2001-01-01T00:00:00Z&state=scheduled", vec![&late]),
            ("attempt=0&reason=submitted", vec![&gone, &late]),
            ("attempt=%3E0", vec![]),
            ("reason=retry_budget", vec![]),
            ("code=504", vec![]),
            ("incident=00ff", vec![]),
        ];
        for (query, wanted) in cases {
            let answer = api.get(&format!("/v1/jobs?{query}")).await;
            let items = answer.body["items"].as_array().unwrap();
            let mut found: Vec<_> = items.iter().map(|job| job["id"].as_str().unwrap()).collect();
            let mut wanted: Vec<&str> = wanted.into_iter().map(String::as_str).collect();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{query}");
        }
        let holder = api.get("/v1/holders").await.body["items"][0].clone();
        for name in ["id", "name"] {
            let holder = holder[name].as_str().unwrap();
            let idle = api.get(&format!("/v1/jobs?holder={holder}")).await;
            assert_eq!((idle.status, &idle.body["items"]), (200, &json!([])), "{holder}");
        }
        assert_eq!(api.get("/v1/jobs?holder=unknown").await.problem(), "not_found");
    })
    .await;
}

#[tokio::test]
async fn a_job_is_cancelled_once() {
    served(config(), async |api| {
        let id = api.submit("").await;
        let cancelled = api.post(&format!("/v1/jobs/{id}/cancel"), "{}").await;
        assert_eq!((cancelled.status, &cancelled.body["state"]), (200, &json!("cancelled")));
        assert!(cancelled.body["finished"].is_string());
        let audit = cancelled.body["audit"].as_array().unwrap();
        assert_eq!((&audit[0]["what"], &audit[0]["who"]), (&json!("cancel"), &json!("rest")));
        assert_eq!(audit[0]["after"]["state"], "cancelled");
        let again = api.post(&format!("/v1/jobs/{id}/cancel"), "").await;
        assert_eq!((again.status, &again.body["version"]), (200, &cancelled.body["version"]));
        let retried = api.post(&format!("/v1/jobs/{id}/retry"), "").await;
        assert_eq!((retried.status, retried.problem()), (409, "wrong_state"));
    })
    .await;
}

#[tokio::test]
async fn a_job_that_is_not_kept_is_still_answered() {
    let mut config = config();
    config.engine.retention_ended = std::time::Duration::ZERO;
    served(config, async |api| {
        let id = api.submit("").await;
        let cancelled = api.post(&format!("/v1/jobs/{id}/cancel"), "").await;
        assert_eq!((cancelled.status, &cancelled.body["state"]), (200, &json!("cancelled")));
    })
    .await;
}

#[tokio::test]
async fn a_waiting_job_is_retried_now() {
    served(config(), async |api| {
        let id = api.submit(r#","delay":"1h""#).await;
        let retried = api.post(&format!("/v1/jobs/{id}/retry"), "").await;
        assert_eq!((retried.status, &retried.body["state"]), (200, &json!("scheduled")));
        assert_eq!(retried.body["due_because"]["reason"], "person");
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    served(config(), async |api| {
        let unknown = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";
        for id in [unknown, "17", "..%2f", "%ff"] {
            let answer = api.get(&format!("/v1/jobs/{id}")).await;
            assert!(matches!(answer.status, 400 | 404), "{answer:?}");
            answer.problem();
        }
        for verb in ["cancel", "retry"] {
            let answer = api.post(&format!("/v1/jobs/{unknown}/{verb}"), "").await;
            assert_eq!((answer.status, answer.problem()), (404, "not_found"));
        }
    })
    .await;
}
