//! Builds the application from the configuration.

use super::{App, Keeping};
use crate::agent_tree::build_tree;
use crate::browser::{self, BrowserStatus};
use crate::clean_up;
use crate::config::{self, Surroundings};
use crate::egress;
use crate::elsewhere::Elsewhere;
use crate::exit::Failure;
use crate::hands::{self, Held};
use crate::knowledge::Knowledge;
use crate::mcp::{self, Mcp};
use crate::model_choice::ModelChoice;
use crate::model_lists::{ListStorage, ModelLists};
use crate::no_commands::exec_without_sandbox;
use crate::payment;
use crate::roster::Roster;
use crate::sessions::Kept;
use crate::vault::{
    Asking, CredentialParts, Credentials, Places, UserVaults, VaultAccess, server_fields,
};
use crate::web;
use lango_core::{AgentName, Clock, Model};
use lango_engine::{SystemClock, Tree};
use lango_mcp::{Servers, Start};
use lango_net::SeenLinks;
use lango_sandbox::Strength;
use lango_secrets::{Masks, SecretSource, UnresolvedTool};
use lango_tools::{
    CommandSetup, Commands, SkillFolder, Skills, Trash, Whose, Workspace, skill_library_tools,
};
use lango_vault::{FieldPlace, SecretField, VaultProvider};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

impl App {
    pub(super) async fn build(
        flags: Vec<String>,
        keeping: Keeping,
        start: Start,
    ) -> Result<Self, Failure> {
        let surroundings = Surroundings::from_process(flags)?;
        let loaded = config::load(&surroundings)?;
        let roster = Roster::read(&loaded, &surroundings.cwd)?;
        let root = roster
            .topology
            .as_ref()
            .map_or(Tree::SINGLE, |topology| topology.root.as_str());
        let root = AgentName::from(root);
        let homes = hands::homes(surroundings.home());
        let policy = hands::policy(&loaded, &surroundings.cwd, &homes);
        let workspace = Workspace::open(policy)?;
        let trash = Trash::at(loaded.paths.trash());
        let launcher = hands::launcher(&loaded.paths);
        let held = Held::find(&launcher, &loaded.paths.state).await;
        let launcher = launcher.with_strength(held.strength.clone());
        clean_up::recover(&launcher).await;
        let mut folders = loaded.paths.skills(workspace.path());
        folders.extend(loaded.settings.skill.dirs.iter().map(|path| SkillFolder {
            path: path.clone(),
            whose: Whose::User,
        }));
        let mut skills = Skills::find(&folders);
        hands::label_skills(&mut skills, &loaded, &workspace);
        let kept = Kept::of(&loaded.settings.session, root)?;
        // A command that only looks leaves nothing behind, and asks for nothing.
        let (storage, asking) = match start {
            Start::PinsOnly => (ListStorage::ReadOnly, Asking::Never),
            _ => (ListStorage::Stored, Asking::Allowed),
        };
        let vault = VaultAccess::new(&loaded, &surroundings, &kept);
        let masks = Masks::default();
        let vaults = Arc::new(UserVaults::new(vault.clone(), masks.clone()));
        let source = Arc::clone(&vaults) as Arc<dyn SecretSource>;
        let egress = egress::guard(&loaded.settings.egress);
        let network = &loaded.settings.tools.exec.network;
        let secrets = egress::secret_access(Arc::clone(&source), masks.clone());
        let commands = Commands::new(CommandSetup {
            launcher: launcher.clone(),
            policy: workspace.policy().clone(),
            outputs: loaded.paths.outputs(),
            limits: hands::command_limits(&loaded),
            proxy: egress::command_proxy(network, &egress),
            secrets: Some(secrets.clone()),
        });
        let mut tools = lango_tools::file_tools(&workspace, &trash);
        let command_tools = lango_tools::command_tools(&commands);
        match &held.strength {
            Strength::None { why } => tools.extend(exec_without_sandbox(&command_tools, why)),
            Strength::Full | Strength::Degraded { .. } => tools.extend(command_tools),
        }
        tools.extend(skills.tools(&commands));
        let credentials = Credentials::open(CredentialParts {
            settings: &loaded.settings,
            env: &surroundings.env,
            vaults: Arc::clone(&vaults),
            masks: masks.clone(),
            asking,
        })
        .await?;
        let model_lists = ModelLists::at(loaded.paths.model_lists(), storage);
        let knowledge = match keeping {
            Keeping::Nothing => None,
            Keeping::Everything => {
                let providers = ModelChoice {
                    settings: &loaded.settings,
                    credentials: &credentials,
                    lists: &model_lists,
                };
                let observer = observer(&providers).await;
                Some(Knowledge::of(&loaded, &kept.database, &providers, observer).await?)
            }
        };
        if knowledge.is_some() {
            let own = loaded.paths.user_file.with_file_name("skills");
            tools.extend(skill_library_tools(&skills, own));
        }
        tools.extend(
            knowledge
                .iter()
                .flat_map(|known| known.tools.iter().cloned()),
        );
        let links = SeenLinks::default();
        tools.extend(web::tools(web::Parts {
            settings: &loaded.settings.search,
            credentials: &credentials,
            egress: &egress,
            links: &links,
            cache: kept.web_cache(keeping),
        })?);
        // Those that follow resolve handles themselves, or have none in their arguments.
        for tool in &mut tools {
            let is_command = tool.spec().name.as_str().starts_with("exec");
            if !is_command {
                let own = UnresolvedTool::new(Arc::clone(tool), Arc::clone(&source));
                *tool = Arc::new(own);
            }
        }
        let (browser_tools, browser) = browser::open(&browser::Parts {
            settings: &loaded.settings.browser,
            search: &loaded.settings.search,
            paths: &loaded.paths,
            search_path: surroundings
                .env
                .get(OsStr::new("PATH"))
                .map(OsString::as_os_str),
            launcher: &launcher,
            strength: &held.strength,
            egress: &egress,
            links: &links,
            workspace: &workspace,
            secrets: Arc::clone(&source),
        })?;
        tools.extend(browser_tools);
        let payment_source = payment::Source {
            loaded: &loaded,
            vault: vault.clone(),
            kept: &kept,
            // Most turns pay nothing.
            asking: Asking::Never,
            reports: Some(Arc::clone(&vaults)),
        };
        let (payment_tools, payments) = payment::open(payment_source, keeping, &egress).await?;
        tools.extend(payment_tools);
        let provider = Arc::clone(&vaults) as Arc<dyn VaultProvider>;
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        tools.extend(lango_vault::vault_tools(&provider, &clock));
        let here = mcp::Surrounding {
            loaded: &loaded,
            env: &surroundings.env,
            credentials: &credentials,
            policy: workspace.policy(),
            launcher: &launcher,
            strength: &held.strength,
            tools: &tools,
            agents: roster.names(),
            egress: &egress,
            secrets: &secrets,
            grants_seal: vault.grants_seal(&loaded.paths, asking).await?,
        };
        let mcp = Mcp::open(here, start).await?;
        let fields = secret_fields(&browser, &mcp.servers);
        vaults.set_places(Places::new(&loaded.settings, &egress, fields));
        tools.extend(mcp.servers.tools().iter().cloned());
        let specs = tools
            .iter()
            .map(|tool| Arc::new(tool.spec().clone()))
            .collect();
        let homes = mcp.homes.clone();
        let elsewhere = Elsewhere::default();
        let tree = build_tree(&loaded.settings.agent, &roster, specs, homes, &elsewhere)?;
        Ok(Self {
            loaded,
            tree: Arc::new(tree),
            workspace,
            held,
            skills,
            trash,
            launcher,
            kept,
            vault,
            vaults,
            credentials,
            knowledge,
            egress,
            browser,
            payments,
            elsewhere,
            mcp: Arc::new(mcp),
            model_lists,
            env: surroundings.env,
            roster,
            tools,
        })
    }
}

/// Returns the arguments of tools that take secrets: those of MCP servers' tools, and what the browser types.
fn secret_fields(browser: &BrowserStatus, servers: &Servers) -> Vec<SecretField> {
    let mut fields: Vec<SecretField> = server_fields(servers).collect();
    if browser.is_available() {
        fields.push(SecretField {
            tool: lango_browser::TYPING_TOOL.into(),
            place: FieldPlace::Site,
            arguments: Some(vec![lango_browser::TYPING_FIELD.into()]),
        });
    }
    fields
}

/// The model that observes conversations, if one is to. Where it cannot be had, the built-in rules observe.
async fn observer(providers: &ModelChoice<'_>) -> Option<Arc<dyn Model>> {
    match providers.settings.memory.enabled {
        Some(true) => providers.choose().await.ok().map(|choice| choice.model),
        _ => None,
    }
}
