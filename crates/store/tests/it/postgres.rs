//! What only a database that many copies share can promise.

mod start;

use lango_core::StoreError;
use lango_store::PostgresStore;
use tokio_postgres::NoTls;

/// A root agent whose name is no default of anything.
const ROOT: &str = "house-keeper";

/// The store at an address.
fn at(address: &str) -> PostgresStore {
    PostgresStore::at(address, ROOT.into()).unwrap()
}

/// Runs statements on the server at an address.
async fn execute(address: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// The error of opening it.
async fn refusal(address: &str) -> StoreError {
    let opened = at(address).open_now().await;
    opened.expect_err("it should not open")
}
