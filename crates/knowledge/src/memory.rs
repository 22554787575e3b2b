//! Memory of what was said: an observer turns finished turns into short observations, a reflector condenses observations
//! into reflections, and those once more into a longer-lived second generation.
//!
//! Each step reads what is due, asks the model while nothing is held, and ends in one transaction that stores the result
//! and moves the session's watermark from the revision the step was begun at. A step that is cut off anywhere has happened
//! or has not; one that somebody overtook is dropped. So every finished turn is observed once, whatever crashes.
//!
//! A model that fails moves nothing; the next call tries again. When it failed [`MemorySettings::attempts`] times in a row
//! the step is done by rules, so that memory never stalls, and what they made says so.
//!
//! Trust labels: rules quote what the person typed, so theirs is trusted, unless a program wrote the message. What
//! a model made is trusted only if all turns it was made of are: the log has a label for each message of an agent, which
//! says whether everything that agent had been shown is trusted. The label passes to everything that is made of it.
//! What an agent saves or notes itself has the label of the agent's context, which comes with the call
//! ([`Caller::trust`](lango_core::Caller::trust)).

mod context;
mod entry;
mod forget;
mod observer;
mod prompt;
mod reflector;
mod rules;
mod search;
mod tools;
mod words;

pub use tools::memory_tools;

use lango_core::{Clock, MemoryContext, Model, SessionId, StoreError, UserId};
use lango_store::{Generation, MemoryOwner, Store};
use reflector::When;
use std::sync::Arc;

/// Bytes of a token, as the engine counts them: an estimate that errs on the side of too many tokens.
const TOKEN_BYTES: u64 = 3;

/// How many steps one call of [`Memory::work_due`] makes at most.
const MOST_STEPS: u32 = 16;

/// The name of the model that is rules itself; it is not asked.
const OFFLINE: &str = "offline/rules";

/// When memory works, and how much of it a prompt holds. Tokens are counted at three bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Turns are observed when those that are not have more tokens than this.
    pub message_token_threshold: u64,
    /// Observations are condensed when those that are not have more tokens than this.
    pub observation_token_threshold: u64,
    /// Reflections of the first generation are condensed when those that are not have more tokens than this.
    pub reflection_token_threshold: u64,
    /// How many tokens the block in a prompt has at most.
    pub context_tokens: u64,
    /// How often in a row the model may fail before a step is done by rules.
    pub attempts: u32,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            message_token_threshold: 1000,
            observation_token_threshold: 2000,
            reflection_token_threshold: 4000,
            context_tokens: 3000,
            attempts: 3,
        }
    }
}

/// What a call of [`Memory::work_due`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// How many turns were observed.
    pub turns: u64,
    /// How many observations were made of them.
    pub observations: u32,
    /// How many reflections were made, of both generations.
    pub reflections: u32,
    /// How many of all these were made by rules.
    pub by_rules: u32,
    /// How many results were dropped because somebody else was faster.
    pub dropped: u32,
    /// Why the model gave nothing; the step is tried again at the next call.
    pub failure: Option<String>,
    /// Whether more may be due: the steps of one call are limited.
    pub more: bool,
}

/// The memory of users and their sessions.
#[derive(Clone)]
pub struct Memory {
    parts: Arc<Parts>,
}

struct Parts {
    store: Arc<Store>,
    /// None means rules.
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    settings: MemorySettings,
}

/// What became of one step.
enum Progress {
    /// There was nothing to do.
    NotDue,
    Observed {
        turns: u64,
        made: Option<By>,
    },
    Reflected(By),
    /// Somebody else was faster.
    Dropped,
    /// The model failed.
    Failed(String),
}

/// Who made a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Model,
    Rules,
}

impl Memory {
    /// Memory in this store. Without a model, or with `offline/rules`, it works by rules.
    pub fn new(
        store: Arc<Store>,
        model: Option<Arc<dyn Model>>,
        clock: Arc<dyn Clock>,
        settings: MemorySettings,
    ) -> Self {
        let model = model.filter(|model| model.name() != OFFLINE);
        let parts = Parts {
            store,
            model,
            clock,
            settings,
        };
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Does the steps that are due for a session, a limited number of them. May be called at any time, from anywhere, and
    /// dropped anywhere.
    pub async fn work_due(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> Result<MemoryReport, StoreError> {
        let owner = owner(user, session);
        let mut report = MemoryReport {
            more: true,
            ..MemoryReport::default()
        };
        for _ in 0..MOST_STEPS {
            match self.next_step(&owner).await? {
                Progress::NotDue => {
                    report.more = false;
                    break;
                }
                Progress::Observed { turns, made } => {
                    report.turns += turns;
                    report.observations += u32::from(made.is_some());
                    report.by_rules += u32::from(made == Some(By::Rules));
                }
                Progress::Reflected(by) => {
                    report.reflections += 1;
                    report.by_rules += u32::from(by == By::Rules);
                }
                Progress::Dropped => report.dropped += 1,
                Progress::Failed(detail) => {
                    report.failure = Some(detail);
                    break;
                }
            }
        }
        Ok(report)
    }

    /// The block for the end of a prompt: reflections of the second generation, then of the first, then observations that
    /// went into none, then saved memories, each the newest first, within [`MemorySettings::context_tokens`]. None if
    /// nothing is remembered.
    pub async fn context(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> Result<Option<MemoryContext>, StoreError> {
        context::block(self, &owner(user, session)).await
    }

    async fn next_step(&self, owner: &MemoryOwner) -> Result<Progress, StoreError> {
        let observed = self.observe(owner).await?;
        if !matches!(observed, Progress::NotDue) {
            return Ok(observed);
        }
        let settings = &self.parts.settings;
        let reflected = self
            .condense(
                owner,
                Generation::Observation,
                When::Past(settings.observation_token_threshold),
            )
            .await?;
        if !matches!(reflected, Progress::NotDue) {
            return Ok(reflected);
        }
        self.condense(
            owner,
            Generation::First,
            When::Past(settings.reflection_token_threshold),
        )
        .await
    }

    fn rows(&self) -> &Store {
        &self.parts.store
    }
}

fn owner(user: &UserId, session: &SessionId) -> MemoryOwner {
    MemoryOwner {
        user: user.clone(),
        session: session.clone(),
    }
}

/// About how many tokens a text has.
fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(TOKEN_BYTES)
}
