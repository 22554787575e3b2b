//! How well this machine can confine commands, according to the self-test.

/// How well this machine can confine commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxStrength {
    /// All layers work.
    Full,
    /// One of the two layers works.
    Degraded {
        /// What is missing, what follows from that, and what to do about it.
        missing: String,
    },
    /// No layer works.
    None {
        /// Why, and what to do about it.
        why: String,
    },
}

/// The result of the self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The conclusion from the checks.
    pub strength: SandboxStrength,
    pub checks: Vec<SelfTestCheck>,
    pub limits: LimitEnforcement,
}

/// One escape attempt from inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTestCheck {
    /// The property that was tested: `a file outside cannot be read`.
    pub name: String,
    pub passed: bool,
    /// The error message of the attempt, or what was found.
    pub detail: String,
}

/// What enforces each limit on this machine, described for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitEnforcement {
    pub processes: String,
    pub memory: String,
    /// The limit of bytes written to disk.
    pub disk: String,
}
