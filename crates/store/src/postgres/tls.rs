//! Encrypted connections to a PostgreSQL server, by rustls.
//!
//! The `sslmode` of the address says how much of the server's certificate is verified, as in PostgreSQL's own programs: nothing,
//! that a root signed it, or also that it is for the host of the address.

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
    /// Takes the parameters `sslmode` and `sslrootcert`: a file with roots, or `system` for those of the system.
    pub(super) fn new(mode: &str, root: Option<&str>) -> Result<(SslMode, Self), String> {
        let (mode, checks_chain, checks_name) = match mode {
            "disable" => (SslMode::Disable, false, false),
            "prefer" => (SslMode::Prefer, false, false),
            // With roots it verifies the chain, as PostgreSQL's own programs do.
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
            given: Vec::new(),
            checks_name,
        };
        if checks_chain {
            let file = root.filter(|root| *root != "system");
            let mut store = RootCertStore::empty();
            if let Some(file) = file {
                let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
                verifier.given = read.map_err(|error| format!("cannot read `{file}`: {error}"))?;
                store.add_parsable_certificates(verifier.given.clone());
            } else {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            if store.is_empty() {
                let place = file.unwrap_or("this system; name a file with `sslrootcert`");
                return Err(format!("there is no certificate in {place}"));
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

/// Verifies as much of a certificate as was asked for, and always that the server has its key.
#[derive(Debug)]
struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
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

pub(super) fn describe(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::ExpiredContext { .. } => "the server's certificate has expired",
        CertificateError::NotValidYetContext { .. } => {
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
        error if is_root(error) => {
            "the server presents a root certificate; name the file of that very certificate with `sslrootcert`"
        }
        other => return format!("the server's certificate is not accepted: {other}"),
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
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))
                if !self.checks_name =>
            {
                Ok(ServerCertVerified::assertion())
            }
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
    type Stream = Encrypted;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<ToHost> {
        // Unix sockets have no host name; PostgreSQL does not encrypt them.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned());
        Ok(ToHost {
            name: name.map_err(io::Error::other)?,
            connector: self.0.clone(),
        })
    }
}

pub(crate) struct ToHost {
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let connect = self.connector.connect(self.name, stream);
        Box::pin(connect.map_ok(Encrypted))
    }
}

pub(crate) struct Encrypted(Stream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
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
