//! Reads certificates, and reloads them when their files change.

use crate::config::TlsFiles;
use rewheel::{Clock, Moment};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Minimum interval between checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate or key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("server.tls: {}: {why}", .file.display())]
pub struct TlsError {
    file: PathBuf,
    why: String,
}

impl TlsError {
    fn new(file: &Path, why: impl Into<String>) -> TlsError {
        TlsError { file: file.to_owned(), why: why.into() }
    }
}

/// Modification times and sizes of the two files; `None` if a file cannot be read.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// A certificate with its key, reloaded when the files change.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsFiles,
    clock: Clock,
    looked: Moment,
    seen: Stamp,
    config: Arc<ServerConfig>,
}

impl Certificates {
    /// Reads the files.
    pub(crate) fn load(files: &TlsFiles) -> Result<Certificates, TlsError> {
        // Taken before the files are read: a change in between is read again.
        let seen = stamp(files);
        let config = read(files)?;
        let clock = Clock::system();
        Ok(Certificates { files: files.clone(), looked: clock.now(), clock, seen, config })
    }

    /// Returns the current TLS config. Invalid new files are ignored: one file of a pair may be replaced before the other.
    pub(crate) fn latest(&mut self) -> Arc<ServerConfig> {
        let now = self.clock.now();
        if now.since(self.looked) >= LOOK_EVERY {
            self.looked = now;
            let seen = stamp(&self.files);
            if seen != self.seen {
                self.seen = seen;
                match read(&self.files) {
                    Ok(config) => {
                        self.config = config;
                        tracing::info!("reloaded the certificate");
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to reload the certificate; the server keeps the old certificate")
                    }
                }
            }
        }
        Arc::clone(&self.config)
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.modified().ok()?, file.len()))
    })
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key } = files;
    let text = |path: &PathBuf| {
        std::fs::read(path)
            .map_err(|error| TlsError::new(path, format!("failed to read the file: {error}")))
    };
    let (chain, secret) = (text(certificate)?, text(key)?);
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&chain).collect();
    let chain =
        chain.map_err(|error| TlsError::new(certificate, format!("is not valid PEM: {error}")))?;
    if chain.is_empty() {
        return Err(TlsError::new(
            certificate,
            "contains no certificate: it must have a line BEGIN CERTIFICATE",
        ));
    }
    let secret = PrivateKeyDer::from_pem_slice(&secret)
        .map_err(|error| TlsError::new(key, format!("contains no private key: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    // It is unclear which of the two files is wrong.
    let mut config = config.map_err(|error| {
        TlsError::new(key, format!("does not match {}: {error}", certificate.display()))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
