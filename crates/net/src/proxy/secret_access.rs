//! What sandboxed programs need to use secrets: the source of the values, and a file with the certificates to trust.

use super::credentials::Credentials;
use super::session_ca::SessionCa;
use lango_secrets::{BoundSecret, Masks, SecretSource, SecretUser};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// Environment variables from which programs take the file of the certificates that they trust.
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

/// The access of this process's sandboxed programs to secrets. Clones share the certificate authority.
#[derive(Debug, Clone)]
pub struct SecretAccess {
    source: Arc<dyn SecretSource>,
    masks: Masks,
    certificates: Arc<Mutex<Option<Certificates>>>,
}

#[derive(Debug)]
struct Certificates {
    ca: Arc<SessionCa>,
    /// Deleted with the last clone of the access.
    file: NamedTempFile,
}

/// What one program gets: the credentials for its proxy, variables, and a file that it must be able to read.
#[derive(Debug, Clone)]
pub struct ProgramCredentials {
    /// For [`ProxyOptions`](super::ProxyOptions).
    pub credentials: Credentials,
    /// Environment variables with the placeholders and the path of the certificates.
    pub variables: Vec<(String, String)>,
    /// The file with the certificates. The program must not be able to write it.
    pub certificates: PathBuf,
}

impl SecretAccess {
    /// Creates the access. The certificate authority is created when it is first needed.
    pub fn new(source: Arc<dyn SecretSource>, masks: Masks) -> Self {
        Self {
            source,
            masks,
            certificates: Arc::default(),
        }
    }

    /// Returns the masks of values in use.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Returns the source of bindings and values.
    pub fn source(&self) -> &Arc<dyn SecretSource> {
        &self.source
    }

    /// Returns what a program needs for these secrets of a user; `None` if none of them goes into a header.
    pub fn credentials(
        &self,
        by: &SecretUser,
        bound: &[BoundSecret],
    ) -> io::Result<Option<ProgramCredentials>> {
        let is_header = |secret: &BoundSecret| secret.binding.target.is_header();
        if !bound.iter().any(is_header) {
            return Ok(None);
        }
        let (ca, certificates) = self.certificates()?;
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

    fn certificates(&self) -> io::Result<(Arc<SessionCa>, PathBuf)> {
        let mut certificates = self
            .certificates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The file may be gone: programs that clean temporary folders do not know it.
        if let Some(known) = certificates
            .as_ref()
            .filter(|known| known.file.path().exists())
        {
            return Ok((Arc::clone(&known.ca), real(known.file.path())?));
        }
        let ca = match certificates.take() {
            Some(known) => known.ca,
            None => Arc::new(SessionCa::new()?),
        };
        let file = write_bundle(&ca)?;
        let path = real(file.path())?;
        *certificates = Some(Certificates {
            ca: Arc::clone(&ca),
            file,
        });
        Ok((ca, path))
    }
}

/// Writes the certificates to a file that sandboxed programs can read. It contains nothing secret.
fn write_bundle(ca: &SessionCa) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("lango-certificates-")
        .suffix(".pem")
        .tempfile()?;
    file.write_all(ca.bundle().as_bytes())?;
    file.flush()?;
    let permissions = std::fs::Permissions::from_mode(0o444);
    file.as_file().set_permissions(permissions)?;
    Ok(file)
}

fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}
