//! The agent engine: builds the agent tree, runs turns, and enforces the rules that models cannot be trusted to follow.
//!
//! Data flows one way. A [`Topology`] and the specs of the tools become a [`Tree`]: which agents exist, which tools
//! each owns, and what its instruction says. A [`Turn`] is a state machine without I/O: replies and results go in,
//! events and the next steps come out. The [`Runner`] performs the steps, stores the events of the turn, and only then
//! publishes them. Tools run only through the [`Gate`].

mod agent_file;
mod ambient;
mod answer_schema;
mod attachments;
mod capability;
mod gate;
mod history;
mod instruction;
mod json_schema;
mod mode_switch;
mod partition;
mod rejection;
mod runner;
mod template;
mod topology;
mod tree;
mod turn;

pub use agent_file::{AgentFile, FileProblem};
pub use ambient::{RandomIds, SystemClock};
pub use answer_schema::{AnswerSchema, AnswerSchemaError};
pub use capability::{GENERAL_ACTIONS, capabilities_of};
pub use gate::{
    ApprovalRule, ApprovalRules, Gate, GateError, RuleAction, content_bound_pattern,
    edited_grant_problem, exact_pattern, grant_problem, narrower_command,
};
pub use history::History;
pub use instruction::DELEGATE;
pub use mode_switch::ModeSwitch;
pub use partition::{HasToolName, Partition, ToolAssignment, ToolAssignments, partition};
pub use rejection::reason as rejection_reason;
pub use runner::{
    AnswerInbox, CancelToken, Conversation, FirstCommit, InterruptedTurnPolicy, ModelCall,
    RecomputeError, Runner, RunnerError, RunnerParts, TurnCommit, TurnEnd, TurnReport, TurnStatus,
    TurnUpdate, UndoError, UndoableTurn, UndoneFiles, UpdateBacklog, UpdateReceiver, UpdateSender,
    paths_left, turn_updates,
};
pub use topology::{AgentSpec, OrchestratorTools, PrefixSpec, Topology, TopologyError};
pub use tree::{
    Agent, OwnedTool, ProjectInstructions, RemoteCard, SkippedAgent, Tree, TreeError, TreeMode,
    TreeSettings,
};
pub use turn::{
    ModelStep, PartialReply, PrintedOutput, RemoteStep, ToolStep, Turn, TurnInput, TurnStart,
    TurnStep,
};
