//! Sets up TLS for connections.

use super::broken;
use super::options::{PostgresOptions, Verify};
use rewheel_core::store::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

impl PostgresOptions {
    /// Returns what encrypts connections to the server as the URL asks, for other users of the same URL.
    ///
    /// # Errors
    /// Says which certificate file is not usable, or that encryption is not available.
    pub fn tls(&self) -> Result<MakeRustlsConnect, StoreError> {
        connector(&self.verify)
    }
}

/// Returns the TLS connector, used where server and URL ask for encryption.
pub(super) fn connector(verify: &Verify) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| trouble(&error))?;
    let config = match verify {
        Verify::No => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(NoVerification(provider)))
            .with_no_client_auth(),
        Verify::System => {
            builder.with_platform_verifier().map_err(|error| trouble(&error))?.with_no_client_auth()
        }
        Verify::File(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(path: &Path) -> Result<RootCertStore, StoreError> {
    let unreadable = |why: &dyn std::fmt::Display| {
        broken(format!("sslrootcert {} is not usable: {why}", path.display()), None)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() { Err(unreadable(&"the file has no certificate")) } else { Ok(roots) }
}

fn trouble(error: &Error) -> StoreError {
    broken(format!("encryption is not available: {error}"), None)
}

/// Accepts any server certificate, as `sslmode=require` does: the traffic is encrypted, but the identity of the server is not checked.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
