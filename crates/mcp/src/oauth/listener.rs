//! The redirect target of a login: a local port that is open for one login.

use super::LoginError;
use reqwest::Url;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long the user may take in the browser.
pub(super) const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Maximum number of requests to accept.
const MAX_REQUESTS: usize = 100;

pub(super) struct CallbackListener {
    listener: TcpListener,
    pub(super) address: String,
}

/// The parameters of the redirect.
#[derive(Debug, Default)]
pub(super) struct CallbackResult {
    pub(super) code: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
    state: Option<String>,
}

impl CallbackListener {
    pub(super) async fn open() -> Result<Self, LoginError> {
        let failed =
            |error: std::io::Error| LoginError::unusable(format!("no port can be opened: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            address: format!("http://127.0.0.1:{port}/callback"),
        })
    }

    /// Waits for the redirect with this state. Answers all other requests with 404.
    pub(super) async fn wait(self, state: &str) -> Result<CallbackResult, LoginError> {
        let abandoned = LoginError::Abandoned {
            minutes: LOGIN_TIMEOUT.as_secs() / 60,
        };
        let waiting = async {
            for _ in 0..MAX_REQUESTS {
                let Ok((stream, _)) = self.listener.accept().await else {
                    continue;
                };
                let serving = serve(stream, state);
                if let Ok(Some(returned)) = tokio::time::timeout(REQUEST_TIMEOUT, serving).await {
                    return Some(returned);
                }
            }
            None
        };
        match tokio::time::timeout(LOGIN_TIMEOUT, waiting).await {
            Ok(Some(returned)) => Ok(returned),
            _ => Err(abandoned),
        }
    }
}

async fn serve(mut stream: TcpStream, state: &str) -> Option<CallbackResult> {
    let mut head = Vec::new();
    while !head.windows(2).any(|end| end == b"\r\n") {
        if head.len() > HEAD_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let returned =
        read(&String::from_utf8_lossy(line)).filter(|found| found.state.as_deref() == Some(state));
    let (status, text) = match &returned {
        None => ("404 Not Found", "There is nothing here."),
        Some(CallbackResult { error: Some(_), .. }) => {
            ("200 OK", "Access was not granted. You can close this page.")
        }
        Some(_) => ("200 OK", "Access was granted. You can close this page."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    returned
}

/// Parses the first line of a request; `None` unless it is a GET of the callback.
fn read(line: &str) -> Option<CallbackResult> {
    let mut words = line.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else {
        return None;
    };
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != "/callback" {
        return None;
    }
    let mut returned = CallbackResult::default();
    for (name, value) in url.query_pairs() {
        let value = Some(value.into_owned());
        match &*name {
            "code" => returned.code = value,
            "state" => returned.state = value,
            "iss" => returned.issuer = value,
            "error" => returned.error = value,
            _ => {}
        }
    }
    Some(returned)
}
