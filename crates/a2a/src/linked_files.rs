//! Fetches files that a message references by URL, through the egress guard and within the limits for attachments.

use lango_core::AttachedFile;
use lango_net::{Budget, Egress, EgressError, EgressLimits, HeaderMap, RefusalReason, Url};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The time limit for all files of one message.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A fetcher for the files of one message. The files share the limits of time, bytes and requests.
#[derive(Debug)]
pub struct LinkedFiles {
    egress: Egress,
    budget: Budget,
    deadline: Instant,
    bytes_left: usize,
}

/// Why a file at a URL was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum LinkedFileError {
    #[error("`{0}` is not a URL")]
    NotUrl(String),
    /// The guard refused the URL, or the request failed.
    #[error("{}", lango_core::error_chain(.0))]
    Egress(EgressError),
    #[error("`{url}` answered with status {status}")]
    Status { url: String, status: u16 },
    /// The file exceeds the limit for one file, or what is left of the limit for the message.
    #[error(
        "`{url}` has more than the {max_bytes} bytes that are left for the files of the message"
    )]
    TooLarge { url: String, max_bytes: usize },
    /// The files of the message together took too long.
    #[error("`{url}` was not fetched within the {} s for all files of the message", TIMEOUT.as_secs())]
    TooSlow { url: String },
}

impl LinkedFileError {
    /// Returns an error text for remote callers, which reveals no resolved addresses and no configuration.
    pub fn text_for_callers(&self) -> String {
        match self {
            Self::Egress(EgressError::Refused(refusal)) => {
                let destination = &refusal.destination;
                let reason = match &refusal.reason {
                    RefusalReason::Scheme(_) | RefusalReason::UserInfo | RefusalReason::BadHost => {
                        return refusal.to_string();
                    }
                    RefusalReason::Address { .. } | RefusalReason::LocalName => {
                        "its address is not public"
                    }
                    RefusalReason::Unresolved { .. } => "its name cannot be resolved",
                    _ => "the agent's rules forbid it",
                };
                format!("this agent does not fetch files from `{destination}`: {reason}")
            }
            Self::Egress(EgressError::TooManyRedirects { .. }) => self.to_string(),
            Self::Egress(_) => "the file cannot be fetched".to_owned(),
            _ => self.to_string(),
        }
    }
}

impl LinkedFiles {
    /// Creates a fetcher for the files of one message, and starts its time limit.
    pub fn new(egress: &Egress) -> Self {
        let limits = egress.limits();
        let requests = AttachedFile::PER_MESSAGE * (1 + limits.redirects);
        let limits = EgressLimits {
            requests: limits.requests.min(requests as u64),
            ..limits.clone()
        };
        Self {
            egress: egress.clone(),
            budget: Budget::new(&limits),
            deadline: Instant::now() + TIMEOUT,
            bytes_left: AttachedFile::MESSAGE_BYTES,
        }
    }

    /// Fetches the file at a URL.
    pub async fn fetch(&mut self, text: &str) -> Result<Vec<u8>, LinkedFileError> {
        let display: String = text.chars().take(200).collect();
        let url = Url::parse(text).map_err(|_| LinkedFileError::NotUrl(display.clone()))?;
        let max_bytes = self.bytes_left.min(AttachedFile::FILE_BYTES);
        let headers = HeaderMap::new();
        let client = self.egress.client();
        let fetching = client.get_at_most(&url, &headers, &self.budget, max_bytes);
        let fetched = match timeout_at(self.deadline, fetching).await {
            Ok(fetched) => fetched.map_err(LinkedFileError::Egress)?,
            Err(_) => return Err(LinkedFileError::TooSlow { url: display }),
        };
        if !(200..300).contains(&fetched.status) {
            return Err(LinkedFileError::Status {
                url: display,
                status: fetched.status,
            });
        }
        if fetched.was_cut {
            return Err(LinkedFileError::TooLarge {
                url: display,
                max_bytes,
            });
        }
        self.bytes_left -= fetched.body.len();
        Ok(fetched.body)
    }
}

/// Returns the last path segment of a URL as a file name.
pub fn name_in_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let last = url.path_segments()?.next_back()?;
    let name: String = last.chars().take(200).collect();
    (!name.is_empty()).then_some(name)
}
