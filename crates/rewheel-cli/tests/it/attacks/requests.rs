//! Tests requests that use too many resources, or come from a forbidden origin.

use super::server::{Answer, Attack, Server};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const CONFIG: &str = "[kinds.mail]\n";

const JOB: &str = r#"{"kind":"mail","payload":{}}"#;

/// Sends a request with its own headers.
async fn send(server: &Server, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request =
        server.client.request(method.parse().unwrap(), format!("{}/v1/jobs", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.body(body.to_owned()).send().await.unwrap()).await
}

pub(crate) async fn that_never_end_leave_room_for_small_submits(attack: Attack) {
    let limits =
        "[server]\nbody_bytes_max = 1_000_000\n[server.limits]\nbodies_bytes_max = 4_000_000\n";
    let mut server = attack.serve(&format!("{limits}{CONFIG}")).await;
    let large = format!(r#"{{"jobs":[{JOB}]{}}}"#, " ".repeat(900_000));
    assert_eq!(server.send("POST", "/v1/jobs/batch", &large).await.status, 201);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let mut hostile = Vec::new();
    for path in ["/v1/jobs/batch", "/v1/workers/settle"].into_iter().cycle().take(12) {
        let mut client = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999\r\n\r\n{}",
            " ".repeat(990_000)
        );
        // If the server has no memory left, it responds without reading the whole body.
        let _ = client.write_all(head.as_bytes()).await;
        hostile.push(client);
    }
    let is_full = async || {
        let answer = server.send("POST", "/v1/jobs/batch", &large).await;
        assert_eq!(server.send("POST", "/v1/jobs", JOB).await.status, 201, "a small submit passes");
        answer.status == 503 && answer.code() == "overloaded"
    };
    server.until("the large bodies fill their part", is_full).await;
    drop(hostile);
    let is_free = async || server.send("POST", "/v1/jobs/batch", &large).await.status == 201;
    server.until("the room is free again", is_free).await;
    server.assert_running();
}

pub(crate) async fn that_parse_to_much_more_than_was_sent_are_refused(attack: Attack) {
    let mut server = attack.serve(CONFIG).await;
    let fields = format!("{{{}}}", vec![r#""":0"#; 1_000_000].join(","));
    for (method, path) in [("POST", "/v1/jobs/batch"), ("POST", "/v1/workers/claim")] {
        server.send(method, path, &fields).await.assert_problem(400, "bad_json");
    }
    let zeros = vec!["0"; 1_000_000].join(",");
    let many = server.send("POST", "/v1/jobs/batch", &format!(r#"{{"jobs":[{zeros}]}}"#)).await;
    many.assert_problem(413, "too_large");
    let kinds = format!(r#"{{"kinds":[{}]}}"#, vec![r#""a""#; 1_000_000].join(","));
    let many = server.send("POST", "/v1/workers/claim", &kinds).await;
    many.assert_problem(422, "invalid_field");
    server.assert_running();
}

pub(crate) async fn by_a_name_that_others_decide_about_are_refused(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let port = server.url.rsplit_once(':').unwrap().1.to_owned();
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{host}:{port}");
        assert_eq!(send(&server, "GET", &[("host", &host)], "").await.status, 200, "{host}");
    }
    for host in
        ["a", "rewheel", "evil.example", "127.0.0.1.evil.example", "a.localhost", "localhost."]
    {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            for method in ["GET", "POST"] {
                let answer = send(&server, method, &[("host", &host)], JOB).await;
                answer.assert_problem(403, "forbidden");
            }
        }
    }
    for name in ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"] {
        for method in ["GET", "POST"] {
            send(&server, method, &[(name, "x")], JOB).await.assert_problem(403, "forbidden");
        }
    }
    // A caller with a token may use any host name and any proxy.
    let token = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let bearer = format!("Bearer {token}");
    let headers = [("host", "rewheel.corp.example"), ("via", "1.1 proxy")];
    let answer =
        send(&server, "GET", &[headers[0], headers[1], ("authorization", &bearer)], "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let refused = send(&server, "GET", &headers, "").await;
    refused.assert_problem(401, "unauthorized");
    assert!(refused.headers.contains_key("www-authenticate"), "{refused:?}");
}

pub(crate) async fn with_a_revoked_token_are_refused_at_once(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    for round in 0..10 {
        let token = server.token(Some(&admin), r#"{"name":"ci","roles":["read"]}"#).await;
        assert_eq!(server.send_as(Some(&token), "GET", "/v1/jobs", "").await.status, 200);
        let id = token.split('_').nth(1).unwrap();
        let wanted = ["ci", id, &token][round % 3];
        let path = format!("/v1/tokens/{wanted}/revoke");
        let revoked = server.send_as(Some(&admin), "POST", &path, "").await;
        assert_eq!(revoked.ok()["id"], id);
        let refused = server.send_as(Some(&token), "GET", "/v1/jobs", "").await;
        refused.assert_problem(401, "unauthorized");
    }
    assert_eq!(server.send_as(Some(&admin), "GET", "/v1/jobs", "").await.status, 200);
}

pub(crate) async fn with_a_quoted_key_are_those_without_quotes(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let key = "idempotency-key";
    let bare = send(&server, "POST", &[(key, "order-17")], JOB).await;
    let quoted = send(&server, "POST", &[(key, "\"order-17\"")], JOB).await;
    assert_eq!((bare.status, quoted.status), (201, 200), "{bare:?} {quoted:?}");
    assert_eq!(bare.ok()["id"], quoted.ok()["id"]);
    for bad in ["\"order-17", "order-17\"", r#""order\-17""#, "order-17, order-18"] {
        send(&server, "POST", &[(key, bad)], JOB).await.assert_problem(400, "bad_query");
    }
    let twice = send(&server, "POST", &[(key, "order-17"), (key, "order-17")], JOB).await;
    twice.assert_problem(400, "bad_query");
    assert!(twice.text.contains("Idempotency-Key"), "{twice:?}");
    let jobs = send(&server, "GET", &[], "").await.ok();
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
}
