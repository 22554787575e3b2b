//! Encrypted connections to a PostgreSQL server, by rustls.
//!
//! How much of the server's certificate is checked is the address' choice, with the meaning that PostgreSQL's own programs
//! give it: encrypted to whoever answers, to anybody that a root vouches for, or to the host that was named.

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

/// Whom to believe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Whoever answers.
    Anybody,
    /// Anybody that one of these roots vouches for, or one of the system's.
    AnyName(Option<PathBuf>),
    /// The host of the address, if one of these roots vouches for it, or one of the system's.
    ThisName(Option<PathBuf>),
}

/// What connections are encrypted with.
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
        let (checks, roots) = match trust {
            Trust::Anybody => (None, None),
            Trust::AnyName(roots) => (Some(Names::Ignored), roots),
            Trust::ThisName(roots) => (Some(Names::Checked), roots),
        };
        let mut given = Vec::new();
        let roots = match checks {
            None => None,
            Some(_) => {
                let store = Arc::new(root_store(roots.as_deref(), &mut given)?);
                let chains =
                    WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider));
                Some(chains.build().map_err(|error| error.to_string())?)
            }
        };
        let verifier = Verifier {
            provider,
            roots,
            given,
            names: checks.unwrap_or(Names::Ignored),
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

/// The roots in a file, which are also noted as `given`, or those of the system.
fn root_store(
    file: Option<&Path>,
    given: &mut Vec<CertificateDer<'static>>,
) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    match file {
        Some(path) => {
            let failed = |error| format!("cannot read `{}`: {error}", path.display());
            let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
            for root in found {
                let root = root.map_err(failed)?;
                given.push(root.clone());
                store.add(root).map_err(|error| match error {
                    Error::InvalidCertificate(error) => {
                        format!("`{}` cannot be used: {}", path.display(), words(&error))
                    }
                    error => error.to_string(),
                })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
    }
    match (store.is_empty(), file) {
        (true, Some(path)) => Err(format!("there is no certificate in `{}`", path.display())),
        (true, None) => {
            Err("this system has no root certificates; name a file with `sslrootcert`".to_owned())
        }
        (false, _) => Ok(store),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Ignored,
    Checked,
}

/// Checks as much of a certificate as was asked for, and always that the other side has its key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    roots: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of the file that the address names.
    given: Vec<CertificateDer<'static>>,
    names: Names,
}

impl Verifier {
    /// Whether the server shows one of the very certificates that it is to be believed by. Such a one vouches for itself,
    /// which is all that is wrong with it: that its time is not over has been found out before.
    fn is_given_itself(&self, shown: &CertificateDer<'_>, error: &CertificateError) -> bool {
        is_root(error)
            && self
                .given
                .iter()
                .any(|given| given.as_ref() == shown.as_ref())
    }
}

/// Whether all that is wrong is that a root's own certificate is shown as a server's.
fn is_root(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else {
        return false;
    };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// What is wrong with a certificate, in words for whoever wrote the address.
#[allow(
    deprecated,
    reason = "other versions of the library say it in the old words"
)]
pub(super) fn words(error: &CertificateError) -> String {
    let said = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate does not hold yet; is the clock right?"
        }
        CertificateError::UnknownIssuer => {
            "nobody vouches for the server's certificate; name the file of the root that does, or of the certificate itself, with `sslrootcert`"
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let presented = match presented.as_slice() {
                [] => "none".to_owned(),
                // Each has its kind in front, as in `DnsName("localhost")`.
                names => {
                    let plain = |name: &String| {
                        let inner = name.split(['(', ')']).nth(1).unwrap_or(name);
                        inner.trim_matches('"').to_owned()
                    };
                    names.iter().map(plain).collect::<Vec<_>>().join(", ")
                }
            };
            return format!(
                "the server's certificate is not for `{}`; its alternative names: {presented} (a common name is not looked at). Use a name that it has, or sslmode=verify-ca",
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
            "the server shows a root's own certificate; name the file of that very certificate with `sslrootcert`"
        }
        other => return format!("the server's certificate is not accepted ({other:?})"),
    };
    said.to_owned()
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
        match verified {
            // The chain is checked before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.names == Names::Ignored => Ok(ServerCertVerified::assertion()),
            Err(Error::InvalidCertificate(error)) if self.is_given_itself(end_entity, &error) => {
                if self.names == Names::Checked {
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
        // A server behind a socket in a folder has no name; none is checked there.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned());
        Ok(ToHost {
            name: name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
            config: Arc::clone(&self.config),
        })
    }
}

/// A handshake with one host.
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

/// An encrypted connection.
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
