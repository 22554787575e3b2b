//! The command line: commands, flags and their help texts.

mod archive;
mod chat;
mod config;
mod examples;
mod flags;
mod mcp;
mod memory;
mod mode;
mod payments;
mod problem;
mod prompt;
mod run;
mod secrets;
mod serve;
mod sessions;
mod setup;
mod tokens;
mod undo;

use crate::logs::LogFormat;
pub use archive::{
    DeleteArguments, ExportArguments, ExportFormat, ImportArguments, SessionSelection,
    StoreCommand, VerifyArguments,
};
pub use chat::{ChatArguments, ResumeArguments};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use config::ConfigCommand;
pub use examples::command;
pub use flags::with_flags_first;
use lango_knowledge::LibrarySearchMode;
pub use mcp::{AddArguments, McpCommand};
pub use memory::MemoryCommand;
pub use mode::ModeArgument;
pub use payments::{PaymentsCommand, WalletCommand};
pub use problem::explained;
pub use prompt::read;
pub use run::RunArguments;
pub use secrets::{BindArguments, MethodArguments, MethodsCommand, SecretsCommand};
pub use serve::{DurationArg, ServeArguments};
pub use sessions::SessionsCommand;
pub use setup::{DoctorArguments, SetupArguments};
use std::path::PathBuf;
pub use tokens::{TokensCommand, WebArguments};
pub use undo::UndoArguments;

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "lango",
    version,
    about = "A multi-agent runtime on your own machine",
    long_about = "A multi-agent runtime on your own machine. Without a command it opens a chat.",
    after_help = "Examples:\n  lango                                  chat in this terminal\n  \
                  lango --continue                       continue the last chat here\n  \
                  lango \"what files are here?\"           one question, the answer on stdout\n  \
                  lango -m offline/rules \"hello world\"   with this model\n  \
                  lango agents                           the agents and their tools\n\n\
                  Exit codes: 0 ok, 1 the turn failed, 2 usage, 3 model, key or configuration, \
                  4 a call was denied because no user could be asked, or waits for an answer, 5 a limit was hit without an answer, 130 interrupted, 143 ended by a signal."
)]
pub struct Arguments {
    /// Set a configuration key for this run, such as -c agent.multiAgent=false; can be repeated.
    #[arg(short = 'c', value_name = "KEY=VALUE", global = true)]
    pub config: Vec<String>,

    /// Use this model, as provider/model: the same as -c agent.model=NAME.
    #[arg(short, long, value_name = "NAME", global = true)]
    pub model: Option<String>,

    /// Print plain lines: no live line, no colour, no cursor movement. The same as -c ui.plain=true.
    #[arg(long, global = true)]
    pub plain: bool,

    /// Continue the chat that was used last in this folder.
    #[arg(long = "continue")]
    pub continues: bool,

    /// Format of the logs on stderr. LANGO_LOG selects what is logged, such as LANGO_LOG=info.
    #[arg(long, value_name = "FORMAT", global = true)]
    pub log_format: Option<LogFormat>,

    #[command(flatten)]
    pub mode: ModeArgument,

    /// The command; a chat if none is given.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Arguments {
    /// Returns the `-c` flags, with those that other flags stand for. `lango setup` has a flag for the model itself.
    pub fn config_flags(&self) -> Vec<String> {
        let mut flags = self.config.clone();
        let is_setup = matches!(self.command, Some(Command::Setup(_)));
        let model = self.model.iter().filter(|_| !is_setup);
        flags.extend(model.map(|model| format!("agent.model={model}")));
        if self.plain {
            flags.push("ui.plain=true".to_owned());
        }
        flags
    }

    /// Returns whether the command serves many callers concurrently.
    pub fn is_server(&self) -> bool {
        matches!(self.command, Some(Command::Serve(_) | Command::Web(_)))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open a chat in this terminal, as `lango` without a command does
    Chat(ChatArguments),
    /// Run one turn: the answer on stdout, progress on stderr
    Run(RunArguments),
    /// Open a chat in an earlier session; lists the last ones to choose from if no id is given
    Resume(ResumeArguments),
    /// Open the page: see which agent acts, answer approvals, inspect every call
    Web(WebArguments),
    /// Serve the page, the HTTP API and the A2A protocol, without opening a browser
    Serve(ServeArguments),
    /// Create, list and revoke tokens of the HTTP API, and links that sign in a browser
    Tokens {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<TokensCommand>,
    },
    /// Show the agents, their tools and their instructions; create new agents
    Agents(AgentsArguments),
    /// List, search, show, rename or resume sessions; export, import, verify or delete them
    Sessions {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// Back up, restore, compact or move the database
    Store {
        /// The action.
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Store secrets that no model sees: API keys, tokens, passwords
    Secrets {
        /// Use the vault of `server.user`, which callers of `lango serve` use, instead of yours.
        #[arg(long, global = true)]
        server: bool,
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<SecretsCommand>,
    },
    /// Show the wallet of the agents and its payments; reconcile unknown ones
    Payments {
        /// The action.
        #[command(subcommand)]
        command: PaymentsCommand,
    },
    /// Show, check or change the configuration; trust a project's files
    Config {
        /// The action; show if none is given.
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// List and answer pending approvals; revoke grants
    Approvals {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Add documents to the library; search, list and forget them
    Knowledge {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<KnowledgeCommand>,
    },
    /// List, search and forget what lango remembers of your conversations
    Memory {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<MemoryCommand>,
    },
    /// Add, list, test and remove MCP servers, log in to them, and accept their changes
    Mcp {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<McpCommand>,
    },
    /// List the skills that agents can use, and what is wrong with the others
    Skills {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List, restore or permanently delete what agents deleted
    Trash {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<TrashCommand>,
    },
    /// Undo what the file tools of a turn changed
    Undo(UndoArguments),
    /// List the available models and their prices, and the one in use
    Models {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Connect a model: choose a provider, store its key, test it, and write the configuration file
    Setup(SetupArguments),
    /// Check for problems: calls the model, and leaves nothing behind
    Doctor(DoctorArguments),
    /// List lango's files and folders with their sizes, and how to uninstall lango
    Paths {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a script that completes commands and flags in a shell
    Completions {
        /// The shell that runs the script.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of lango, or write one page per command into a folder
    Man {
        /// The folder; it is created if it is missing, and pages in it are replaced.
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// Arguments of `lango agents`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango agents\n  lango agents --instruction lango-orchestrator\n  \
                        lango -c agent.topology=classic agents --json\n  \
                        echo '[\"exec_shell\", \"browser_navigate\"]' | lango agents --tools -\n  \
                        lango agents new researcher",
    args_conflicts_with_subcommands = true
)]
pub struct AgentsArguments {
    /// The action; list if none is given.
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Print the exact instruction of this agent.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub instruction: Option<String>,

    /// Show the agents for another tool set: a JSON list of names, or of objects with name and description.
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
}

/// Further actions of `lango agents`.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Create the file of a new agent, or of a built-in one to change it
    New {
        name: String,
        /// Create it in the project's folder instead of yours.
        #[arg(long)]
        project: bool,
    },
}

/// The maximum number of documents in a list, unless another one is given.
const DOCUMENT_LIMIT: usize = 100;

/// The actions of `lango knowledge`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango knowledge\n  lango knowledge add docs/ notes.md\n  lango knowledge search \"how is it deployed\"\n  \
                        lango knowledge forget docs/old.md"
)]
pub enum KnowledgeCommand {
    /// Add files and folders; unchanged files are skipped, deleted ones are removed
    Add {
        /// Text, markdown, HTML, PDF, source code, and folders of them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Mark the documents as trusted; otherwise every hit is marked untrusted.
        #[arg(long)]
        trust: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Search documents and saved knowledge
    Search {
        /// The text to search for.
        #[arg(required = true)]
        query: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of hits.
        #[arg(long, default_value_t = 10)]
        limit: usize,
        /// The search method.
        #[arg(long, default_value = "fused")]
        mode: SearchMode,
    },
    /// List the documents
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of entries.
        #[arg(long, default_value_t = DOCUMENT_LIMIT)]
        limit: usize,
    },
    /// Forget a document, by its id or file; a folder means all documents in it
    Forget {
        /// The document.
        name: String,
    },
    /// Recompute all vectors, after the embedding provider has changed
    Reindex,
}

impl Default for KnowledgeCommand {
    fn default() -> Self {
        Self::List {
            json: false,
            limit: DOCUMENT_LIMIT,
        }
    }
}

/// The search method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchMode {
    /// Keywords and vectors combined.
    Fused,
    /// Keywords only.
    Lexical,
    /// Vectors only.
    Vector,
}

impl From<SearchMode> for LibrarySearchMode {
    fn from(mode: SearchMode) -> Self {
        match mode {
            SearchMode::Fused => Self::Fused,
            SearchMode::Lexical => Self::Lexical,
            SearchMode::Vector => Self::Vector,
        }
    }
}

/// The actions of `lango trash`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango trash\n  lango trash restore zfb5dq\n  lango trash empty"
)]
pub enum TrashCommand {
    /// List the trash, newest first
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Restore an item to its original path
    Restore {
        /// The id, as shown in the list.
        id: String,
    },
    /// Permanently delete everything in the trash
    Empty,
}

/// The actions of `lango approvals`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango approvals list\n  lango approvals answer p_1a2b yes\n  \
                        lango approvals answer p_1a2b always --pattern 'notes/*'\n  \
                        lango approvals answer p_1a2b no --because 'use the other file'\n  \
                        lango approvals revoke p_1a2b"
)]
pub enum ApprovalsCommand {
    /// List pending approvals and grants
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a pending call in full
    Show {
        /// The id of the request, or its first characters.
        id: String,
    },
    /// Answer a pending approval and continue its turn
    Answer {
        /// The id of the request, or its first characters.
        id: String,
        /// The answer.
        answer: AnswerWord,
        /// For `session` and `always`: the pattern of calls to allow, instead of the offered one.
        #[arg(long)]
        pattern: Option<String>,
        /// For `no` and `happened`: a text for the agent.
        #[arg(long, value_name = "TEXT")]
        because: Option<String>,
        /// Print one JSON object with the answer, the outcome and the counts.
        #[arg(long)]
        json: bool,
        /// Print no progress on stderr.
        #[arg(short, long)]
        quiet: bool,
        #[command(flatten)]
        mode: ModeArgument,
    },
    /// Revoke a grant
    Revoke {
        /// The id of the grant, or its first characters.
        id: String,
    },
}

/// The possible answers to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnswerWord {
    /// This call may run.
    #[value(alias = "once")]
    Yes,
    /// Calls like this may run in this session.
    Session,
    /// Calls like this may run in this folder.
    Always,
    /// This call may not run.
    No,
    /// Run a call with unknown outcome again.
    Retry,
    /// Leave a call with unknown outcome alone; the agent is told that its outcome is unknown.
    Skip,
    /// Report what happened to a call with unknown outcome; describe it with --because.
    Happened,
}
