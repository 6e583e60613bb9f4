//! Tests handshakes with slow clients, and certificate files that change.

use super::Tls;
use super::certificates::Certificates;
use crate::config::{LimitSettings, TlsFiles};
use crate::connections::Connections;
use axum::Router;
use axum::routing::get;
use rewheel::{CancelToken, millis, seconds};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Timeout for anything in these tests.
const PATIENCE: Duration = seconds(120);

/// Writes a self-signed certificate, and returns it.
fn write(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

/// Runs a server while a test acts as the client.
async fn served(test: impl AsyncFnOnce(SocketAddr, CertificateDer<'static>)) {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Tls::load(&files(folder.path())).unwrap();
    let limits = LimitSettings { head_timeout: millis(400), ..LimitSettings::default() };
    let router = Router::new().route("/good", get(|| async { "good" }));
    let quiet = CancelToken::new();
    let serving = Connections::new(&limits).serve(listener, tls, router, quiet.clone());
    let testing = async {
        test(address, certificate).await;
        quiet.cancel();
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(serving, testing) }).await.unwrap();
}

/// Performs a handshake with a server that has this certificate.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[tokio::test]
async fn a_silent_client_delays_no_other_and_is_cut_off() {
    served(async |address, certificate| {
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut garbled = TcpStream::connect(address).await.unwrap();
        garbled.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut client = connect(address, &certificate).await.unwrap();
        assert_eq!(client.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        let request = b"GET /good HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        assert!(heard.starts_with("HTTP/1.1 200 ") && heard.ends_with("good"), "{heard}");
        for connection in [&mut silent, &mut garbled] {
            let mut heard = Vec::new();
            let rest = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut heard)).await;
            assert!(rest.is_ok(), "it is still waited for");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn files_that_change_are_read_again_and_a_pair_that_does_not_fit_is_not() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut certificates = Certificates::load(&files(folder.path())).unwrap();
    let first = certificates.latest();
    assert!(Arc::ptr_eq(&first, &look(&mut certificates).await), "nothing has changed");
    let key = std::fs::read(folder.path().join("key.pem")).unwrap();
    write(folder.path());
    std::fs::write(folder.path().join("key.pem"), [&key[..], b"\n"].concat()).unwrap();
    assert!(Arc::ptr_eq(&first, &look(&mut certificates).await), "half of a pair is of no use");
    write(folder.path());
    let pem = std::fs::read(folder.path().join("cert.pem")).unwrap();
    std::fs::write(folder.path().join("cert.pem"), [&pem[..], b"\n\n"].concat()).unwrap();
    assert!(!Arc::ptr_eq(&first, &look(&mut certificates).await), "a new pair is taken");
}

/// Checks the files again after a while.
async fn look(certificates: &mut Certificates) -> Arc<rustls::ServerConfig> {
    tokio::time::advance(Duration::from_secs(2)).await;
    certificates.latest()
}

#[track_caller]
fn check(folder: &Path, why: &str) {
    let error = Certificates::load(&files(folder)).unwrap_err().to_string();
    assert!(error.starts_with("server.tls: ") && error.contains(why), "{error}");
}

#[test]
fn a_file_that_is_of_no_use_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    check(folder, "cert.pem: failed to read the file: No such file");
    write(folder);
    let good = std::fs::read(folder.join("cert.pem")).unwrap();
    let key = std::fs::read(folder.join("key.pem")).unwrap();
    assert_eq!(CertificateDer::pem_slice_iter(&good).count(), 1);
    std::fs::write(folder.join("cert.pem"), "hello").unwrap();
    check(folder, "cert.pem: contains no certificate");
    std::fs::write(folder.join("cert.pem"), "-----BEGIN CERTIFICATE-----\n!\n").unwrap();
    check(folder, "cert.pem: is not valid PEM");
    std::fs::write(folder.join("cert.pem"), &good).unwrap();
    std::fs::write(folder.join("key.pem"), &good).unwrap();
    check(folder, "key.pem: contains no private key");
    write(folder);
    std::fs::write(folder.join("key.pem"), key).unwrap();
    check(folder, "key.pem: does not match");
}
