//! Handshakes with clients that are slow, and files that change.

use super::{Certificates, HANDSHAKE_MAX, TlsListener};
use crate::config::TlsFiles;
use axum::serve::Listener;
use rewheel::millis;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Writes a certificate that vouches for itself, and returns it.
fn write(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

async fn listening() -> (TempDir, CertificateDer<'static>, TlsListener, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write(folder.path());
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let certificates = Certificates::load(&files(folder.path())).unwrap();
    (folder, certificate, TlsListener::new(tcp, certificates), address)
}

/// Agrees on keys with a server that a certificate vouches for.
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
async fn who_says_nothing_keeps_nobody_else_waiting() {
    let (_folder, certificate, mut listener, address) = listening().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut garbled = TcpStream::connect(address).await.unwrap();
    garbled.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let (client, (mut server, _)) = tokio::join!(connect(address, &certificate), listener.accept());
    let mut client = client.unwrap();
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    client.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    assert!(listener.handshakes.len() >= 50, "they are still waited for");
}

#[tokio::test]
async fn who_takes_too_long_is_cut_off() {
    let (_folder, _, mut listener, address) = listening().await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    // Until the connection is there in real time, then time flies.
    while listener.handshakes.is_empty() {
        let _ = tokio::time::timeout(millis(20), listener.accept()).await;
    }
    tokio::time::pause();
    let waited = tokio::time::timeout(HANDSHAKE_MAX + Duration::from_secs(1), listener.accept());
    assert!(waited.await.is_err());
    assert!(listener.handshakes.is_empty());
    tokio::time::resume();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
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

/// Looks after a while.
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
    check(folder, "cert.pem: cannot be read: No such file");
    write(folder);
    let good = std::fs::read(folder.join("cert.pem")).unwrap();
    let key = std::fs::read(folder.join("key.pem")).unwrap();
    assert_eq!(CertificateDer::pem_slice_iter(&good).count(), 1);
    std::fs::write(folder.join("cert.pem"), "hello").unwrap();
    check(folder, "cert.pem: has no certificate");
    std::fs::write(folder.join("cert.pem"), "-----BEGIN CERTIFICATE-----\n!\n").unwrap();
    check(folder, "cert.pem: is no PEM");
    std::fs::write(folder.join("cert.pem"), &good).unwrap();
    std::fs::write(folder.join("key.pem"), &good).unwrap();
    check(folder, "key.pem: has no private key");
    write(folder);
    std::fs::write(folder.join("key.pem"), key).unwrap();
    check(folder, "key.pem: does not go with");
}
