//! Shared code of the harnesses that run the real binary. It has a test environment, a scripted model, clients, a
//! simulated user who answers approval requests, and the oracle that checks at the end that no message was lost and no
//! effect was repeated.

pub mod client;
pub mod cpu;
pub mod evidence;
pub mod oracle;
pub mod planted_faults;
pub mod random;
pub mod rpc_client;
pub mod script;
pub mod server_process;
pub mod settling;
pub mod simulated_user;
pub mod test_env;
