//! The layers of the sandbox. All of them are used; tests disable them one by one to check that each is needed.

/// How to treat one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layer {
    /// Use the layer; if it cannot be set up, nothing runs.
    #[default]
    Used,
    /// Skip the layer silently.
    LeftOut,
    /// Behave as if this machine did not support the layer.
    Failing,
}

/// How to treat each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Namespaces and the view of the file system.
    pub bubblewrap: Layer,
    /// The kernel's file access rules.
    pub landlock: Layer,
    /// The kernel's system call filter.
    pub seccomp: Layer,
    /// The guard's checks of resource usage.
    pub watchdog: Layer,
    /// The kernel's limits for a group of processes. Optional: commands run without it where it is not available.
    pub cgroup: Layer,
}
