//! Builds the application from the configuration.

use crate::app::agent_tree::build_tree;
use crate::app::browser::{self, BrowserStatus};
use crate::app::clean_up;
use crate::app::credentials_file::StoredKeys;
use crate::app::disabled_exec::exec_without_sandbox;
use crate::app::egress;
use crate::app::failure::Failure;
use crate::app::knowledge::Knowledge;
use crate::app::mcp::{self, Mcp};
use crate::app::model_lists::{ListStorage, ModelLists};
use crate::app::model_selector::ModelSelector;
use crate::app::payment;
use crate::app::remote_agents::RemoteAgents;
use crate::app::roster::Roster;
use crate::app::sandbox_setup::{self, SandboxStatus};
use crate::app::sessions::Storage;
use crate::app::vault::{
    BindingPlaces, CredentialParts, Credentials, PromptMode, UserVaults, VaultAccess, server_fields,
};
use crate::app::web;
use crate::app::{App, Persistence};
use lango_config::ProcessEnv;
use lango_core::{Clock, Model};
use lango_engine::{ModeSwitch, SystemClock};
use lango_mcp::{Servers, StartMode};
use lango_net::SeenLinks;
use lango_sandbox::SandboxStrength;
use lango_secrets::{LiteralSecretNotice, Masks, SecretSource};
use lango_tools::{
    CommandSetup, Commands, SkillFolder, SkillOwner, Skills, Trash, UndoStore, Workspace,
    skill_library_tools,
};
use lango_vault::{FieldPlace, SecretField, VaultProvider};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

impl App {
    pub(super) async fn build(
        flags: Vec<String>,
        persistence: Persistence,
        start: StartMode,
    ) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(flags)?;
        let loaded = lango_config::load(&process_env)?;
        let roster = Roster::read(&loaded, &process_env.cwd)?;
        let root = roster.root();
        let homes = sandbox_setup::homes(process_env.home());
        let policy = sandbox_setup::policy(&loaded, &process_env.cwd, &homes);
        let workspace = Workspace::open(policy)?;
        let trash = Trash::at(loaded.paths.trash());
        let launcher = sandbox_setup::launcher(&loaded.paths);
        let sandbox = SandboxStatus::detect(&launcher, &loaded.paths.state).await;
        let launcher = launcher.with_strength(sandbox.strength.clone());
        clean_up::recover(&launcher).await;
        let mut folders = loaded.paths.skills(workspace.path());
        folders.extend(loaded.settings.skill.dirs.iter().map(|path| SkillFolder {
            path: path.clone(),
            owner: SkillOwner::User,
        }));
        let mut skills = Skills::find(&folders);
        sandbox_setup::label_skills(&mut skills, &loaded, &workspace);
        let storage = Storage::from_settings(&loaded.settings.session, root)?;
        // A command that only reads stores nothing and never prompts.
        let (list_storage, prompt_mode) = match start {
            StartMode::PinsOnly => (ListStorage::ReadOnly, PromptMode::Never),
            _ => (ListStorage::Stored, PromptMode::Allowed),
        };
        let vault = VaultAccess::new(&loaded, &process_env, &storage);
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
            limits: sandbox_setup::command_limits(&loaded),
            proxy: egress::command_proxy(network, &egress),
            secrets: Some(secrets.clone()),
        });
        let undo = UndoStore::at(loaded.paths.undo());
        let recorded = (persistence == Persistence::Everything).then_some(&undo);
        let mut tools = lango_tools::file_tools(&workspace, &trash, recorded);
        let command_tools = lango_tools::command_tools(&commands);
        match &sandbox.strength {
            SandboxStrength::None { why } => {
                tools.extend(exec_without_sandbox(&command_tools, why))
            }
            SandboxStrength::Full | SandboxStrength::Degraded { .. } => tools.extend(command_tools),
        }
        tools.extend(skills.tools(&commands));
        let credentials = Credentials::open(CredentialParts {
            settings: &loaded.settings,
            env: &process_env.env,
            vaults: Arc::clone(&vaults),
            masks: masks.clone(),
            stored: StoredKeys::at(loaded.paths.credentials()),
            prompt_mode,
        })
        .await?;
        let model_lists = ModelLists::at(loaded.paths.model_lists(), list_storage);
        let knowledge = match persistence {
            Persistence::Nothing => None,
            Persistence::Everything => {
                let providers = ModelSelector {
                    settings: &loaded.settings,
                    credentials: &credentials,
                    lists: &model_lists,
                };
                let observer = observer(&providers).await;
                Some(
                    Knowledge::from_config(&loaded, &storage.database, &providers, observer)
                        .await?,
                )
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
            cache: storage.web_cache(persistence),
        })?);
        // The tools added below resolve secret handles themselves, or have none in their arguments.
        for tool in &mut tools {
            let is_command = tool.spec().name.as_str().starts_with("exec");
            if !is_command {
                let own = LiteralSecretNotice::new(Arc::clone(tool), Arc::clone(&source));
                *tool = Arc::new(own);
            }
        }
        let (browser_tools, browser) = browser::open(&browser::Parts {
            settings: &loaded.settings.browser,
            search: &loaded.settings.search,
            paths: &loaded.paths,
            search_path: process_env
                .env
                .get(OsStr::new("PATH"))
                .map(OsString::as_os_str),
            launcher: &launcher,
            strength: &sandbox.strength,
            egress: &egress,
            links: &links,
            workspace: &workspace,
            secrets: Arc::clone(&source),
        })?;
        tools.extend(browser_tools);
        let payment_source = payment::PaymentSource {
            loaded: &loaded,
            vault: vault.clone(),
            storage: &storage,
            // Most turns make no payment, so do not prompt for the wallet.
            prompt_mode: PromptMode::Never,
            reports: Some(Arc::clone(&vaults)),
        };
        let (payment_tools, payments) = payment::open(payment_source, persistence, &egress).await?;
        tools.extend(payment_tools);
        let provider = Arc::clone(&vaults) as Arc<dyn VaultProvider>;
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        tools.extend(lango_vault::vault_tools(&provider, &clock));
        let context = mcp::McpContext {
            loaded: &loaded,
            env: &process_env.env,
            credentials: &credentials,
            policy: workspace.policy(),
            launcher: &launcher,
            strength: &sandbox.strength,
            tools: &tools,
            agents: roster.names(),
            egress: &egress,
            secrets: &secrets,
            grants_seal: vault.grants_seal(&loaded.paths, prompt_mode).await?,
        };
        let mcp = Mcp::open(context, start).await?;
        let fields = secret_fields(&browser, &mcp.servers);
        vaults.set_places(BindingPlaces::new(&loaded.settings, &egress, fields));
        tools.extend(mcp.servers.tools().iter().cloned());
        let specs = tools
            .iter()
            .map(|tool| Arc::new(tool.spec().clone()))
            .collect();
        let assignments = mcp.assignments.clone();
        let remote_agents = RemoteAgents::default();
        let tree = build_tree(
            &loaded.settings.agent,
            &roster,
            specs,
            assignments,
            &remote_agents,
        )?;
        Ok(Self {
            loaded,
            tree: Arc::new(tree),
            workspace,
            sandbox,
            skills,
            trash,
            undo,
            launcher,
            storage,
            vault,
            vaults,
            credentials,
            knowledge,
            egress,
            browser,
            payments,
            remote_agents,
            mcp: Arc::new(mcp),
            model_lists,
            env: process_env.env,
            roster,
            tools,
            mode: ModeSwitch::default(),
        })
    }
}

/// Returns the tool arguments that can be secrets: those of MCP tools, and the text that the browser types.
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

/// Returns the model that observes conversations, if one is configured. If it is unavailable, the built-in rules are
/// used instead.
async fn observer(providers: &ModelSelector<'_>) -> Option<Arc<dyn Model>> {
    match providers.settings.memory.enabled {
        Some(true) => providers.choose().await.ok().map(|choice| choice.model),
        _ => None,
    }
}
