//! Encrypts connections to a PostgreSQL server with rustls.
//!
//! The `sslmode` of the address decides how much of the server's certificate is verified, as in PostgreSQL's own programs: nothing,
//! that a root signed it, or also that it is for the address's host.

use futures_util::TryFutureExt as _;
use lango_core::BoxFuture;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Configures TLS from the parameters `sslmode` and `sslrootcert`, which is a file with root certificates, or `system` for
    /// those of the operating system.
    pub(super) fn new(mode: &str, root: Option<&str>) -> Result<(SslMode, Self), String> {
        let (mode, checks_chain, checks_name) = match mode {
            "disable" => (SslMode::Disable, false, false),
            "prefer" => (SslMode::Prefer, false, false),
            // With a root certificate, the chain is verified, as PostgreSQL's own programs do.
            "require" => (SslMode::Require, root.is_some(), false),
            "verify-ca" => (SslMode::Require, true, false),
            "verify-full" => (SslMode::Require, true, true),
            _ => {
                let modes = "disable, prefer, require, verify-ca, verify-full";
                return Err(format!("the parameter `sslmode` must be one of {modes}"));
            }
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut verifier = Verifier {
            algorithms: provider.signature_verification_algorithms,
            roots: None,
            pinned: Vec::new(),
            checks_name,
        };
        if checks_chain {
            let file = root.filter(|root| *root != "system");
            let mut store = RootCertStore::empty();
            if let Some(file) = file {
                let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
                verifier.pinned = read.map_err(|error| format!("cannot read `{file}`: {error}"))?;
                store.add_parsable_certificates(verifier.pinned.clone());
            } else {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            if store.is_empty() {
                let place = file.unwrap_or("this system; set `sslrootcert` to a file");
                return Err(format!("no certificate was found in {place}"));
            }
            let roots = WebPkiServerVerifier::builder_with_provider(store.into(), provider);
            verifier.roots = Some(roots.build().map_err(|error| error.to_string())?);
        }
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok((mode, Self(TlsConnector::from(Arc::new(config)))))
    }
}

/// Verifies as much of a certificate as `sslmode` asks for, and always that the server has the certificate's private key.
#[derive(Debug)]
struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    roots: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates in the file of `sslrootcert`.
    pinned: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

/// Returns whether the only problem is that the server uses a root certificate as its own.
fn is_root(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else {
        return false;
    };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

pub(super) fn describe(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::ExpiredContext { .. } => "the server's certificate has expired",
        CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; check the clock of this machine"
        }
        CertificateError::UnknownIssuer => {
            "the server's certificate is not signed by a known root; set `sslrootcert` to the file of that root, or of the certificate itself"
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            // Each name is formatted with its kind, as in `DnsName("localhost")`.
            let plain = |name: &String| {
                let inner = name.split(['(', ')']).nth(1).unwrap_or(name);
                inner.trim_matches('"').to_owned()
            };
            let names: Vec<_> = presented.iter().map(plain).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return format!(
                "the server's certificate is not for `{}`; its alternative names: {names} (the common name is ignored); connect with one of these names, or use sslmode=verify-ca",
                expected.to_str()
            );
        }
        error if is_root(error) => {
            "the server uses a root certificate as its own; set `sslrootcert` to the file of that certificate"
        }
        other => return format!("the server's certificate was rejected: {other}"),
    };
    text.to_owned()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            roots.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        // The server's certificate may be in the file itself. In this case its expiry has already been verified.
        let is_pinned = |error: &CertificateError| {
            is_root(error) && self.pinned.iter().any(|pinned| pinned == end_entity)
        };
        match verified {
            // The chain is verified before the name, so only the name is wrong.
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))
                if !self.checks_name =>
            {
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(error)) if is_pinned(&error) => {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = EncryptedStream;
    type TlsConnect = HostConnector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<HostConnector> {
        // Unix sockets have no host name; PostgreSQL does not encrypt them.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned());
        Ok(HostConnector {
            name: name.map_err(io::Error::other)?,
            connector: self.0.clone(),
        })
    }
}

pub(crate) struct HostConnector {
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl TlsConnect<Socket> for HostConnector {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<EncryptedStream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let connect = self.connector.connect(self.name, stream);
        Box::pin(connect.map_ok(EncryptedStream))
    }
}

pub(crate) struct EncryptedStream(Stream<Socket>);

impl TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
