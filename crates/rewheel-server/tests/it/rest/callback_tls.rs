//! Tests callbacks to servers with self-signed certificates that the config trusts.

use super::served::{Api, config, served};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Returns a TLS acceptor with a self-signed certificate, and the certificate.
fn proof(protocols: &[&[u8]]) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(tls)), made.cert.pem())
}

/// Starts a server with a self-signed certificate. Returns its port and the certificate.
async fn callee() -> (u16, String, tokio::task::JoinSet<()>) {
    let (acceptor, certificate) = proof(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust the certificate disconnects during the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n1") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (port, certificate, serving)
}

#[tokio::test]
async fn a_callee_is_trusted_by_who_vouches_for_it() {
    let (port, certificate, _serving) = callee().await;
    let stranger = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    served(config(), async |api| {
        let callback = |ca: Option<String>| {
            json!({"runner": "callback", "attempts_max": 1, "callback": {
                "url": format!("https://localhost:{port}/"), "allow": ["127.0.0.0/8", "::1"], "ca": ca,
            }})
            .to_string()
        };
        for (kind, ca, wanted) in [
            ("unknown", None, "dead"),
            ("another", Some(stranger.cert.pem()), "dead"),
            ("trusted", Some(certificate), "succeeded"),
        ] {
            let mut settings: serde_json::Value = serde_json::from_str(&callback(ca)).unwrap();
            if settings["callback"]["ca"].is_null() {
                settings["callback"].as_object_mut().unwrap().remove("ca");
            }
            let put = api.put(&format!("/v1/kinds/{kind}"), &settings.to_string()).await;
            assert_eq!(put.status, 200, "{put:?}");
            let job = ended(&api, kind).await;
            assert_eq!(job["state"], wanted, "{kind}: {job}");
            if wanted == "dead" {
                assert_eq!(job["failure"]["code"], "certificate", "{kind}: {job}");
            }
        }
    })
    .await;
}

/// Submits a job, and returns it once it has ended.
async fn ended(api: &Api, kind: &str) -> Value {
    let body = format!(r#"{{"kind":"{kind}","payload":1}}"#);
    let id = api.post("/v1/jobs", &body).await.body["id"].as_str().unwrap().to_owned();
    let ended = tokio::time::timeout(Duration::from_secs(120), async {
        loop {
            let job = api.get(&format!("/v1/jobs/{id}")).await.body;
            let state = job["state"].as_str().unwrap();
            if state != "scheduled" && state != "leased" {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    ended.await.unwrap()
}

#[tokio::test]
async fn a_callee_that_speaks_http_2_is_called_in_it() {
    let (acceptor, certificate) = proof(&[b"h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = TokioIo::new(acceptor.accept(stream).await.unwrap());
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            tell.send((request.version(), request.headers().contains_key("webhook-id"))).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(hyper::Response::new(
                axum::body::Body::empty(),
            )))
        });
        // A second connection would get no response: all requests use this one.
        http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await.unwrap();
    });
    served(config(), async |api| {
        let settings = json!({"runner": "callback", "attempts_max": 1, "callback": {
            "url": format!("https://localhost:{port}/"), "allow": ["127.0.0.0/8", "::1"], "ca": certificate,
        }});
        let put = api.put("/v1/kinds/modern", &settings.to_string()).await;
        assert_eq!(put.status, 200, "{put:?}");
        for _ in 0..3 {
            assert_eq!(ended(&api, "modern").await["state"], "succeeded");
            assert_eq!(told.recv().await, Some((hyper::Version::HTTP_2, true)));
        }
    })
    .await;
}
