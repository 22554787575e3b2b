//! The command line.

mod archive;
mod examples;
mod flags;
mod payments;
mod run;
mod secrets;
mod serve;
mod tokens;

pub use archive::{
    DeleteArguments, ExportArguments, ImportArguments, StoreCommand, VerifyArguments, WhichSessions,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use examples::read;
pub use flags::with_flags_first;
use lango_knowledge::Mode;
pub use payments::{PaymentsCommand, WalletCommand};
pub use run::RunArguments;
pub use secrets::{BindArguments, MethodArguments, MethodsCommand, SecretsCommand};
pub use serve::{Grace, ServeArguments};
use std::path::PathBuf;
pub use tokens::{TokensCommand, WebArguments};

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "lango",
    version,
    about = "A multi-agent runtime on your own machine",
    long_about = "A multi-agent runtime on your own machine. Without a command it opens a chat.",
    after_help = "Examples:\n  lango                                  chat in this terminal\n  \
                  lango run \"what files are here?\"       one question, the answer on stdout\n  \
                  lango agents                           who is there, with which tools\n\n\
                  Exit codes: 0 ok, 1 the turn failed, 2 usage, 3 model, key or configuration, \
                  4 something was denied because nobody could allow it, or waits for an answer, 5 a limit was hit without an answer, 130 interrupted."
)]
pub struct Arguments {
    /// Set a configuration key for this run, such as -c agent.multiAgent=false; can be repeated.
    #[arg(short = 'c', value_name = "KEY=VALUE", global = true)]
    pub config: Vec<String>,

    /// What to do; a chat if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Arguments {
    /// Returns whether the command serves many callers at a time.
    pub fn is_server(&self) -> bool {
        matches!(self.command, Some(Command::Serve(_) | Command::Web(_)))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one turn: the answer on stdout, progress on stderr
    Run(RunArguments),
    /// Open the page: see who acts, answer approvals, look into every call
    Web(WebArguments),
    /// Serve the page, the HTTP API and the A2A protocol, without opening a browser
    Serve(ServeArguments),
    /// Create, list and revoke tokens of the HTTP API, and links that sign a browser in
    Tokens {
        /// What to do with them.
        #[command(subcommand)]
        command: TokensCommand,
    },
    /// Show the agents, their tools, and what they are told; write new ones
    Agents(AgentsArguments),
    /// List, show or resume sessions; export, import, verify or delete them
    Sessions {
        /// What to do with them.
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Copy, move or tidy the database that everything is in
    Store {
        /// What to do with it.
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Store secrets that no model sees: API keys, tokens, passwords
    Secrets {
        /// Use the vault of `server.user`, which callers of `lango serve` use, instead of yours.
        #[arg(long, global = true)]
        server: bool,
        /// What to do with them.
        #[command(subcommand)]
        command: SecretsCommand,
    },
    /// The wallet of the agents: what was paid, what it has, what is unknown
    Payments {
        /// What to do.
        #[command(subcommand)]
        command: PaymentsCommand,
    },
    /// Show or check the configuration
    Config {
        /// What to do with it.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// What waits for your answer, and what you granted
    Approvals {
        /// What to do; the list if nothing is said.
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Add documents to the library, search it, list and forget them
    Knowledge {
        /// What to do with it.
        #[command(subcommand)]
        command: KnowledgeCommand,
    },
    /// Which MCP servers there are, whether they answer, and accepting what they changed
    Mcp {
        /// What to do with them.
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Which skills the agents can use, and what is wrong with the others
    Skills {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What agents deleted, and getting it back
    Trash {
        /// What to do; the list if nothing is said.
        #[command(subcommand)]
        command: Option<TrashCommand>,
    },
    /// Which models can be asked, what they cost, and which one answers now
    Models {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Choose a model, try it, and write the configuration file
    Setup(SetupArguments),
    /// Look for problems, change nothing
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `lango setup`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango setup\n  lango setup --model anthropic/claude-sonnet-5-5"
)]
pub struct SetupArguments {
    /// The model, as provider/model; without it you are asked.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Write the file anew if it is there.
    #[arg(long)]
    pub force: bool,
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
    /// What to do; the list if nothing is said.
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Print the exact instruction of this agent.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub instruction: Option<String>,

    /// See what another tool set would give: a JSON list of names, or of objects with name and description.
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
}

/// What can be done with agents besides looking.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Write the file of a new agent, or of a built-in one to change it
    New {
        /// The agent's name.
        name: String,
        /// Into the project's folder, not into your own.
        #[arg(long)]
        project: bool,
    },
}

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango sessions list\n  lango sessions show s_1k2m\n  lango sessions resume s_1k2m\n  \
                        lango sessions export --all --output sessions.jsonl"
)]
pub enum SessionsCommand {
    /// The sessions, the one used last first
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// How many at most.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// What was said in a session, with the author of every message
    Show {
        /// The session; the beginning of its id is enough.
        id: String,
        /// Print every event, one JSON object a line.
        #[arg(long)]
        jsonl: bool,
    },
    /// Open a chat in a session
    Resume {
        /// The session; the beginning of its id is enough.
        id: String,
    },
    /// Give up a turn that was cut off or waits: what may have happened is unknown, what is asked for is denied
    Close {
        /// The session; the beginning of its id is enough.
        id: String,
    },
    /// Write sessions out as lines of JSON, with the hashes that prove them
    Export(ExportArguments),
    /// Take in sessions that were exported
    Import(ImportArguments),
    /// Check that logs are gap-free, with authors, and as they were written
    Verify(VerifyArguments),
    /// Delete sessions for good
    Delete(DeleteArguments),
}

/// What can be done with the library.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango knowledge add docs/ notes.md\n  lango knowledge search \"how is it deployed\"\n  \
                        lango knowledge forget docs/old.md"
)]
pub enum KnowledgeCommand {
    /// Add files and folders; what has not changed is skipped, what is gone is removed
    Add {
        /// Text, markdown, HTML, PDF, source code, and folders of them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Their words may be believed; otherwise every hit is marked untrusted.
        #[arg(long)]
        trust: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Search documents and saved knowledge
    Search {
        /// Any text.
        #[arg(required = true)]
        query: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// How many hits at most.
        #[arg(long, default_value_t = 10)]
        limit: usize,
        /// How to search.
        #[arg(long, default_value = "fused")]
        mode: SearchMode,
    },
    /// The documents
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Forget a document, by its id or its file; a folder stands for all below it
    Forget {
        /// The document.
        name: String,
    },
    /// Make all vectors anew, after the embedding provider has changed
    Reindex,
}

/// What can be done with MCP servers.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango mcp list\n  lango mcp test git\n  lango mcp trust git\n  lango mcp login tracker"
)]
pub enum McpCommand {
    /// The servers, who holds their tools, and what changed; starts nothing
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Connect now and show what comes of it
    Test {
        /// The server; all of them if nothing is said.
        id: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Log in to a server at an address; you agree in a browser on this machine
    Login {
        /// The server.
        id: String,
        /// What to ask for besides what the server names itself.
        #[arg(long, value_name = "SCOPES")]
        scope: Option<String>,
    },
    /// Forget what was granted at a login
    Logout {
        /// The server.
        id: String,
    },
    /// Show what agents could write of a server's program and how its tools changed, and accept both as they are now
    Trust {
        /// The server.
        id: String,
        /// Accept all that is shown, without asking.
        #[arg(long)]
        yes: bool,
        /// Accept the form with this hash (its first 12 digits will do) and no other, without asking. May be repeated.
        #[arg(long, value_name = "HASH", conflicts_with = "yes")]
        hash: Vec<String>,
    },
}

/// How the library is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchMode {
    /// By words and vectors together.
    Fused,
    /// By words.
    Lexical,
    /// By vectors.
    Vector,
}

impl From<SearchMode> for Mode {
    fn from(mode: SearchMode) -> Self {
        match mode {
            SearchMode::Fused => Self::Fused,
            SearchMode::Lexical => Self::Lexical,
            SearchMode::Vector => Self::Vector,
        }
    }
}

/// What can be done with what was deleted.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango trash\n  lango trash restore zfb5dq\n  lango trash empty"
)]
pub enum TrashCommand {
    /// What is in the trash, the latest first
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put something back where it was
    Restore {
        /// Its id, as the list shows it.
        id: String,
    },
    /// Delete everything in it for good
    Empty,
}

/// What can be done with approvals.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango approvals list\n  lango approvals answer p_1a2b yes\n  \
                        lango approvals answer p_1a2b always --pattern 'notes/*'\n  \
                        lango approvals answer p_1a2b no --because 'use the other file'\n  \
                        lango approvals revoke p_1a2b"
)]
pub enum ApprovalsCommand {
    /// What waits, and what was granted for calls to come
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Everything about a call that waits
    Show {
        /// The request; the beginning of its id is enough.
        id: String,
    },
    /// Answer what waits, and go on with its turn
    Answer {
        /// The request; the beginning of its id is enough.
        id: String,
        /// What you say.
        answer: AnswerWord,
        /// For `session` and `always`: the calls it holds for, instead of the pattern that is offered.
        #[arg(long)]
        pattern: Option<String>,
        /// For `no` and `happened`: what the agent is told.
        #[arg(long, value_name = "TEXT")]
        because: Option<String>,
        /// Print one JSON object with the answer, the outcome and the counts.
        #[arg(long)]
        json: bool,
        /// No progress on stderr.
        #[arg(short, long)]
        quiet: bool,
    },
    /// Take back what was granted
    Revoke {
        /// The grant; the beginning of its id is enough.
        id: String,
    },
}

/// What can be said to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnswerWord {
    /// This call may run.
    #[value(alias = "once")]
    Yes,
    /// Calls like this may run in this session.
    Session,
    /// Calls like this may run in this folder.
    Always,
    /// It may not run.
    No,
    /// A call that may have run is to run again.
    Retry,
    /// A call that may have run is left as it is; the agent is told that nobody knows.
    Skip,
    /// You know what became of a call that may have run; say it with --because.
    Happened,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango config show --origin\n  lango -c agent.topology=classic config show\n  lango config check"
)]
pub enum ConfigCommand {
    /// Every key with its value
    Show {
        /// Say where each value comes from.
        #[arg(long, conflicts_with = "json")]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check files, environment and flags, and that the agents can be built
    Check,
    /// Trust the project's lango.toml, agents and AGENTS.md, each file as it is now
    Trust {
        /// Take the trust back.
        #[arg(long)]
        revoke: bool,
    },
}
