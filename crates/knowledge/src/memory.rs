//! Memory of conversations. An observer condenses finished turns into short observations. A reflector condenses
//! observations into reflections, and these into a longer-lived second generation of reflections.
//!
//! Each step reads what is due and calls the model without holding any lock. It ends with one transaction, which stores
//! the result and advances the session's watermark, provided that the watermark is still at the revision where the step
//! started. So an interrupted step takes effect completely or not at all, and a step that was overtaken by another one
//! drops its result. Every finished turn is observed exactly once, whatever crashes.
//!
//! If the model fails, nothing changes and the next call tries again. After [`MemorySettings::attempts`] failures in a
//! row, rules do the step, so that memory never stalls; the result names them as its source.
//!
//! Trust labels: rules quote what the user typed, so their observations are trusted, unless a program wrote the
//! message. A model's summary is trusted only if all turns in it are: the log has a label for each message of an agent,
//! which says whether everything that the agent had read was trusted. Every summary inherits the label of its parts.
//! What an agent saves or notes has the label of the agent's context, which is part of the call
//! ([`Caller::trust`](lango_core::Caller::trust)).

mod context;
mod entry;
mod forget;
mod manage;
mod observer;
mod prompt;
mod reflector;
mod rules;
mod search;
mod summary;
mod tools;

pub use manage::{ListedMemory, MemoryKind};
pub use tools::memory_tools;

use lango_core::{Clock, MemoryContext, Model, SessionId, StoreError, UserId};
use lango_store::{Generation, MemoryOwner, Store};
use reflector::CondenseTrigger;
use std::sync::Arc;

/// The estimated bytes per token, as in the engine. It overestimates the number of tokens rather than underestimating
/// it.
const TOKEN_BYTES: u64 = 3;

/// Maximum number of steps per call of [`Memory::work_due`].
const MAX_STEPS: u32 = 16;

/// The model that consists of rules; memory uses its own rules instead of calling it.
const OFFLINE: &str = "offline/rules";

/// The thresholds of memory, and its size in a prompt. A token is estimated as three bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Turns are observed once the unobserved ones have more tokens than this.
    pub message_token_threshold: u64,
    /// Observations are condensed once the uncondensed ones have more tokens than this.
    pub observation_token_threshold: u64,
    /// Reflections of the first generation are condensed once the uncondensed ones have more tokens than this.
    pub reflection_token_threshold: u64,
    /// Maximum number of tokens of the memory block in a prompt.
    pub context_tokens: u64,
    /// How often in a row the model may fail before rules do the step.
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

/// The result of [`Memory::work_due`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// The number of observed turns.
    pub turns: u64,
    /// The number of new observations.
    pub observations: u32,
    /// The number of new reflections of both generations.
    pub reflections: u32,
    /// How many of these observations and reflections come from rules.
    pub by_rules: u32,
    /// How many results were dropped because a concurrent step was faster.
    pub dropped: u32,
    /// Why the model failed. The next call tries the step again.
    pub failure: Option<String>,
    /// Whether more steps may be due, since the steps of one call are limited.
    pub more: bool,
}

/// The memory of all users and sessions. Clones share the same memory.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<Store>,
    /// `None` means rules.
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    settings: MemorySettings,
}

/// The outcome of one step.
enum StepOutcome {
    /// There was nothing to do.
    NotDue,
    Observed {
        turns: u64,
        /// The author of the observation; `None` if there was nothing worth observing.
        observation: Option<Author>,
    },
    Reflected(Author),
    /// A concurrent step was faster.
    Dropped,
    Failed(String),
}

/// The author of an observation or reflection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Model,
    Rules,
}

impl Memory {
    /// Creates the memory in this store. Without a model, or with `offline/rules`, it uses rules.
    pub fn new(
        store: Arc<Store>,
        model: Option<Arc<dyn Model>>,
        clock: Arc<dyn Clock>,
        settings: MemorySettings,
    ) -> Self {
        let model = model.filter(|model| model.name() != OFFLINE);
        let inner = Inner {
            store,
            model,
            clock,
            settings,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Does the steps that are due for a session, up to a limit. Concurrent calls are safe, and so is dropping the
    /// future at any point.
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
        for _ in 0..MAX_STEPS {
            match self.next_step(&owner).await? {
                StepOutcome::NotDue => {
                    report.more = false;
                    break;
                }
                StepOutcome::Observed { turns, observation } => {
                    report.turns += turns;
                    report.observations += u32::from(observation.is_some());
                    report.by_rules += u32::from(observation == Some(Author::Rules));
                }
                StepOutcome::Reflected(author) => {
                    report.reflections += 1;
                    report.by_rules += u32::from(author == Author::Rules);
                }
                StepOutcome::Dropped => report.dropped += 1,
                StepOutcome::Failed(detail) => {
                    report.failure = Some(detail);
                    break;
                }
            }
        }
        Ok(report)
    }

    /// Returns the memory block for the end of a prompt: reflections of the second generation, then of the first, then
    /// uncondensed observations, then saved memories, each with the newest first, within
    /// [`MemorySettings::context_tokens`]. `None` if there are no memories.
    pub async fn context(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> Result<Option<MemoryContext>, StoreError> {
        context::block(self, &owner(user, session)).await
    }

    async fn next_step(&self, owner: &MemoryOwner) -> Result<StepOutcome, StoreError> {
        let observed = self.observe(owner).await?;
        if !matches!(observed, StepOutcome::NotDue) {
            return Ok(observed);
        }
        let settings = &self.inner.settings;
        let reflected = self
            .condense(
                owner,
                Generation::Observation,
                CondenseTrigger::Above(settings.observation_token_threshold),
            )
            .await?;
        if !matches!(reflected, StepOutcome::NotDue) {
            return Ok(reflected);
        }
        self.condense(
            owner,
            Generation::First,
            CondenseTrigger::Above(settings.reflection_token_threshold),
        )
        .await
    }

    fn rows(&self) -> &Store {
        &self.inner.store
    }
}

fn owner(user: &UserId, session: &SessionId) -> MemoryOwner {
    MemoryOwner {
        user: user.clone(),
        session: session.clone(),
    }
}

/// Estimates the number of tokens of a text.
fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(TOKEN_BYTES)
}
