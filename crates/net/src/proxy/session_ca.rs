//! The certificate authority of a process: the proxy signs certificates with it for the hosts whose TLS it terminates.
//!
//! The keys exist only in memory. Sandboxed programs get the certificate in a bundle with the system's roots; nothing
//! else trusts it.

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
use std::fmt::{self, Write};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Maximum number of hosts with a cached certificate.
const MOST_HOSTS: usize = 512;
/// The certificates are older than the process, for programs whose clock is behind.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Programs refuse certificates that are valid for much longer than a year.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Characters per line of a certificate in PEM.
const PEM_LINE: usize = 64;

/// A certificate authority whose keys are in memory only.
pub struct SessionCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of all certificates for hosts.
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
    pub fn new() -> io::Result<Self> {
        let mut params = parameters("lango session")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)?,
            host_key: KeyPair::generate().map_err(io::Error::other)?,
            hosts: Mutex::default(),
        })
    }

    /// Returns the certificates that sandboxed programs may trust, in PEM: the system's roots and this authority.
    pub fn bundle(&self) -> String {
        let system = rustls_native_certs::load_native_certs().certs;
        let mut bundle = String::new();
        for certificate in system.iter().chain([self.issuer.der()]) {
            push_pem(&mut bundle, certificate);
        }
        bundle
    }

    /// Returns the TLS settings of a server that presents a certificate for a host.
    pub(super) fn server_config(&self, host: &Host) -> io::Result<Arc<ServerConfig>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = hosts.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.new_server_config(host)?);
        if hosts.len() >= MOST_HOSTS {
            hosts.clear();
        }
        hosts.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn new_server_config(&self, host: &Host) -> io::Result<ServerConfig> {
        // A common name has at most 64 characters; programs read the alternative name.
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
