//! Keeps keys out of core dumps: the memory of this process holds API keys and what was said.

/// Forbids core dumps of this process, and other processes of the user to read its memory. What cannot be forbidden stays
/// as the system has it.
pub fn forbid() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    // A limit does not hold for a program that the kernel hands dumps to.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
