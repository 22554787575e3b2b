//! Which layers hold a command. All of them do; tests take them away one by one, to see that each is needed.

/// What becomes of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layer {
    /// It holds, or nothing runs.
    #[default]
    Used,
    /// It is left out without a word.
    LeftOut,
    /// It acts as if the machine did not have it.
    Failing,
}

/// What becomes of each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Namespaces and the view of the disk.
    pub bubblewrap: Layer,
    /// The kernel's rules about files.
    pub landlock: Layer,
    /// The kernel's rules about calls.
    pub seccomp: Layer,
    /// The look at what a command uses up.
    pub watchdog: Layer,
    /// The kernel's own bounds for a group of processes. Does without where it is not to be had.
    pub cgroup: Layer,
}
