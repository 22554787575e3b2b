//! A real PostgreSQL for tests.
//!
//! [`fresh_schema`] returns the address of an unused schema. It is on the server that `LANGO_TEST_POSTGRES` names, or
//! else on one that this process starts for all its tests. The first connection creates the schema, and nothing deletes
//! it: the server is meant to be thrown away. [`Cluster`] is a private server that a test can stop and start again.
//!
//! Without PostgreSQL these tests fail with a message that says how to install it; none is skipped.

mod cluster;
mod cpu_time;

pub use cluster::{Cluster, programs};

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Environment variable with the address of a server for all tests, such as
/// `postgres://postgres@127.0.0.1:5432/postgres`.
pub const SERVER_VARIABLE: &str = "LANGO_TEST_POSTGRES";

/// Environment variable with the `bin` folder of a PostgreSQL that has pgvector.
pub const PGVECTOR_VARIABLE: &str = "LANGO_TEST_PGVECTOR";

/// Returns the address of a new, empty schema on the shared server.
pub fn fresh_schema() -> String {
    schema_address(&server_address(), &unique_name())
}

/// Returns the address of a new, empty schema on a server with pgvector, which this process starts for all its tests.
pub fn fresh_schema_with_pgvector() -> String {
    static OWN: OnceLock<Cluster> = OnceLock::new();
    let server = OWN.get_or_init(|| Cluster::with_pgvector(&[]));
    schema_address(&server.address(), &unique_name())
}

/// Returns the address of a schema on the server at `address`.
pub fn schema_address(address: &str, schema: &str) -> String {
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}options=-csearch_path%3D{schema}")
}

/// Returns the address of the server that all tests share.
pub fn server_address() -> String {
    static OWN: OnceLock<Cluster> = OnceLock::new();
    match env::var(SERVER_VARIABLE) {
        Ok(address) => address,
        Err(_) => OWN.get_or_init(|| Cluster::start(&[])).address(),
    }
}

/// Returns a name that no other test uses, in this process or any other.
fn unique_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format!(
        "test_{}_{}_{}",
        std::process::id(),
        now.unwrap_or_default().as_nanos(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    )
}
