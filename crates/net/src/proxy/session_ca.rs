//! The certificate authority of a session. The proxy uses it to sign certificates for the hosts whose TLS it
//! terminates.
//!
//! The keys exist only in memory. Sandboxed programs get the certificate in a file together with the system's roots; no
//! other program trusts it.

use crate::destination::Host;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::Metadata;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// The maximum number of hosts with a cached certificate.
const MAX_HOSTS: usize = 512;
/// How far the certificates are backdated, for programs whose clock is slow.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the certificates are valid. Programs reject certificates that are valid for much longer than a year.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The number of characters per line in a PEM file.
const PEM_LINE: usize = 64;

/// The certificates that the system trusts, in PEM.
static SYSTEM_ROOTS: LazyLock<String> = LazyLock::new(|| {
    let mut roots = String::new();
    for certificate in rustls_native_certs::load_native_certs().certs {
        push_pem(&mut roots, &certificate);
    }
    roots
});

/// A certificate authority whose keys are only in memory, and the file of certificates that its programs trust.
pub(super) struct SessionCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Deleted with the authority.
    bundle: NamedTempFile,
    bundle_path: PathBuf,
    /// The key of all host certificates.
    host_key: KeyPair,
    hosts: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

impl fmt::Debug for SessionCa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionCa")
    }
}

impl SessionCa {
    /// Creates an authority with new keys.
    pub(super) fn new() -> io::Result<Self> {
        let mut params = parameters("lango session")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)?;
        let bundle = write_bundle(issuer.der())?;
        Ok(Self {
            bundle_path: bundle.path().canonicalize()?,
            bundle,
            issuer,
            host_key: KeyPair::generate().map_err(io::Error::other)?,
            hosts: Mutex::default(),
        })
    }

    /// Returns the file of certificates that sandboxed programs trust: the system's roots and this authority.
    pub(super) fn bundle_path(&self) -> &Path {
        &self.bundle_path
    }

    /// Returns whether the file still exists and was not replaced. A program that cleans up temporary directories may
    /// have deleted it.
    pub(super) fn has_bundle(&self) -> bool {
        let current = std::fs::symlink_metadata(&self.bundle_path);
        let own = self.bundle.as_file().metadata();
        let identity = |file: Metadata| (file.dev(), file.ino());
        matches!(
            (current.map(identity), own.map(identity)),
            (Ok(current), Ok(own)) if current == own
        )
    }

    /// Returns the TLS configuration of a server with a certificate for this host.
    pub(super) fn server_config(&self, host: &Host) -> io::Result<Arc<ServerConfig>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = hosts.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.new_server_config(host)?);
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn new_server_config(&self, host: &Host) -> io::Result<ServerConfig> {
        // A common name has at most 64 characters, so it is not the host. Programs read the alternative name.
        let mut params = parameters("lango session host")?;
        params.subject_alt_names = vec![match host {
            Host::Address(address) => SanType::IpAddress(*address),
            Host::Name(name) => {
                SanType::DnsName(name.as_str().try_into().map_err(io::Error::other)?)
            }
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params
            .signed_by(&self.host_key, &self.issuer)
            .map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(self.host_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn parameters(name: &str) -> io::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - AGE).into();
    params.not_after = (now + VALIDITY - AGE).into();
    Ok(params)
}

/// Writes the certificates to a file that sandboxed programs can read. It contains nothing secret.
fn write_bundle(authority: &CertificateDer<'_>) -> io::Result<NamedTempFile> {
    let mut bundle = SYSTEM_ROOTS.clone();
    push_pem(&mut bundle, authority);
    let mut file = tempfile::Builder::new()
        .prefix("lango-certificates-")
        .suffix(".pem")
        .tempfile()?;
    file.write_all(bundle.as_bytes())?;
    file.flush()?;
    let permissions = std::fs::Permissions::from_mode(0o444);
    file.as_file().set_permissions(permissions)?;
    Ok(file)
}

fn push_pem(bundle: &mut String, certificate: &CertificateDer<'_>) {
    let text = STANDARD.encode(certificate);
    bundle.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE));
        // Writing to a string does not fail.
        let _ = writeln!(bundle, "{line}");
        rest = after;
    }
    bundle.push_str("-----END CERTIFICATE-----\n");
}
