//! The contract of a session store, over every store there is.

use lango_store::Store;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::Subject;

mod memory {
    lango_testkit::session_store_contract!(super::memory_store);
}

mod sqlite {
    lango_testkit::session_store_contract!(super::sqlite_store);
}

mod postgresql {
    lango_testkit::session_store_contract!(super::postgres_store);
}

async fn memory_store() -> Subject {
    Subject::new(Store::in_memory(), ())
}

async fn sqlite_store() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path().join("lango.db"), "sketch-root".into()).unwrap();
    Subject::new(store, folder)
}

async fn postgres_store() -> Subject {
    let store = Store::at(&postgres::empty(), "sketch-root".into()).unwrap();
    Subject::new(store, ())
}
