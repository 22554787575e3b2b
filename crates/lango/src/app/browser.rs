//! The browser from the configuration: whether one is available, and its tools.

use crate::app::failure::Failure;
use lango_browser::{
    BrowserLauncher, BrowserProgram, BrowserSessions, BrowserSetup, browser_tools, find_browser,
    remove_abandoned_directories,
};
use lango_config::{BrowserSettings, BrowserUse, Paths, SearchSettings};
use lango_core::Tool;
use lango_net::{Egress, SeenLinks, Url};
use lango_sandbox::{LaunchError, Launcher, SandboxStrength};
use lango_secrets::SecretSource;
use lango_tools::Workspace;
use lango_web::ProviderKind;
use std::ffi::OsStr;
use std::sync::Arc;

/// The default search page.
const SEARCH_URL: &str = "https://duckduckgo.com/html/?q={query}";
/// Why there is no browser, and how to get one.
const DISABLED: &str = "`browser.enabled` is false; set it to \"auto\" to use a browser";
/// The placeholder for the query in a search address.
const QUERY: &str = "{query}";

/// Whether agents have a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserStatus {
    /// This browser is available.
    Ready(BrowserProgram),
    /// The user has disabled the browser.
    Disabled,
    /// No browser is available, for this reason.
    Absent(String),
}

impl BrowserStatus {
    /// Returns whether agents have a browser.
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Ready(_))
    }
}

/// What the browser's tools are built from.
pub(super) struct Parts<'a> {
    pub settings: &'a BrowserSettings,
    pub search: &'a SearchSettings,
    pub paths: &'a Paths,
    /// The value of `PATH`.
    pub search_path: Option<&'a OsStr>,
    /// The launcher that starts programs in the sandbox.
    pub launcher: &'a Launcher,
    /// How well the sandbox isolates programs.
    pub strength: &'a SandboxStrength,
    /// The egress guard.
    pub egress: &'a Egress,
    /// The links that sessions have seen.
    pub links: &'a SeenLinks,
    pub workspace: &'a Workspace,
    /// The secrets that may be typed into pages.
    pub secrets: Arc<dyn SecretSource>,
}

/// Finds the browser and creates its tools, without starting it. Also removes the directories that browsers left
/// behind when their lango process was killed.
pub(super) fn open(parts: &Parts<'_>) -> Result<(Vec<Arc<dyn Tool>>, BrowserStatus), Failure> {
    let settings = parts.settings;
    // Also if there is no browser now: a killed lango may have had one.
    remove_abandoned_directories(&parts.paths.browsers());
    let search_url = search_url(settings, parts.search)?;
    if settings.enabled == BrowserUse::Never {
        return Ok((Vec::new(), BrowserStatus::Disabled));
    }
    let program = match find(parts) {
        Ok(program) => program,
        Err(reason) if settings.enabled == BrowserUse::Always => {
            let message = format!("`browser.enabled` is true, but there is no browser: {reason}");
            let next = "set `browser.enabled = \"auto\"` to run without a browser";
            return Err(Failure::config(message).next(next));
        }
        Err(reason) => return Ok((Vec::new(), BrowserStatus::Absent(reason))),
    };
    let sessions = BrowserSessions::new(BrowserSetup {
        launcher: BrowserLauncher {
            program: program.clone(),
            sandbox: parts.launcher.clone(),
            directory: parts.paths.browsers(),
            egress: parts.egress.clone(),
            workspace: parts.workspace.clone(),
        },
        seen_links: parts.links.clone(),
        idle_time: settings.idle_time,
        search_url,
    });
    sessions.set_secrets(Arc::clone(&parts.secrets));
    Ok((browser_tools(&sessions), BrowserStatus::Ready(program)))
}

fn find(parts: &Parts<'_>) -> Result<BrowserProgram, String> {
    let missing = match parts.strength {
        SandboxStrength::Full if cfg!(target_os = "linux") => None,
        SandboxStrength::Full => Some("lango can sandbox a browser only on Linux"),
        SandboxStrength::Degraded { missing } => Some(missing.as_str()),
        SandboxStrength::None { why } => Some(why.as_str()),
    };
    if let Some(missing) = missing {
        return Err(format!("a browser needs the full sandbox: {missing}"));
    }
    let found = find_browser(parts.settings.path.as_deref(), parts.search_path);
    found.map_err(|error| error.to_string())
}

/// Returns the configured search page, the user's own SearXNG, or DuckDuckGo.
fn search_url(settings: &BrowserSettings, search: &SearchSettings) -> Result<String, Failure> {
    if let Some(url) = &settings.search_url {
        let is_address = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if is_address && url.contains(QUERY) {
            return Ok(url.clone());
        }
        let message = "`browser.searchUrl` is not an address with `{query}` in it";
        let next = "set it to something like `https://duckduckgo.com/html/?q={query}`";
        return Err(Failure::config(message.to_owned()).next(next));
    }
    let is_searxng = |kind: Option<ProviderKind>, name: &str| {
        kind.or_else(|| name.parse().ok()) == Some(ProviderKind::SearXng)
    };
    let mut providers = search.providers.iter();
    let own = providers.find(|(name, provider)| is_searxng(provider.kind, name));
    let own = own.and_then(|(_, provider)| provider.url.as_deref());
    Ok(match own {
        Some(url) => format!("{}/search?q={QUERY}", url.trim_end_matches('/')),
        None => SEARCH_URL.to_owned(),
    })
}

impl BrowserStatus {
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// Describes the browser for `lango doctor`.
    pub async fn describe(&self, launcher: &Launcher) -> String {
        match self {
            Self::Ready(program) => {
                let path = program.path().display();
                match launcher.check_nesting().await {
                    Ok(()) => path.to_string(),
                    Err(LaunchError::NoNesting { why }) => format!(
                        "{path}\nChromium's own sandbox cannot start here ({why}); only lango's sandbox isolates it"
                    ),
                    Err(error) => format!("{path}\nit cannot start: {error}"),
                }
            }
            Self::Disabled => format!("none: {DISABLED}"),
            Self::Absent(reason) => format!("none: {reason}"),
        }
    }

    /// Describes the missing tools, if there is no browser.
    pub fn absent_tools(&self) -> Option<String> {
        match self {
            Self::Ready(_) => None,
            Self::Disabled => Some(format!("browser_* ({DISABLED})")),
            Self::Absent(reason) => Some(format!("browser_* ({reason})")),
        }
    }
}
