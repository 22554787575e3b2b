//! Disables core dumps, because the memory of this process contains API keys and conversations.

/// Forbids core dumps of this process, and prevents the user's other processes from reading its memory. If the system
/// refuses, its defaults stay in effect.
pub fn forbid() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    // The limit does not apply if the kernel passes dumps to a program.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
