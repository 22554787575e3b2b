//! The setup: a program behind the proxy, the server to which a secret is bound, and a server of an attacker.

use crate::support::{ScriptedResolver, patterns};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use lango_core::{BoxFuture, UserId};
use lango_net::{
    Budget, Credentials, Egress, EgressLimits, EgressRules, Proxy, ProxyHandle, ProxyOptions,
    SecretAccess,
};
use lango_secrets::{
    Binding, BoundSecret, Masks, Origin, Placeholder, SecretError, SecretName, SecretSource,
    SecretStatus, SecretUser, SecretValue,
};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The secret value, with letters of both cases, digits and other characters. No test prints it.
pub(super) const VALUE: &str = "ghp_Zq7/RtY+w0pLm9XcVb2NkJ5h=";

/// The last `Authorization` header of any request, like on a server that stores it and shows it to other clients.
static LAST: Mutex<String> = Mutex::new(String::new());

/// A secret source with one secret.
#[derive(Debug)]
pub(super) struct OneSecret {
    pub bound: Vec<BoundSecret>,
    resolved: AtomicUsize,
    /// The places in which placeholders were blocked.
    blocked: Mutex<Vec<String>>,
}

impl SecretSource for OneSecret {
    fn bound_secrets<'a>(
        &'a self,
        _: &'a UserId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<BoundSecret>, SecretError>> {
        Box::pin(async { Ok(self.bound.clone()) })
    }

    fn resolve<'a>(
        &'a self,
        _: &'a SecretUser,
        _: &'a BoundSecret,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        self.resolved.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Arc::new(SecretValue::new(VALUE))) })
    }

    fn load_masks<'a>(&'a self, _: &'a UserId, _: Duration) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn log_blocked<'a>(
        &'a self,
        _: &'a SecretUser,
        name: &'a SecretName,
        place: &'a str,
    ) -> BoxFuture<'a, ()> {
        let mut blocked = self.blocked.lock().unwrap();
        blocked.push(format!("{name} in {place}"));
        Box::pin(std::future::ready(()))
    }

    fn status<'a>(
        &'a self,
        _: &'a UserId,
        _: &'a SecretName,
    ) -> BoxFuture<'a, Result<SecretStatus, SecretError>> {
        Box::pin(std::future::ready(Ok(SecretStatus::Stored)))
    }

    fn locked_secrets<'a>(&'a self, _: &'a UserId, _: &'a str) -> BoxFuture<'a, Vec<BoundSecret>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn report(&self, _: &str) {}
}

pub(super) struct TestSetup {
    pub proxy: SocketAddr,
    pub handle: ProxyHandle,
    pub api: Site,
    pub evil: Site,
    pub placeholder: String,
    pub bundle: String,
    pub source: Arc<OneSecret>,
    pub access: SecretAccess,
}

/// A server with TLS and one without, with a common log of their requests.
pub(super) struct Site {
    pub secure: u16,
    pub plain: u16,
    pub log: Arc<Mutex<Vec<String>>>,
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl TestSetup {
    pub(super) async fn new() -> Self {
        Self::with(|egress| egress).await
    }

    pub(super) async fn with(change: impl FnOnce(Egress) -> Egress) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, key).unwrap();
        let api = Site::start(&ca, "api.example").await;
        let evil = Site::start(&ca, "evil.example").await;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(ca.der().clone()).unwrap();
        let trust = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let rules = EgressRules {
            allow: patterns(&["api.example", "evil.example"]),
            deny: Vec::new(),
        };
        let limits = EgressLimits {
            tunnel_idle_time: Duration::from_secs(5),
            ..EgressLimits::default()
        };
        let egress = Egress::with_resolver(rules, limits, ScriptedResolver::new(&["127.0.0.1"]));
        let egress = change(egress.with_tls(Arc::new(trust)));

        let name = SecretName::new("TOKEN").unwrap();
        let origin = Origin::parse(&format!("api.example:{}", api.secure)).unwrap();
        let binding = Binding::header("exec", origin, "Authorization", "API_TOKEN").unwrap();
        let user = UserId::from("ann");
        let placeholder = Placeholder::new(&user, &name).to_string();
        let source = Arc::new(OneSecret {
            bound: vec![BoundSecret { name, binding }],
            resolved: AtomicUsize::new(0),
            blocked: Mutex::default(),
        });
        let access = SecretAccess::new(Arc::clone(&source) as _, Masks::default());
        let program = access
            .credentials(&SecretUser::from(&user), &source.bound)
            .unwrap()
            .unwrap();
        let bundle = std::fs::read_to_string(&program.certificates).unwrap();
        let variable = |name: &str| {
            let variable = program.variables.iter().find(|(own, _)| own == name);
            variable.map(|(_, value)| value.clone())
        };
        assert_eq!(variable("API_TOKEN"), Some(placeholder.clone()));
        let (proxy, handle) = serve(egress, program.credentials);
        Self {
            proxy,
            handle,
            api,
            evil,
            placeholder,
            bundle,
            source,
            access,
        }
    }

    /// Returns the places in which placeholders were blocked.
    pub(super) fn blocked(&self) -> Vec<String> {
        self.source.blocked.lock().unwrap().clone()
    }

    pub(super) fn resolved(&self) -> usize {
        self.source.resolved.load(Ordering::SeqCst)
    }

    /// Opens a tunnel and starts TLS with this server name. Trusts the session's certificates.
    pub(super) async fn connect(
        &self,
        target: &str,
        name: &str,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let stream = self.tunnel(target).await?;
        self.secure(stream, name).await
    }

    /// Starts TLS in a tunnel.
    pub(super) async fn secure(
        &self,
        stream: TcpStream,
        name: &str,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.bundle.as_bytes()) {
            // Some of the system's certificates may be too old.
            let _ = roots.add(certificate.unwrap());
        }
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        tokio::time::timeout(Duration::from_secs(10), connecting).await?
    }

    /// Opens a tunnel and returns it without TLS.
    pub(super) async fn tunnel(&self, target: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.proxy).await?;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let head = crate::support::read_head(&mut stream).await;
        if head.starts_with("HTTP/1.1 200") {
            Ok(stream)
        } else {
            Err(std::io::Error::other(head))
        }
    }

    /// Sends a request to the bound server. Replaces `{P}` with the placeholder and `{H}` with the server's authority.
    pub(super) async fn send(&self, request: &str) -> String {
        let target = format!("api.example:{}", self.api.secure);
        let request = self.fill(request);
        match self.connect(&target, "api.example").await {
            Ok(stream) => exchange(stream, request.as_bytes()).await,
            Err(error) => format!("not connected: {error}"),
        }
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let authority = format!("api.example:{}", self.api.secure);
        let p64 = STANDARD.encode(format!("x-access-token:{}", self.placeholder));
        text.replace("{P}", &self.placeholder)
            .replace("{H}", &authority)
            .replace("{P64}", &p64)
    }
}

fn serve(egress: Egress, credentials: Credentials) -> (SocketAddr, ProxyHandle) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let options = ProxyOptions {
        only_hosts: None,
        budget: Budget::new(egress.limits()),
        credentials: Some(credentials),
    };
    (address, Proxy::serve(listener, egress, options).unwrap())
}

/// Sends bytes, and reads until the other side closes the connection.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &[u8],
) -> String {
    let _ = stream.write_all(request).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(10), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

impl Site {
    async fn start(ca: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, ca).unwrap();
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let log = Arc::new(Mutex::new(Vec::new()));
        let secure = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            secure: secure.local_addr().unwrap().port(),
            plain: plain.local_addr().unwrap().port(),
            log: Arc::clone(&log),
        };
        let plain_log = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = plain.accept().await {
                tokio::spawn(answer_on(stream, Arc::clone(&plain_log)));
            }
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = secure.accept().await {
                let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer_on(stream, log).await;
                    }
                });
            }
        });
        site
    }

    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
}

async fn answer_on<S>(stream: S, log: Arc<Mutex<Vec<String>>>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let log = Arc::clone(&log);
        async move { Ok::<_, Infallible>(answer(request, &log).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Responds with the `Authorization` header, in the encoding that the path names.
async fn answer(request: Request<Incoming>, log: &Mutex<Vec<String>>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let mut line = format!("{} {}\n", parts.method, parts.uri);
    for (name, value) in &parts.headers {
        line.push_str(&format!(
            "{name}: {}\n",
            String::from_utf8_lossy(value.as_bytes())
        ));
    }
    if parts.uri.path() == "/early" {
        log.lock().unwrap().push(line);
        return Response::builder()
            .status(413)
            .body(Full::new("early".into()))
            .unwrap();
    }
    match body.collect().await {
        Ok(body) => {
            if let Some(trailers) = body.trailers() {
                line.push_str(&format!("trailers: {trailers:?}\n"));
            }
            let bytes = body.to_bytes();
            line.push_str(&format!("body: {} bytes\n", bytes.len()));
            line.push_str(&String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]));
        }
        Err(error) => line.push_str(&format!("broken body: {error}")),
    }
    log.lock().unwrap().push(line);
    let header = parts.headers.get("authorization");
    let echo = header
        .map_or("none", |value| value.to_str().unwrap_or("?"))
        .to_owned();
    if header.is_some() {
        *LAST.lock().unwrap() = echo.clone();
    }
    let last = LAST.lock().unwrap().clone();
    let token = echo.rsplit(' ').next().unwrap_or_default().to_owned();
    let filler = parts.headers.get("x-filler").map(|value| value.as_bytes());
    let echo = format!(
        "{echo}{}",
        String::from_utf8_lossy(filler.unwrap_or_default())
    );
    let ok = Response::builder().status(200);
    let (ok, body): (_, Vec<u8>) = match parts.uri.path() {
        "/echo" => (ok, format!("you sent {echo}, thank you").into()),
        "/base64" => (ok, STANDARD.encode(format!("ab{token}c")).into()),
        "/hex" => {
            let digits = token.bytes().map(|byte| format!("{byte:02x}"));
            (ok, digits.collect::<String>().into())
        }
        "/json" => {
            let escaped = token.replace('/', "\\/").replace('+', "\\u002b");
            (ok, format!("{{\"token\":\"{escaped}\"}}").into())
        }
        "/percent" => {
            let escaped = token.bytes().map(|byte| format!("%{byte:02X}"));
            (ok, escaped.collect::<String>().into())
        }
        "/gzip" => (ok.header("content-encoding", "gzip"), gzip(&echo)),
        "/zlib" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(echo.as_bytes()).unwrap();
            (
                ok.header("content-encoding", "deflate"),
                encoder.finish().unwrap(),
            )
        }
        "/deflate" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(echo.as_bytes()).unwrap();
            (
                ok.header("content-encoding", "deflate"),
                encoder.finish().unwrap(),
            )
        }
        "/last" => {
            let range = parts.headers.contains_key("range");
            (
                ok,
                last.as_bytes()[..if range {
                    last.len().min(20)
                } else {
                    last.len()
                }]
                    .to_vec(),
            )
        }
        "/last-gzip" => (ok.header("content-encoding", "gzip"), gzip(&last)),
        "/brotli" => (ok.header("content-encoding", "br"), echo.clone().into()),
        "/two-lines" => (
            ok.header("content-encoding", "identity")
                .header("content-encoding", "gzip"),
            gzip(&echo),
        ),
        "/two-codings" => (
            ok.header("content-encoding", "gzip")
                .header("content-encoding", "gzip"),
            gzip(&echo),
        ),
        "/transfer-coding" => (ok.header("transfer-encoding", "gzip, chunked"), gzip(&echo)),
        "/range" => {
            let range = parts
                .headers
                .get("range")
                .and_then(|range| range.to_str().ok());
            let end: Option<usize> = range.and_then(|range| range.rsplit('-').next()?.parse().ok());
            let end = end.map_or(echo.len(), |end| (end + 1).min(echo.len()));
            (ok, echo.as_bytes()[..end].to_vec())
        }
        "/in-header" => (
            ok.header("x-echo", &echo)
                .header("location", format!("https://evil.example/?{token}")),
            Vec::new(),
        ),
        "/reason" => {
            let phrase = hyper::ext::ReasonPhrase::try_from(echo.as_bytes()).unwrap();
            (ok.extension(phrase), Vec::new())
        }
        "/redirect" => (
            Response::builder()
                .status(302)
                .header("location", "https://evil.example/"),
            Vec::new(),
        ),
        "/nothing" => (Response::builder().status(204), Vec::new()),
        _ => (ok, b"fine".to_vec()),
    };
    ok.body(Full::new(body.into())).unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
