//! Failed TLS handshakes in plain words: the library prints the names of its types instead.

use rustls::{CertificateError, Error};
use std::io;

/// Returns the error of a handshake with a text for people. Errors of the connection stay as they are.
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
            "its certificate is from an authority that this machine does not trust; a file with the certificates of your own authority goes into SSL_CERT_FILE"
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

/// Takes the name out of a text such as `DnsName("localhost")`.
fn plain_name(name: &str) -> String {
    let inner = name.split(['(', ')']).nth(1).unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

/// Returns the name of an error's variant without its fields.
fn variant(error: &CertificateError) -> String {
    let shown = format!("{error:?}");
    let end = shown.find(|letter: char| !letter.is_ascii_alphanumeric());
    shown[..end.unwrap_or(shown.len())].to_owned()
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
    fn errors_of_tls_are_plain_words() {
        for (error, words) in [
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "its certificate is from an authority that this machine does not trust; a file with the certificates of your own authority goes into SSL_CERT_FILE",
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
            assert_eq!(explained.to_string(), words);
        }
        let kept = explain(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(kept.kind(), io::ErrorKind::ConnectionReset);
    }
}
