//! Accepts TLS connections.

mod certificates;

pub use self::certificates::TlsError;

use self::certificates::Certificates;
use crate::config::TlsFiles;
use crate::connections::Handshake;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Performs TLS handshakes with the latest certificate.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    certificates: Arc<Mutex<Certificates>>,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn load(files: &TlsFiles) -> Result<Tls, TlsError> {
        Ok(Tls { certificates: Arc::new(Mutex::new(Certificates::load(files)?)) })
    }
}

impl Handshake for Tls {
    type Stream = TlsStream<TcpStream>;

    fn shake(
        &self,
        connection: TcpStream,
    ) -> impl Future<Output = io::Result<TlsStream<TcpStream>>> + Send + 'static {
        let latest = self.certificates.lock().unwrap_or_else(PoisonError::into_inner).latest();
        TlsAcceptor::from(latest).accept(connection)
    }
}

#[cfg(test)]
mod tests;
