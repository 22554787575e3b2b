//! TLS of the client: a request fails if the certificate is not trusted or is for another host.

use crate::support::{ScriptedResolver, Server, budget, ok, rules, url};
use lango_net::{Egress, EgressError, EgressLimits, HeaderMap};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn certificate(folder: &Path) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=site.example",
        ])
        .args(["-addext", "subjectAltName=DNS:site.example"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    (
        CertificateDer::from_pem_file(certificate).unwrap(),
        PrivateKeyDer::from_pem_file(key).unwrap(),
    )
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Starts a TLS server that redirects `/down` to the URL `plain`. Returns its port.
async fn secure_server(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    plain: String,
) -> u16 {
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = vec![0; 4096];
            let count = stream.read(&mut head).await.unwrap_or(0);
            let answer = if head[..count].starts_with(b"GET /down") {
                crate::support::redirect(302, &plain)
            } else {
                ok("secure")
            };
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_for_the_host_of_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let plain = Server::start(|_| ok("plain")).await;
    let port = secure_server(
        certificate.clone(),
        key,
        format!("http://{}/", plain.address),
    )
    .await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let rules = rules(
        &["site.example", "other.example", &plain.address.to_string()],
        &[],
    );
    let untrusting = Egress::with_resolver(
        rules,
        EgressLimits::default(),
        ScriptedResolver::new(&["127.0.0.1"]),
    );
    let egress = untrusting.clone().with_tls(Arc::new(config));
    let (headers, budget) = (HeaderMap::new(), budget());

    let own = url(&format!("https://site.example:{port}/"));
    let fetched = egress.client().get(&own, &headers, &budget).await.unwrap();
    assert_eq!(fetched.body, b"secure");

    let other = url(&format!("https://other.example:{port}/"));
    let error = egress
        .client()
        .get(&other, &headers, &budget)
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Tls { .. }));
    let text = lango_core::error_chain(&error);
    let reason = "its certificate is not for `other.example` but for site.example";
    assert!(text.ends_with(reason), "{text}");

    let error = untrusting
        .client()
        .get(&own, &headers, &budget)
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Tls { .. }));
    let text = lango_core::error_chain(&error);
    assert!(text.contains(": its certificate is "), "{text}");

    let down = url(&format!("https://site.example:{port}/down"));
    let fetched = egress.client().get(&down, &headers, &budget).await.unwrap();
    assert!(fetched.was_downgraded && fetched.body == b"plain");
}
