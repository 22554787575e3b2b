//! Shared code of the harnesses that run the real binary. It has a test environment, a scripted model, clients, a
//! simulated user who answers approval requests, and the oracle that checks at the end that no message was lost and no
//! effect was repeated.

pub(crate) mod client;
pub(crate) mod cpu;
pub(crate) mod evidence;
pub(crate) mod oracle;
pub(crate) mod planted_faults;
pub(crate) mod random;
pub(crate) mod rpc_client;
pub(crate) mod script;
pub(crate) mod server_process;
pub(crate) mod settling;
pub(crate) mod simulated_user;
pub(crate) mod test_env;
