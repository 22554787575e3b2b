//! Runs the contract suite of session stores on every database.

use lango_store::Store;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::StoreUnderTest;

mod memory {
    lango_testkit::session_store_contract!(super::memory_store);
}

mod sqlite {
    lango_testkit::session_store_contract!(super::sqlite_store);
}

mod postgresql {
    lango_testkit::session_store_contract!(super::postgres_store);
}

async fn memory_store() -> StoreUnderTest {
    StoreUnderTest::new(Store::in_memory(), ())
}

async fn sqlite_store() -> StoreUnderTest {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path().join("lango.db"), "test-root".into()).unwrap();
    StoreUnderTest::new(store, folder)
}

async fn postgres_store() -> StoreUnderTest {
    let store = Store::at(&postgres::fresh_schema(), "test-root".into()).unwrap();
    StoreUnderTest::new(store, ())
}
