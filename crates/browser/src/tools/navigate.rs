//! `browser_navigate`: opens an address, a workspace file, or a link on the page.

use super::{describe_page, site_tool};
use crate::address::host_of;
use crate::files_server::{FILES_HOST, file_address};
use crate::navigation::OpenOutcome;
use crate::sessions::{BrowserGuard, BrowserNeed, describe_refusal};
use crate::{BrowserError, BrowserSessions, ContextKind};
use lango_core::{Caller, Inspection, SiteAccess, Tool, ToolError, ToolOutput};
use lango_net::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Opens a page in the browser and waits until it has settled: a web address (`url`), an HTML \
    file of the workspace (`path`), or a link that browser_observe showed (`link`). Give exactly one of them. The user must \
    approve addresses that you made up, but not links and search results.";

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NavigateArguments {
    /// The address: http or https.
    url: Option<String>,
    /// A file or folder of the workspace, to open it as a page. Such a page has no network access.
    path: Option<String>,
    /// The handle of a link on the current page, such as `e12`.
    link: Option<String>,
    /// Whether to save the content as a file in the workspace's folder `downloads`.
    #[serde(default)]
    download: bool,
}

/// The address that a call opens.
#[derive(Debug)]
pub(super) enum Target {
    Web { address: String, is_link: bool },
    Workspace { address: String },
}

impl Target {
    /// Fails for addresses that the egress guard refuses, before the user is asked or a browser is started.
    fn check(&self, sessions: &BrowserSessions) -> Result<(), ToolError> {
        match self {
            Self::Web { address, .. } => check_address(sessions, address),
            Self::Workspace { .. } => Ok(()),
        }
    }
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    site_tool(sessions, "browser_navigate", DESCRIPTION, run, inspect)
}

async fn inspect(
    sessions: BrowserSessions,
    caller: Caller,
    arguments: NavigateArguments,
) -> Inspection {
    // A call that would fail contacts nothing.
    let target = find_target(&sessions, &caller, &arguments).ok();
    let target = target.filter(|target| target.check(&sessions).is_ok());
    let site = target.and_then(|target| site_of(&sessions, &caller, &target, arguments.download));
    Inspection {
        site,
        ..Inspection::default()
    }
}

/// Returns the site of a target; `None` for the workspace.
fn site_of(
    sessions: &BrowserSessions,
    caller: &Caller,
    target: &Target,
    download: bool,
) -> Option<SiteAccess> {
    let Target::Web { address, is_link } = target else {
        return None;
    };
    let host = host_of(address)?.into();
    if download {
        // A download writes into the workspace, so it needs an approval like an action, even for a known URL.
        return Some(SiteAccess {
            host,
            url: None,
            is_known: false,
            summary: format!("download {address}").into(),
        });
    }
    let seen = &sessions.setup().seen_links;
    Some(SiteAccess {
        host,
        url: Some(address.as_str().into()),
        is_known: *is_link || seen.contains(&caller.session, address),
        summary: format!("open {address}").into(),
    })
}

async fn run(
    sessions: BrowserSessions,
    caller: Caller,
    arguments: NavigateArguments,
) -> Result<ToolOutput, ToolError> {
    let target = find_target(&sessions, &caller, &arguments)?;
    target.check(&sessions)?;
    let site = site_of(&sessions, &caller, &target, arguments.download);
    expect_inspected(site.as_ref(), &caller)?;
    let guard = sessions.acquire(&caller, BrowserNeed::StartIfNone).await?;
    let opened = open_in(&guard, &target, arguments.download).await;
    guard.finish(opened).await
}

/// Fails if the site differs from the one that was inspected for the approval. Ignores `is_known`, which may have
/// changed since then.
pub(super) fn expect_inspected(
    site: Option<&SiteAccess>,
    caller: &Caller,
) -> Result<(), ToolError> {
    let inspected = caller.inspection.site.as_ref();
    let part = |site: &SiteAccess| (site.host.clone(), site.url.clone(), site.summary.clone());
    if site.map(part) == inspected.map(part) {
        return Ok(());
    }
    Err(ToolError::trusted(
        "the page changed after the call was approved, and the call would now contact another site; observe the page and call again",
    ))
}

/// Fails for an invalid URL, or one that the egress guard refuses.
pub(super) fn check_address(sessions: &BrowserSessions, address: &str) -> Result<(), ToolError> {
    let url = Url::parse(address).map_err(|error| unusable(address, &error))?;
    let checked = sessions.setup().launcher.egress.check(&url);
    checked.map_err(|refusal| ToolError::new(describe_refusal(&refusal)))?;
    Ok(())
}

fn find_target(
    sessions: &BrowserSessions,
    caller: &Caller,
    arguments: &NavigateArguments,
) -> Result<Target, ToolError> {
    let (address, is_link) = match (&arguments.url, &arguments.path, &arguments.link) {
        (Some(url), None, None) => (url.trim().to_owned(), false),
        (None, Some(path), None) => {
            let workspace = sessions.setup().launcher.workspace.clone();
            // Reports a missing file with the same error as the file tools.
            workspace.open_entry(path)?;
            let address = file_address(path.trim_start_matches("./"));
            return Ok(Target::Workspace { address });
        }
        (None, None, Some(link)) => {
            let browser = sessions
                .browser(&caller.session)
                .ok_or(BrowserError::NoPage)?;
            let page = browser.active_page()?;
            let element = page.element(link)?;
            let address = element.link.ok_or_else(|| {
                let text = format!("`{link}` is not a link; use `browser_act` to click it");
                ToolError::trusted(text)
            })?;
            // An agent may have written a link in a workspace file, so it does not count as a known link.
            let url = Url::parse(&address).map_err(|error| unusable(&address, &error))?;
            let is_of_web = page.context() == Some(ContextKind::Web);
            if url.host_str() == Some(FILES_HOST) && !is_of_web {
                let address = address.to_string();
                return Ok(Target::Workspace { address });
            }
            (address.to_string(), is_of_web)
        }
        _ => {
            return Err(ToolError::trusted(
                "give exactly one of `url`, `path` and `link`",
            ));
        }
    };
    Url::parse(&address).map_err(|error| unusable(&address, &error))?;
    Ok(Target::Web { address, is_link })
}

fn unusable(address: &str, error: &dyn std::fmt::Display) -> ToolError {
    let address = crate::notice::shorten(address);
    ToolError::new(format!(
        "`{address}` is not a valid address: {error}; give one like `https://example.com/page`"
    ))
}

/// Opens a target and describes the resulting page. With `download`, the page may save files.
pub(super) async fn open_in(
    guard: &BrowserGuard,
    target: &Target,
    download: bool,
) -> Result<String, BrowserError> {
    let (address, context) = match target {
        Target::Web { address, .. } => (address, ContextKind::Web),
        Target::Workspace { address } => (address, ContextKind::Workspace),
    };
    let page = guard.browser().page_in(context).await?;
    if download {
        // The approved address may redirect to another host that stores the site's files.
        guard.permit_downloads(&page, None);
    }
    let requested_host = host_of(address);
    let opened = page.open(address).await;
    let refused = |reason: String| BrowserError::Navigation {
        address: crate::notice::shorten(address),
        reason,
    };
    let settled = match opened {
        Ok(OpenOutcome::Page(settled)) => settled,
        Ok(OpenOutcome::Download) => {
            return Ok("The address is a file to download, not a page.\n".to_owned());
        }
        Err(error @ BrowserError::Navigation { .. }) => {
            let refusal = guard.refusal_of(requested_host.as_deref());
            return Err(refusal.map_or(error, refused));
        }
        Err(error) => return Err(error),
    };
    // With plain HTTP, a refusal by the proxy looks like a page.
    if page.status() == Some(403)
        && let Some(refusal) = guard.refusal_of(page.host().as_deref())
    {
        return Err(refused(refusal));
    }
    let mut text = format!("Opened {}\n", describe_page(&page).await);
    if let (Some(requested), Some(actual)) = (requested_host, page.host())
        && requested != actual
    {
        text.push_str(&format!(
            "[the site redirected to another host: {actual}]\n"
        ));
    }
    if let Some(pending) = settled.pending {
        text.push_str(&format!("[not settled after 10 s: {pending}]\n"));
    }
    Ok(text)
}
