//! Tests that every error response is a problem document.

use super::served::{Answer, config, served};
use reqwest::Method;

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

#[tokio::test]
async fn every_route_answers_bad_input_with_a_problem() {
    served(config(), async |api| {
        let one = format!("/v1/jobs/{ID}");
        let (cancel, retry) = (format!("{one}/cancel"), format!("{one}/retry"));
        let cases = [
            (Method::POST, "/v1/jobs", "nonsense", 400),
            (Method::POST, "/v1/jobs?a=1", "{}", 400),
            (Method::POST, "/v1/jobs", "{}", 422),
            (Method::GET, "/v1/jobs?limit=0", "", 400),
            (Method::GET, "/v1/jobs?colour=red", "", 400),
            (Method::POST, "/v1/jobs/batch", "[]", 400),
            (Method::POST, "/v1/jobs/batch", "{}", 422),
            (Method::POST, "/v1/jobs/batch?partial=yes", "{}", 400),
            (Method::GET, &one, "", 404),
            (Method::POST, &cancel, "", 404),
            (Method::POST, &cancel, "{\"now\":true}", 422),
            (Method::POST, &retry, "", 404),
            (Method::POST, &retry, "[", 400),
            (Method::GET, "/v1/kinds?limit=x", "", 400),
            (Method::GET, "/v1/kinds/none", "", 404),
            (Method::PUT, "/v1/kinds/a", "17", 400),
            (Method::PUT, "/v1/kinds/a", "{\"a\":1}", 422),
            (Method::GET, "/", "", 404),
            (Method::GET, "/v1", "", 404),
            (Method::GET, "/v1/jobs/", "", 404),
            (Method::DELETE, "/v1/jobs", "", 405),
            (Method::PATCH, &one, "{}", 422),
            (Method::PATCH, &one, r#"{"priority":1}"#, 404),
            (Method::PATCH, "/v1/jobs/17", r#"{"priority":1}"#, 404),
            (Method::GET, "/v1/operations?limit=0", "", 400),
            (Method::GET, "/v1/operations/17", "", 404),
            (Method::DELETE, &one, "", 405),
            (Method::GET, "/v1/jobs/redrive", "", 405),
            (Method::GET, "/v1/jobs/batch", "", 405),
            (Method::POST, "/livez", "", 405),
            (Method::POST, "/readyz", "", 405),
            (Method::PUT, "/v1/kinds", "{}", 405),
        ];
        for (method, path, body, status) in cases {
            let answer = Answer::of(api.request(method.clone(), path).body(body)).await;
            assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
            answer.problem();
        }
        assert_eq!(api.count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_a_problem_on_every_route() {
    served(config(), async |api| {
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(400 * 1024));
        let one = format!("/v1/jobs/{ID}/cancel");
        for (method, path) in
            [(Method::POST, "/v1/jobs"), (Method::POST, &one), (Method::PUT, "/v1/kinds/a")]
        {
            let answer = Answer::of(api.request(method, path).body(large.clone())).await;
            assert_eq!((answer.status, answer.problem()), (413, "too_large"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_keeps_its_name() {
    served(config(), async |api| {
        let request = api.request(Method::GET, "/v1/nothing").header("x-request-id", "req-17");
        let answer = Answer::of(request).await;
        assert_eq!((answer.problem(), &answer.body["request_id"]), ("not_found", &"req-17".into()));
        let fine = api.get("/livez").await;
        assert!(!fine.headers["x-request-id"].is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    served(config(), async |api| {
        let from = |origin: &str| api.request(Method::GET, "/v1/jobs").header("origin", origin);
        let answer = Answer::of(from("https://evil.example")).await;
        assert_eq!((answer.status, answer.problem()), (403, "forbidden"));
        assert_eq!(Answer::of(from("null")).await.status, 403);
        assert_eq!(Answer::of(from(&api.base)).await.status, 200);
    })
    .await;
}
