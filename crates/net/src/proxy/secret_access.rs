//! Gives sandboxed programs access to secrets: placeholders for their values, and a file with the certificates to
//! trust.

use super::credentials::Credentials;
use super::session_ca::SessionCa;
use lango_core::{SessionId, UserId};
use lango_secrets::{BoundSecret, Masks, SecretSource, SecretUser};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The environment variables that tell programs which file of certificates to trust.
const CERTIFICATE_VARIABLES: [&str; 14] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "BUNDLE_SSL_CA_CERT",
    "COMPOSER_CAFILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "NIX_SSL_CERT_FILE",
];

/// The maximum number of cached certificate authorities. Programs of the same session share one.
const MAX_AUTHORITIES: usize = 64;

/// The access of this process's sandboxed programs to secrets. Clones share the certificate authorities.
#[derive(Debug, Clone)]
pub struct SecretAccess {
    source: Arc<dyn SecretSource>,
    masks: Masks,
    /// The authorities of sessions, and of programs that serve all sessions of a user. The most recently used one is
    /// last.
    authorities: Arc<Mutex<VecDeque<OwnedAuthority>>>,
}

type OwnedAuthority = ((UserId, Option<SessionId>), Arc<SessionCa>);

/// The resources of one program that uses secrets.
#[derive(Debug, Clone)]
pub struct ProgramCredentials {
    /// The credentials for [`ProxyOptions`](super::ProxyOptions).
    pub credentials: Credentials,
    /// Environment variables with the placeholders and the path of the certificates.
    pub variables: Vec<(String, String)>,
    /// The file with the certificates, which exists as long as the credentials. The program must be able to read it,
    /// but not to write it.
    pub certificates: PathBuf,
}

impl SecretAccess {
    /// Creates the access. The certificate authority of a session is created when first needed.
    pub fn new(source: Arc<dyn SecretSource>, masks: Masks) -> Self {
        Self {
            source,
            masks,
            authorities: Arc::default(),
        }
    }

    /// Returns the masks for the secret values in use.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Returns the source of bindings and values.
    pub fn source(&self) -> &Arc<dyn SecretSource> {
        &self.source
    }

    /// Returns the resources that a program needs for these secrets, or `None` if none of them is sent in a header.
    pub fn credentials(
        &self,
        by: &SecretUser,
        bound: &[BoundSecret],
    ) -> io::Result<Option<ProgramCredentials>> {
        let is_header = |secret: &BoundSecret| secret.binding.target.is_header();
        if !bound.iter().any(is_header) {
            return Ok(None);
        }
        let ca = self.authority(by)?;
        let certificates = ca.bundle_path().to_owned();
        let (source, masks) = (Arc::clone(&self.source), self.masks.clone());
        let Some(credentials) = Credentials::new(by.clone(), source, bound, masks, ca) else {
            return Ok(None);
        };
        let mut variables = credentials.variables();
        let path = certificates.to_string_lossy().into_owned();
        variables.extend(CERTIFICATE_VARIABLES.map(|name| (name.to_owned(), path.clone())));
        Ok(Some(ProgramCredentials {
            credentials,
            variables,
            certificates,
        }))
    }

    fn authority(&self, by: &SecretUser) -> io::Result<Arc<SessionCa>> {
        let owner = (by.user.clone(), by.session.clone());
        let mut authorities = self
            .authorities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = authorities.iter().position(|(known, _)| *known == owner);
        let known = known.and_then(|index| authorities.remove(index));
        let ca = match known.filter(|(_, ca)| ca.has_bundle()) {
            Some((_, ca)) => ca,
            None => Arc::new(SessionCa::new()?),
        };
        if authorities.len() >= MAX_AUTHORITIES {
            authorities.pop_front();
        }
        authorities.push_back((owner, Arc::clone(&ca)));
        Ok(ca)
    }
}
