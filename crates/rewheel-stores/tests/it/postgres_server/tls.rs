//! Tests encrypted connections and the check of the server's certificate.

use super::support::{address, told, url_by};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rewheel_core::store::{ReadStore, StoreError};
use rewheel_stores::PostgresStore;
use rewheel_testkit::Schema;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The first message of a client that asks for encryption.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A TLS server in front of a server without TLS.
struct TlsServer {
    port: u16,
    folder: TempDir,
    _task: JoinSet<()>,
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
        .expect("a certificate")
}

fn acceptor(issuer: &Issuer) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate with its key");
    TlsAcceptor::from(Arc::new(config))
}

impl TlsServer {
    /// Starts a server for `localhost`.
    async fn start() -> TlsServer {
        let (ours, other) = (issuer(), issuer());
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("ours.pem"), ours.pem()).expect("a file");
        std::fs::write(folder.path().join("other.pem"), other.pem()).expect("a file");
        let acceptor = acceptor(&ours);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                clients.spawn(serve(client, acceptor.clone()));
            }
        });
        TlsServer { port, folder, _task: task }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn serve(mut client: TcpStream, acceptor: TlsAcceptor) {
    let mut first = [0; 8];
    // Reject clients that do not ask for encryption.
    if client.read_exact(&mut first).await.is_err() || first != SSL_REQUEST {
        return;
    }
    client.write_all(b"S").await.expect("it waits for that");
    let Ok(mut client) = acceptor.accept(client).await else { return };
    let (host, port) = address();
    let mut server = TcpStream::connect((host, port)).await.expect("the server");
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

async fn open(schema: &Schema, host: &str, port: u16, settings: &str) -> Result<(), StoreError> {
    let store = PostgresStore::open(&url_by(schema, host, port, settings)).await?;
    store.books().await.map(drop)
}

#[tokio::test]
async fn a_server_is_encrypted_to_if_that_is_required() {
    let (schema, server) = (Schema::fresh(), TlsServer::start().await);
    open(&schema, "localhost", server.port, "sslmode=require").await.expect("encrypted");
    // The certificate is not checked.
    open(&schema, "127.0.0.1", server.port, "sslmode=require").await.expect("encrypted");
    open(&schema, "localhost", server.port, "sslmode=prefer").await.expect("encrypted");
}

#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (schema, server) = (Schema::fresh(), TlsServer::start().await);
    let settings =
        |file: &str| format!("sslmode=verify-full&sslrootcert={}", server.file(file).display());
    open(&schema, "localhost", server.port, &settings("ours.pem")).await.expect("it is the one");

    for (host, file) in [("localhost", "other.pem"), ("127.0.0.1", "ours.pem")] {
        let error = open(&schema, host, server.port, &settings(file)).await.expect_err(file);
        let text = told(&error);
        assert!(text.contains("sslrootcert") && text.contains("certificate"), "{text}");
    }
    // This system does not trust the certificate.
    let error = open(&schema, "localhost", server.port, "sslmode=verify-full").await;
    assert!(told(&error.expect_err("unknown")).contains("certificate"));
    let error = open(&schema, "localhost", server.port, &settings("none.pem")).await;
    assert!(told(&error.expect_err("no file")).contains("none.pem"));
}

#[tokio::test]
async fn nothing_goes_unencrypted_where_it_must_not() {
    let (schema, server) = (Schema::fresh(), TlsServer::start().await);
    let error = open(&schema, "localhost", server.port, "sslmode=disable").await;
    assert!(error.expect_err("it serves no other client").is_transient());
    // The server itself does not support encryption.
    let (host, port) = address();
    for sslmode in ["sslmode=require", "sslmode=verify-full", "sslmode=verify-ca"] {
        let error = open(&schema, &host, port, sslmode).await.expect_err("no encryption");
        assert!(told(&error).contains("sslmode"), "{}", told(&error));
    }
}
