//! Tests which requests the server rejects when it has no capacity left.

use super::served::{config, served};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_path_that_is_too_long_is_refused() {
    served(config(), async |api| {
        let answer = api.get(&format!("/v1/jobs?q={}", "x".repeat(8_200))).await;
        assert_eq!((answer.status, answer.problem()), (414, "url_too_long"));
        assert_eq!(api.get(&format!("/v1/jobs?q={}", "x".repeat(8_000))).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn more_requests_than_there_may_be_are_told_to_come_back() {
    let mut config = config();
    config.server.limits.requests_max = 1;
    let worker = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    config.kinds.insert(KindName::parse("work").unwrap(), worker);
    served(config, async |api| {
        let mut first = TcpStream::connect(api.base.trim_start_matches("http://")).await.unwrap();
        let begin =
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 28\r\n\r\n";
        first.write_all(begin.as_bytes()).await.unwrap();
        let refused = loop {
            let answer = api.get("/v1/jobs").await;
            if answer.status != 200 {
                break answer;
            }
        };
        assert_eq!((refused.status, refused.problem()), (503, "overloaded"));
        // Health checks, metrics and waiting workers are not limited.
        for path in ["/livez", "/readyz", "/health", "/metrics"] {
            assert_eq!(api.get(path).await.status, 200, "{path}");
        }
        let claim = api.post("/v1/workers/claim", r#"{"kinds":["work"]}"#).await;
        assert_eq!(claim.status, 200);
        first.write_all(br#"{"kind":"mail","payload":{}}"#).await.unwrap();
        let mut answer = String::new();
        first.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        assert_eq!(api.get("/v1/jobs").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn bodies_share_their_room_and_give_it_back() {
    let mut config = config();
    config.server.limits.bodies_bytes_max = 20_000;
    served(config, async |api| {
        let job = |bytes| format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(bytes));
        // A body counts twice: as received, and as the job parsed from it.
        let refused = api.post("/v1/jobs", &job(11_000)).await;
        assert_eq!((refused.status, refused.problem()), (503, "overloaded"));
        for _ in 0..3 {
            assert_eq!(api.post("/v1/jobs", &job(8_000)).await.status, 201);
        }
        // A body that is too large frees its memory, too.
        for _ in 0..3 {
            let refused = api.post(&format!("/v1/jobs/{}/cancel", "x"), &job(9_000)).await;
            assert_eq!(refused.status, 422, "{refused:?}");
        }
        assert_eq!(api.post("/v1/jobs", &job(8_000)).await.status, 201);
    })
    .await;
}
