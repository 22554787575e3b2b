//! Encrypted connections to a PostgreSQL server, by rustls.
//!
//! The `sslmode` of the address says how much of the server's certificate is verified, as in PostgreSQL's own programs: nothing,
//! that a root signed it, or also that it is for the host of the address.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

/// What is verified of the server's certificate. The roots are in a file, or those of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    Unverified,
    /// That a root signed it.
    Chain(Option<PathBuf>),
    /// That a root signed it for the host of the address.
    Host(Option<PathBuf>),
}

#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(trust: Trust) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut given = Vec::new();
        let roots = match &trust {
            Trust::Unverified => None,
            Trust::Chain(file) | Trust::Host(file) => {
                let store = Arc::new(root_store(file.as_deref(), &mut given)?);
                let chains =
                    WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider));
                Some(chains.build().map_err(|error| error.to_string())?)
            }
        };
        let verifier = Verifier {
            provider,
            roots,
            given,
            checks_name: matches!(trust, Trust::Host(_)),
        };
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

/// Reads the roots of a file, which are also added to `given`, or those of the system.
fn root_store(
    file: Option<&Path>,
    given: &mut Vec<CertificateDer<'static>>,
) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match store.is_empty() {
            true => Err(
                "this system has no root certificates; name a file with `sslrootcert`".to_owned(),
            ),
            false => Ok(store),
        };
    };
    let failed = |error| format!("cannot read `{}`: {error}", path.display());
    for root in CertificateDer::pem_file_iter(path).map_err(failed)? {
        let root = root.map_err(failed)?;
        given.push(root.clone());
        store.add(root).map_err(|error| match error {
            Error::InvalidCertificate(error) => {
                format!("`{}` cannot be used: {}", path.display(), describe(&error))
            }
            error => error.to_string(),
        })?;
    }
    match store.is_empty() {
        true => Err(format!("there is no certificate in `{}`", path.display())),
        false => Ok(store),
    }
}

/// Verifies as much of a certificate as was asked for, and always that the server has its key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    roots: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of the file that the address names.
    given: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

/// Returns whether the only problem is that the server presents a root certificate as its own.
fn is_root(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else {
        return false;
    };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

#[allow(
    deprecated,
    reason = "other versions of the library return the old variants"
)]
pub(super) fn describe(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; is the clock right?"
        }
        CertificateError::UnknownIssuer => {
            "no known root signed the server's certificate; name the file of the root that did, or of the certificate itself, with `sslrootcert`"
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            // Each has its kind in front, as in `DnsName("localhost")`.
            let plain = |name: &String| {
                let inner = name.split(['(', ')']).nth(1).unwrap_or(name);
                inner.trim_matches('"').to_owned()
            };
            let names: Vec<_> = presented.iter().map(plain).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            return format!(
                "the server's certificate is not for `{}`; its alternative names: {names} (a common name does not count). Use a name that it has, or sslmode=verify-ca",
                expected.to_str()
            );
        }
        CertificateError::NotValidForName => {
            "the server's certificate is for another name; use that one, or sslmode=verify-ca"
        }
        CertificateError::Revoked => "the server's certificate was revoked",
        CertificateError::BadEncoding => "it is not a certificate that can be read",
        CertificateError::BadSignature => "a signature in the server's certificate is wrong",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not meant for servers"
        }
        error if is_root(error) => {
            "the server presents a root certificate; name the file of that very certificate with `sslrootcert`"
        }
        other => return format!("the server's certificate is not accepted ({other:?})"),
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
        // Such a certificate is not signed by a root but is one; that it has not expired was verified before.
        let is_given = |error: &CertificateError| {
            is_root(error) && self.given.iter().any(|given| given == end_entity)
        };
        match verified {
            // The chain is verified before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            Err(Error::InvalidCertificate(error)) if is_given(&error) => {
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, io::Error> {
        // Unix sockets have no host name; PostgreSQL does not encrypt them.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned());
        Ok(ToHost {
            name: name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
            config: Arc::clone(&self.config),
        })
    }
}

pub(crate) struct ToHost {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl<S> TlsConnect<S> for ToHost
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = TlsConnector::from(self.config);
            connector.connect(self.name, stream).await.map(Encrypted)
        })
    }
}

pub(crate) struct Encrypted<S>(Stream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
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
