//! Tests reading and changing kinds.

use super::served::{config, served};
use serde_json::json;

#[tokio::test]
async fn a_kind_is_written_and_shown() {
    served(config(), async |api| {
        let put = api.put("/v1/kinds/charge-card", r#"{"attempts_max":3,"sticky_max":"2s"}"#).await;
        assert_eq!(put.status, 200, "{put:?}");
        let shown = api.get("/v1/kinds/charge-card").await;
        assert_eq!(shown.body, put.body);
        assert_eq!(shown.body["kind"], "charge-card");
        assert_eq!(shown.body["settings"]["attempts_max"], 3);
        assert_eq!(shown.body["settings"]["sticky_max"], "2s");
        assert_eq!(
            (&shown.body["runner"], &shown.body["runnable"]),
            (&json!("handler"), &json!(false))
        );
        assert_eq!(shown.body["jobs"], json!({"scheduled":0,"leased":0,"paused":0,"dead":0}));
        let job = api.post("/v1/jobs", r#"{"kind":"charge-card","payload":1}"#).await;
        assert_eq!((job.status, &job.body["attempts_max"]), (201, &json!(3)));
        let counted = api.get("/v1/kinds/charge-card").await;
        assert_eq!(counted.body["jobs"]["scheduled"], 1);
        assert_eq!(counted.body["oldest_due"], job.body["due"]);
    })
    .await;
}

#[tokio::test]
async fn kinds_are_listed_page_by_page() {
    served(config(), async |api| {
        for name in ["a", "b"] {
            assert_eq!(api.put(&format!("/v1/kinds/{name}"), "{}").await.status, 200);
        }
        let first = api.get("/v1/kinds?limit=2").await;
        let names = |answer: &super::served::Answer| -> Vec<String> {
            let items = answer.body["items"].as_array().unwrap();
            items.iter().map(|kind| kind["kind"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&first), ["a", "b"]);
        let next = first.body["next"].as_str().unwrap();
        let second = api.get(&format!("/v1/kinds?limit=2&cursor={next}")).await;
        assert_eq!((names(&second), &second.body["next"]), (vec!["mail".into()], &json!(null)));
    })
    .await;
}

#[tokio::test]
async fn what_the_file_names_is_the_files() {
    served(config(), async |api| {
        let answer = api.put("/v1/kinds/mail", "{}").await;
        assert_eq!((answer.status, answer.problem()), (409, "managed_by_config"));
    })
    .await;
}

#[tokio::test]
async fn bad_settings_change_nothing() {
    served(config(), async |api| {
        let answer = api.put("/v1/kinds/a", r#"{"atempts_max":1,"sticky_max":3}"#).await;
        assert_eq!((answer.status, answer.problem()), (422, "invalid_field"));
        assert_eq!(answer.blamed(), ["/atempts_max", "/sticky_max"]);
        let answer = api.put("/v1/kinds/A", "{}").await;
        assert_eq!((answer.status, answer.blamed()), (422, vec!["/kind"]));
        let answer = api.get("/v1/kinds/a").await;
        assert_eq!((answer.status, answer.problem()), (404, "not_found"));
    })
    .await;
}

#[tokio::test]
async fn what_is_accepted_can_be_lived_with() {
    let long = "36500d";
    let settings = [
        json!({"breaker": {"failure_ratio": 5e-324}}),
        json!({"breaker": {"failure_ratio": 1, "window": 1, "open_for": "1ms"}}),
        json!({"breaker": {"window": 10_000, "open_for": long}}),
        json!({"attempts_max": u32::MAX, "takeovers_max": u32::MAX, "concurrency_max": 1}),
        json!({"attempt_timeout": long, "sticky_max": long, "keep_succeeded": long, "retry_after_max": long}),
        json!({"rate": "1/s"}),
        json!({"rate": "1000000/s"}),
        json!({"retry_budget": {"ratio": 5e-324, "floor": "1/m"}}),
        json!({"retry_budget": {"ratio": 1, "floor": "1000000/s"}}),
        json!({"backoff": "fibonacci 1ns max 30d jitter none"}),
    ];
    served(config(), async |api| {
        for (number, settings) in settings.iter().enumerate() {
            let put = api.put(&format!("/v1/kinds/kind-{number}"), &settings.to_string()).await;
            assert_eq!(put.status, 200, "{settings}: {put:?}");
            // Every engine reads it from now on.
            assert_eq!(api.put("/v1/kinds/after", "{}").await.status, 200, "{settings}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_person_has_the_last_word_on_a_kind() {
    served(config(), async |api| {
        let put = api.put("/v1/kinds/parcel", r#"{"breaker":{"window":5,"open_for":"1s"}}"#).await;
        assert_eq!(put.body["breaker"], json!({"state":"closed","forced":false}));
        assert_eq!(put.body["settings"]["breaker"]["window"], 5);

        let open = api.post("/v1/kinds/parcel/breaker/open", "").await;
        assert_eq!((open.status, &open.body["parked"]), (200, &json!(true)), "{open:?}");
        let breaker = &open.body["breaker"];
        assert_eq!((&breaker["state"], &breaker["forced"]), (&json!("open"), &json!(true)));
        assert_eq!(breaker["reason"], "opened by rest");
        assert!(breaker["since"].is_string());
        let close = api.post("/v1/kinds/parcel/breaker/close", "").await;
        assert_eq!(close.body["breaker"], json!({"state":"closed","forced":true}));
        let reset = api.post("/v1/kinds/parcel/breaker/reset", "").await;
        assert_eq!(reset.body["breaker"], json!({"state":"closed","forced":false}));

        assert_eq!(api.post("/v1/kinds/parcel/pause", "").await.body["paused"], true);
        assert_eq!(api.post("/v1/kinds/parcel/resume", "").await.body["paused"], false);
        for path in ["/v1/kinds/unknown/pause", "/v1/kinds/No!/breaker/open"] {
            let answer = api.post(path, "").await;
            assert_eq!((answer.status, &answer.body["code"]), (404, &json!("not_found")), "{path}");
        }
        let bad = api.post("/v1/kinds/parcel/breaker/open?now=1", "").await;
        assert_eq!((bad.status, &bad.body["code"]), (400, &json!("bad_query")), "{bad:?}");
    })
    .await;
}

#[tokio::test]
async fn a_retry_budget_is_written_and_shown() {
    served(config(), async |api| {
        let put = api.put("/v1/kinds/parcel", r#"{"retry_budget":{"ratio":0.2}}"#).await;
        let budget = json!({"ratio":0.2,"floor":"10/s"});
        assert_eq!((put.status, &put.body["settings"]["retry_budget"]), (200, &budget));
        assert_eq!(api.get("/v1/kinds/parcel").await.body, put.body);
        for (bad, field) in [
            (r#"{"ratio":2}"#, "/retry_budget/ratio"),
            (r#"{"floor":"1/h"}"#, "/retry_budget/floor"),
            (r#"{"floor":"fast"}"#, "/retry_budget"),
            (r#"{"burst":1}"#, "/retry_budget"),
        ] {
            let answer = api.put("/v1/kinds/parcel", &format!("{{\"retry_budget\":{bad}}}")).await;
            assert_eq!((answer.status, answer.blamed()), (422, vec![field]), "{answer:?}");
        }
        assert_eq!(api.get("/v1/kinds/mail").await.body["settings"]["retry_budget"], json!(null));
    })
    .await;
}

#[tokio::test]
async fn rules_for_failures_survive_being_read_and_written_back() {
    served(config(), async |api| {
        let settings = json!({"failure_rules": [
            {"when": {"status": "409"}, "then": "snooze 5m"},
            {"when": {"category": ["io", "timeout"], "message": "reset"}, "then": "retry x4", "sticky": false},
            {"then": "dead"},
        ]});
        let put = api.put("/v1/kinds/hook", &settings.to_string()).await;
        assert_eq!((put.status, &put.body["settings"]["failure_rules"]), (200, &settings["failure_rules"]));
        let shown = api.get("/v1/kinds/hook").await;
        let again = api.put("/v1/kinds/hook", &shown.body["settings"].to_string()).await;
        assert_eq!((again.status, &again.body), (200, &shown.body));

        let bad = r#"{"failure_rules":[{"then":"retry"},{"then":"dead"}]}"#;
        let refused = api.put("/v1/kinds/hook", bad).await;
        assert_eq!((refused.status, refused.blamed()), (422, vec!["/failure_rules/1"]));
        assert_eq!(api.get("/v1/kinds/hook").await.body, shown.body);
    })
    .await;
}
