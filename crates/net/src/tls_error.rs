//! Readable messages for failed TLS handshakes. The messages of the library contain the names of its types.

use rustls::{CertificateError, Error};
use std::io;

/// Replaces the text of a TLS error with a readable one. Other I/O errors stay unchanged.
pub(crate) fn explain(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner.map(describe) {
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}

fn describe(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => describe_certificate(error),
        Error::InvalidMessage(_) => "the server does not speak TLS at this port".to_owned(),
        Error::AlertReceived(alert) => {
            let alert = split_words(&format!("{alert:?}"));
            format!("the server refused the TLS handshake ({alert})")
        }
        Error::PeerIncompatible(_) => {
            "the server supports no TLS version or cipher that lango supports".to_owned()
        }
        Error::PeerMisbehaved(_) => "the server violated the TLS protocol".to_owned(),
        Error::NoCertificatesPresented => "the server presented no certificate".to_owned(),
        other => other.to_string(),
    }
}

#[allow(
    deprecated,
    reason = "the verifiers of platforms return the variants without a context"
)]
fn describe_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    let text = match error {
        E::Expired | E::ExpiredContext { .. } => "its certificate has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clock of this machine"
        }
        E::Revoked => "its certificate was revoked",
        E::UnknownIssuer => {
            "its certificate is from an authority that this machine does not trust; to trust your own authority, set SSL_CERT_FILE to a file with its certificates"
        }
        E::NotValidForName => "its certificate is for another host name",
        E::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<String> = presented.iter().map(|name| plain_name(name)).collect();
            return format!(
                "its certificate is not for `{}` but for {}",
                expected.to_str(),
                match names.as_slice() {
                    [] => "no host".to_owned(),
                    names => names.join(", "),
                }
            );
        }
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "its certificate is not meant for servers"
        }
        E::BadEncoding => "its certificate cannot be read",
        E::BadSignature => "a signature in its certificate is wrong",
        E::Other(_) => "its certificate is not a valid server certificate",
        other => {
            return format!(
                "its certificate is refused ({})",
                split_words(&variant(other))
            );
        }
    };
    text.to_owned()
}

/// Extracts the name from a text such as `DnsName("localhost")`.
fn plain_name(name: &str) -> String {
    let inner = name.split(['(', ')']).nth(1).unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

/// Returns the name of an error's variant without its fields.
fn variant(error: &CertificateError) -> String {
    let debug = format!("{error:?}");
    let end = debug.find(|letter: char| !letter.is_ascii_alphanumeric());
    debug[..end.unwrap_or(debug.len())].to_owned()
}

/// Turns `HandshakeFailure` into `handshake failure`.
fn split_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, InvalidMessage};

    #[test]
    fn tls_errors_have_readable_messages() {
        for (error, message) in [
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "its certificate is from an authority that this machine does not trust; to trust your own authority, set SSL_CERT_FILE to a file with its certificates",
            ),
            (
                Error::InvalidCertificate(CertificateError::UnknownRevocationStatus),
                "its certificate is refused (unknown revocation status)",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "the server refused the TLS handshake (handshake failure)",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "the server does not speak TLS at this port",
            ),
        ] {
            let explained = explain(io::Error::other(error));
            assert_eq!(explained.to_string(), message);
        }
        let unchanged = explain(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(unchanged.kind(), io::ErrorKind::ConnectionReset);
    }
}
