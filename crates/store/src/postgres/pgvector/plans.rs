//! How the server goes about asking the index.

use super::statements::{look, nearest};
use super::{Index, State};
use crate::Store;
use crate::engine::Engine;
use crate::postgres::statements::plans::plan_of;
use lango_testkit::postgres;
use tokio_postgres::NoTls;

/// Two collections, and vectors of another length.
const FILL: &str = r#"
INSERT INTO library_maker VALUES (1, '{"provider": "p", "model": "m", "dimensions": 64, "version": 1}');
INSERT INTO library_collections ("user", name, vectors) VALUES ('ada', 'c', 4000), ('bob', 'c', 90000);
INSERT INTO library_vectors (chunk, numbers)
SELECT ((1 + n % 2)::bigint << 32) + n, decode(md5(n::text) || md5('a' || n) || md5('b' || n) || md5('c' || n), 'hex')
  FROM generate_series(1, 8000) AS n;
INSERT INTO library_vectors (chunk, numbers) SELECT (3::bigint << 32) + n, '\x0102' FROM generate_series(1, 100) AS n"#;

#[tokio::test]
async fn the_nearest_are_asked_of_the_index_whatever_the_values_are() {
    let address = postgres::empty_with_pgvector();
    let store = Store::postgres(&address, "root".into()).unwrap();
    store.open_now().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(FILL).await.unwrap();
    let state = State::of(&client).await.unwrap();
    let index = state.possible().expect("the extension is there");
    assert_eq!((index.dimensions, index.schema.as_str()), (64, "public"));
    assert_eq!(state.usable(), None);

    let Engine::Postgres(engine) = &store.engine else {
        unreachable!()
    };
    super::make(&engine.database).await.unwrap();
    client
        .batch_execute("ANALYZE library_vectors")
        .await
        .unwrap();
    let state = State::of(&client).await.unwrap();
    assert_eq!(state.usable().as_ref(), Some(&index));
    let set = format!("BEGIN; {}", look(200, 20_000));
    client.batch_execute(&set).await.unwrap();
    let generic = "SET LOCAL plan_cache_mode = force_generic_plan";
    client.batch_execute(generic).await.unwrap();
    let ones = vec!["1"; 64].join(",");
    let named = nearest(&index)
        .replace("$1", &format!("'[{ones}]'"))
        .replace("$2", "'{1}'")
        .replace("$3", "100");
    for statement in [nearest(&index), named] {
        let plan = plan_of(&client, &statement).await;
        let by_index = plan.contains("Index Scan using library_near_64 on library_vectors");
        assert!(
            by_index && !plan.contains("Sort") && !plan.contains("Seq Scan"),
            "{plan}"
        );
    }

    // The vectors of another length are not in it, and it is none for them.
    let count = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'library_near_64'::regclass";
    let indexed: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(indexed, 8000);
    let short = Index {
        dimensions: 2,
        ..index
    };
    let plan = plan_of(&client, &nearest(&short)).await;
    assert!(
        plan.contains("Sort") && !plan.contains("library_near_64"),
        "{plan}"
    );
}
