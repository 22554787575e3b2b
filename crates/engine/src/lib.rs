//! lango's heart. Here the promises are kept that other frameworks ask the model to keep.
//!
//! The data flows one way. A [`Topology`] (data) and the tools' specs become a [`Tree`]: who exists, who owns what, who is
//! told what. A [`Turn`] decides and performs nothing: replies and results go in, events and the next steps come out.
//! The [`Runner`] performs the steps, stores what the turn decided, and only then shows it. Tools are reached through the
//! [`Gate`] alone.

mod agent_file;
mod ambient;
mod answer_schema;
mod attachments;
mod capability;
mod gate;
mod history;
mod instruction;
mod json_schema;
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
    Action, Gate, GateError, Rule, Rules, edited_grant_problem, grant_problem, is_bound_to_content,
    narrower_command,
};
pub use history::LookBack;
pub use instruction::DELEGATE;
pub use partition::{Home, Homes, Named, Partition, partition};
pub use runner::{
    Answers, Conversation, FirstCommit, InterruptedTurns, ModelCall, NotRecomputed, Runner,
    RunnerError, RunnerParts, Shown, Standing, Stop, TurnCommit, TurnEnd, TurnReport,
};
pub use topology::{AgentSpec, OrchestratorTools, PrefixSpec, Topology, TopologyError};
pub use tree::{
    Agent, Mode, OwnedTool, ProjectInstructions, RemoteCard, Skipped, Tree, TreeError, TreeSettings,
};
pub use turn::{Input, ModelStep, RemoteStep, Step, ToolStep, Turn, TurnStart};
