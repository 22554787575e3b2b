//! A test bench: a workspace, a local site, and browsers that can reach only that site.

use crate::site::Site;
use lango_browser::{
    BrowserLauncher, BrowserSessions, BrowserSetup, Page, browser_tools, find_browser,
};
use lango_core::{BoxFuture, Caller, Tool, ToolError, ToolOutput};
use lango_net::{Egress, EgressLimits, EgressRules, Resolver, SeenLinks};
use lango_sandbox::{HelperCommand, Launcher, Policy};
use lango_tools::Workspace;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The browsers of a test, with a workspace and a local site.
pub(crate) struct Bench {
    folder: TempDir,
    pub site: Site,
    pub seen_links: SeenLinks,
    pub sessions: BrowserSessions,
    tools: Vec<Arc<dyn Tool>>,
}

/// Resolves every name to the loopback address.
struct Loopback;

impl Resolver for Loopback {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![IpAddr::V4(
            Ipv4Addr::LOCALHOST,
        )])))
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_idle_time(Duration::from_secs(300)).await
    }

    pub(crate) async fn with_idle_time(idle_time: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let mut policy = Policy::of(workspace.clone());
        policy.hidden = vec![workspace.join("hidden")];
        let site = Site::start().await;
        let seen_links = SeenLinks::default();
        let setup = BrowserSetup {
            launcher: BrowserLauncher {
                program: find_browser(None, std::env::var_os("PATH").as_deref()).unwrap(),
                sandbox: Launcher::new(HelperCommand {
                    program: env!("CARGO_BIN_EXE_lango-browser-helper").into(),
                    arguments: Vec::new(),
                }),
                directory: folder.path().join("browsers"),
                egress: egress(site.port),
                workspace: Workspace::open(policy).unwrap(),
            },
            seen_links: seen_links.clone(),
            idle_time,
            search_url: site.url("search?q={query}"),
        };
        let sessions = BrowserSessions::new(setup);
        Self {
            tools: browser_tools(&sessions),
            folder,
            site,
            seen_links,
            sessions,
        }
    }

    /// Returns a path in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// Returns the parent of the browsers' private directories.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("browsers")
    }

    /// Drops everything except the temporary folder.
    pub(crate) fn into_folder(self) -> TempDir {
        self.folder
    }

    pub(crate) fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        let mut tools = self.tools.iter();
        tools
            .find(|tool| tool.spec().name.as_str() == name)
            .unwrap()
    }

    /// Calls a tool like the gate does, as if the user had approved the call.
    pub(crate) async fn run(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.run_as("s_1", name, arguments).await
    }

    pub(crate) async fn run_as(
        &self,
        session: &str,
        name: &str,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(name);
        let arguments = Arc::new(arguments);
        let mut caller = caller_of(session);
        caller.inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
        tool.run(&caller, arguments).await
    }

    /// Calls a tool and returns its text; panics if the call fails.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments).await {
            Ok(output) => output.text,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Calls a tool and returns its error; panics if the call succeeds.
    pub(crate) async fn error(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments).await {
            Ok(output) => panic!("{name}: {}", output.text),
            Err(error) => error.message,
        }
    }

    /// Opens a page of the site and replaces its content.
    pub(crate) async fn show(&self, html: &str) -> Page {
        self.open("").await;
        let page = self.page();
        let params = json!({ "frameId": page.main_frame(), "html": html });
        let _: Value = page.call("Page.setDocumentContent", params).await.unwrap();
        page.settle().await.unwrap();
        page
    }

    /// Returns the active page.
    pub(crate) fn page(&self) -> Page {
        let browser = self.sessions.browser(&"s_1".into()).unwrap();
        browser.active_page().unwrap()
    }

    /// Opens a page of the site and returns the tool's text.
    pub(crate) async fn open(&self, path: &str) -> String {
        let url = self.site.url(path);
        self.text("browser_navigate", json!({ "url": url })).await
    }
}

pub(crate) fn caller_of(session: &str) -> Caller {
    Caller {
        session: session.into(),
        ..lango_testkit::tool::caller()
    }
}

/// Returns an egress guard that allows only the test's site, under both of its names.
fn egress(port: u16) -> Egress {
    let pattern = |text: String| text.parse().unwrap();
    let rules = EgressRules {
        allow: ["site.test", "other.test"]
            .map(|host| pattern(format!("{host}:{port}")))
            .to_vec(),
        deny: vec![pattern("*".to_owned())],
    };
    Egress::with_resolver(rules, EgressLimits::default(), Arc::new(Loopback))
}
