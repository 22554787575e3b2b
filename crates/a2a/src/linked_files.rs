//! Fetches the files of a message that are given by URL, through the egress guard and within the limits of attachments.

use lango_core::AttachedFile;
use lango_net::{Budget, Egress, EgressError, EgressLimits, HeaderMap, Reason, Url};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Time for all files of one message.
const TIME: Duration = Duration::from_secs(60);

/// Fetches the files of one message.
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
    /// The text is not a URL.
    #[error("`{0}` is not a URL")]
    NotUrl(String),
    /// The guard refused it, or the way to it failed.
    #[error("{}", lango_core::error_chain(.0))]
    Egress(EgressError),
    /// The server answered with an error.
    #[error("`{url}` answered with status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// It is larger than files may be.
    #[error("`{url}` has more than the {most} bytes that are left for the files of the message")]
    TooLarge {
        /// The URL.
        url: String,
        /// What was left.
        most: usize,
    },
    /// The files of the message took too long.
    #[error("`{url}` was not there within {} s for all files of the message", TIME.as_secs())]
    TooSlow {
        /// The URL.
        url: String,
    },
}

impl LinkedFileError {
    /// Returns an error text for remote callers, without resolved addresses or configuration.
    pub fn text_for_callers(&self) -> String {
        match self {
            Self::Egress(EgressError::Refused(refusal)) => {
                let destination = &refusal.destination;
                let reason = match &refusal.reason {
                    Reason::Scheme(_) | Reason::UserInfo | Reason::BadHost => {
                        return refusal.to_string();
                    }
                    Reason::Address { .. } | Reason::LocalName => "its address is not public",
                    Reason::Unresolved { .. } => "its name cannot be found",
                    _ => "the agent's rules refuse it",
                };
                format!("this agent fetches nothing from `{destination}`: {reason}")
            }
            Self::Egress(EgressError::TooManyRedirects { .. }) => self.to_string(),
            Self::Egress(_) => "the file cannot be fetched from there".to_owned(),
            _ => self.to_string(),
        }
    }
}

impl LinkedFiles {
    /// Creates a fetcher for the files of one message.
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
            deadline: Instant::now() + TIME,
            bytes_left: AttachedFile::MESSAGE_BYTES,
        }
    }

    /// Fetches a file.
    pub async fn fetch(&mut self, text: &str) -> Result<Vec<u8>, LinkedFileError> {
        let shown: String = text.chars().take(200).collect();
        let url = Url::parse(text).map_err(|_| LinkedFileError::NotUrl(shown.clone()))?;
        let most = self.bytes_left.min(AttachedFile::FILE_BYTES);
        let headers = HeaderMap::new();
        let client = self.egress.client();
        let fetching = client.get_at_most(&url, &headers, &self.budget, most);
        let fetched = match timeout_at(self.deadline, fetching).await {
            Ok(fetched) => fetched.map_err(LinkedFileError::Egress)?,
            Err(_) => return Err(LinkedFileError::TooSlow { url: shown }),
        };
        if !(200..300).contains(&fetched.status) {
            return Err(LinkedFileError::Status {
                url: shown,
                status: fetched.status,
            });
        }
        if fetched.was_cut {
            return Err(LinkedFileError::TooLarge { url: shown, most });
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
