//! How well commands are held on this machine, as the self-test found it.

/// How well commands are held here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strength {
    /// All layers work.
    Full,
    /// One layer works and one does not.
    Degraded {
        /// What is missing, what follows from that, and the way out.
        missing: String,
    },
    /// Nothing holds a command.
    None {
        /// Why, and the way out.
        why: String,
    },
}

/// What the self-test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// What follows from the checks.
    pub strength: Strength,
    /// What was tried.
    pub checks: Vec<Check>,
    /// What holds commands to their limits here.
    pub limits: LimitsBy,
}

/// One thing that was tried inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was tried, as a claim: `a file outside cannot be read`.
    pub name: String,
    /// Whether the claim held.
    pub passed: bool,
    /// What came of it.
    pub detail: String,
}

/// What holds commands to their limits, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsBy {
    /// For the number of processes.
    pub processes: String,
    /// For memory.
    pub memory: String,
    /// For what is written to disk.
    pub disk: String,
}
