//! A real PostgreSQL for tests.
//!
//! [`empty`] gives the address of a schema that nobody uses yet, on the server that `LANGO_TEST_POSTGRES` names or else on one
//! that this process starts for all its tests. The schema is made by whoever connects first, and left behind: the server
//! is one to throw away. [`Cluster`] is a server of one's own, to be stopped in the middle and started again.
//!
//! A machine without PostgreSQL fails these tests and says how to get it; none is skipped.

mod cluster;
mod spent;

pub use cluster::{Cluster, programs};

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names a server for all tests, such as `postgres://postgres@127.0.0.1:5432/postgres`.
pub const SERVER: &str = "LANGO_TEST_POSTGRES";

/// The variable that names the folder of the programs of a PostgreSQL with pgvector.
pub const PGVECTOR: &str = "LANGO_TEST_PGVECTOR";

/// The address of an empty schema of its own.
pub fn empty() -> String {
    within(&server(), &name())
}

/// The same on a server with pgvector, which this process starts for all its tests.
pub fn empty_with_pgvector() -> String {
    static OWN: OnceLock<Cluster> = OnceLock::new();
    let server = OWN.get_or_init(|| Cluster::with_pgvector(&[]));
    within(&server.address(), &name())
}

/// The address of a schema on the server at `address`.
pub fn within(address: &str, schema: &str) -> String {
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}options=-csearch_path%3D{schema}")
}

/// Returns the address of the server that all tests share.
pub fn server() -> String {
    static OWN: OnceLock<Cluster> = OnceLock::new();
    match env::var(SERVER) {
        Ok(address) => address,
        Err(_) => OWN.get_or_init(|| Cluster::start(&[])).address(),
    }
}

/// A name that no other test has, of this process or another.
fn name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format!(
        "test_{}_{}_{}",
        std::process::id(),
        now.unwrap_or_default().as_nanos(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    )
}
