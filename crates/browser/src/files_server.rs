//! The server behind the browser's second listener. It serves workspace files under `http://workspace.localhost/` and
//! nothing else; pages loaded from it have no other network access. It answers only while such a page is open, because
//! a web page that has compromised the browser's process can reach the listener too.

mod media_type;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, LOCATION};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use lango_tools::{Workspace, WorkspaceEntry};
use percent_encoding::percent_decode_str;
use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// The host name of workspace files.
pub(crate) const FILES_HOST: &str = "workspace.localhost";
/// Maximum size of a served file.
const MAX_BYTES: u64 = 20 << 20;
/// Maximum number of files read concurrently.
const MAX_FILES: usize = 4;
/// Maximum number of connections; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 32;
/// Timeout for the headers of a request, and between two requests of a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

type Reply = Response<Full<Bytes>>;

/// A function that returns whether a page of the workspace is open.
type IsOpen = Box<dyn Fn() -> bool + Send + Sync>;

/// A running server. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct FilesServer(JoinHandle<()>);

struct Files {
    workspace: Workspace,
    is_open: IsOpen,
    reading: Semaphore,
}

impl FilesServer {
    /// Serves a workspace while `is_open` returns true.
    pub(crate) fn serve(
        listener: std::net::TcpListener,
        workspace: Workspace,
        is_open: impl Fn() -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let files = Files {
            workspace,
            is_open: Box::new(is_open),
            reading: Semaphore::new(MAX_FILES),
        };
        Ok(Self(tokio::spawn(accept(listener, Arc::new(files)))))
    }
}

impl Drop for FilesServer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept(listener: TcpListener, files: Arc<Files>) {
    // Dropping this set, when the task is aborted, closes the connections.
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
            continue;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&files)));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, files: Arc<Files>) {
    let service = service_fn(move |request| {
        let files = Arc::clone(&files);
        async move { Ok::<_, Infallible>(files.answer(&request).await) }
    });
    // The browser reopens broken connections.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Files {
    async fn answer(self: Arc<Self>, request: &Request<Incoming>) -> Reply {
        if !(self.is_open)() {
            return reply(StatusCode::FORBIDDEN, "no page of the workspace is open");
        }
        let uri = request.uri();
        if uri.host() != Some(FILES_HOST) || uri.port_u16().is_some_and(|port| port != 80) {
            let text = "pages of the workspace can load only files of the workspace";
            return reply(StatusCode::FORBIDDEN, text);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = reply(StatusCode::METHOD_NOT_ALLOWED, "files can only be read");
            refused
                .headers_mut()
                .insert(ALLOW, "GET, HEAD".parse().expect("a valid header"));
            return refused;
        }
        let Ok(path) = percent_decode_str(uri.path()).decode_utf8() else {
            return reply(StatusCode::BAD_REQUEST, "the path is not UTF-8");
        };
        let path = path.into_owned();
        let Ok(_permit) = self.reading.acquire().await else {
            return reply(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is shutting down",
            );
        };
        let files = Arc::clone(&self);
        let read = tokio::task::spawn_blocking(move || files.read(&path)).await;
        read.unwrap_or_else(|_| {
            reply(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the file could not be read",
            )
        })
    }

    fn read(&self, path: &str) -> Reply {
        let relative = path.trim_start_matches('/');
        let name = if relative.is_empty() { "." } else { relative };
        match self.workspace.open_entry(name) {
            Ok(WorkspaceEntry::File { file, size, .. }) => read_file(name, file, size),
            Ok(WorkspaceEntry::Folder) if path.ends_with('/') => {
                let index = format!("{name}/index.html");
                match self.workspace.open_entry(&index) {
                    Ok(WorkspaceEntry::File { file, size, .. }) => read_file(&index, file, size),
                    Ok(WorkspaceEntry::Folder) | Err(_) => {
                        reply(StatusCode::NOT_FOUND, "this folder has no index.html")
                    }
                }
            }
            Ok(WorkspaceEntry::Folder) => {
                let mut moved = reply(StatusCode::MOVED_PERMANENTLY, "this is a folder");
                match format!("{}/", encode_path(path)).parse() {
                    Ok(location) => {
                        moved.headers_mut().insert(LOCATION, location);
                        moved
                    }
                    Err(_) => reply(StatusCode::NOT_FOUND, "file not found"),
                }
            }
            Err(_) => reply(
                StatusCode::NOT_FOUND,
                "the workspace has no file at this path",
            ),
        }
    }
}

/// Returns the URL of a workspace path.
pub(crate) fn file_address(path: &str) -> String {
    format!(
        "http://{FILES_HOST}/{}",
        encode_path(path.trim_start_matches('/'))
    )
}

/// Percent-encodes the reserved characters of a path.
fn encode_path(path: &str) -> String {
    const ESCAPED: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'.')
        .remove(b'-')
        .remove(b'_')
        .remove(b'~');
    percent_encoding::utf8_percent_encode(path, ESCAPED).to_string()
}

fn read_file(name: &str, file: std::fs::File, size: u64) -> Reply {
    if size > MAX_BYTES {
        return reply(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the file is larger than 20 MiB",
        );
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The file may grow while it is read.
    if file.take(MAX_BYTES).read_to_end(&mut bytes).is_err() {
        return reply(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the file could not be read",
        );
    }
    let mut read = Response::new(Full::new(Bytes::from(bytes)));
    let media_type = media_type::of_name(name);
    let media_type = media_type.parse().expect("a valid header");
    read.headers_mut().insert(CONTENT_TYPE, media_type);
    read
}

fn reply(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *reply.status_mut() = status;
    let media_type = "text/plain; charset=utf-8".parse().expect("a valid header");
    reply.headers_mut().insert(CONTENT_TYPE, media_type);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_sandbox::Policy;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn send_request(address: SocketAddr, line: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn only_workspace_files_are_served_and_only_for_reading() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.html"), "the page").unwrap();
        std::fs::write(folder.path().join("key"), "the key").unwrap();
        let mut policy = Policy::of(folder.path().to_owned());
        policy.hidden = vec![folder.path().join("key")];
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let workspace = Workspace::open(policy).unwrap();
        let is_open = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&is_open);
        let open = move || open.load(Ordering::Relaxed);
        let _server = FilesServer::serve(listener, workspace, open).unwrap();
        let refused = send_request(address, "GET http://workspace.localhost/a.html").await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        is_open.store(true, Ordering::Relaxed);
        let file = send_request(address, "GET http://workspace.localhost/a.html").await;
        assert!(
            file.starts_with("HTTP/1.1 200") && file.contains("text/html"),
            "{file}"
        );
        assert!(file.ends_with("the page"), "{file}");
        for (line, status) in [
            ("HEAD http://workspace.localhost/a.html", "200"),
            ("GET http://site.test/a.html", "403"),
            ("GET http://workspace.localhost:8080/a.html", "403"),
            ("GET /a.html", "403"),
            ("CONNECT site.test:443", "403"),
            ("POST http://workspace.localhost/a.html", "405"),
            ("GET http://workspace.localhost/key", "404"),
            ("GET http://workspace.localhost/%2e%2e/a.html", "404"),
            ("GET http://workspace.localhost/%2fetc/passwd", "404"),
            ("GET http://workspace.localhost/%00", "404"),
        ] {
            let reply = send_request(address, line).await;
            assert!(
                reply.starts_with(&format!("HTTP/1.1 {status}")),
                "{line}: {reply}"
            );
            assert!(
                !reply.contains("the page") && !reply.contains("the key"),
                "{line}"
            );
        }
    }
}
