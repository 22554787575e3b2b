//! Tests of stored memory: a step is committed as a whole, once, and only for the revision at which it started.

use super::KIND;
use crate::database::TestDatabase;
use crate::{append, create};
use lango_core::{Provenance, Timestamp, Trust};
use lango_store::{
    CommitOutcome, ForgetRequest, Generation, MemoryId, MemoryOrder, MemoryOwner, MemoryStep,
    NewMemoryRecord, TurnRange,
};
use lango_testkit::session_store_contract::LogBuilder;

fn recollection(text: &str) -> NewMemoryRecord {
    NewMemoryRecord {
        turns: (0, 0),
        text: text.to_owned(),
        source: Provenance {
            name: "test".into(),
            trust: Trust::Trusted,
        },
        created: Timestamp(1),
    }
}

fn observe(observed: u64, text: &str) -> MemoryStep {
    MemoryStep::Observe {
        observed,
        trust: Trust::Trusted,
        observation: Some(recollection(text)),
    }
}

#[tokio::test]
async fn a_step_is_stored_for_its_revision_or_not_at_all() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let owner = MemoryOwner {
        user: "local".into(),
        session: create(&*store, "s_1").await,
    };
    let memory = &store;
    let texts = async || {
        let rows = memory.recollections(&owner, Generation::Observation, MemoryOrder::Newest, 9);
        let rows = rows.await.unwrap();
        rows.iter()
            .map(|row| row.text.to_string())
            .collect::<Vec<_>>()
    };
    let done = memory
        .commit_step(&owner, 0, observe(3, "one"))
        .await
        .unwrap();
    assert_eq!(done, CommitOutcome::Done(Some(MemoryId::Observation(1))));
    for (revision, observed) in [(0, 5), (1, 2), (2, 5)] {
        let stale = memory
            .commit_step(&owner, revision, observe(observed, "two"))
            .await;
        assert_eq!(stale.unwrap(), CommitOutcome::Stale);
    }
    let stale = memory
        .forget_memories(&owner, 0, ForgetRequest::default())
        .await
        .unwrap();
    assert_eq!(stale, CommitOutcome::Stale);
    assert_eq!(texts().await, ["one"]);
    // A missing part makes the whole step fail.
    let broken = MemoryStep::Condense {
        parts: vec![MemoryId::Observation(1), MemoryId::Observation(7)],
        generation: Generation::First,
        reflection: recollection("three"),
    };
    memory.commit_step(&owner, 1, broken).await.unwrap_err();
    let reflections = memory.recollections(&owner, Generation::First, MemoryOrder::Newest, 9);
    assert_eq!(reflections.await.unwrap(), []);
    assert_eq!(memory.watermark(&owner).await.unwrap().revision, 1);
    let uncondensed = memory.recollections(
        &owner,
        Generation::Observation,
        MemoryOrder::OldestUncondensed,
        9,
    );
    assert_eq!(uncondensed.await.unwrap().len(), 1);
}

#[tokio::test]
async fn turns_are_read_in_order_truncated_and_up_to_the_running_one() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let session = create(&*store, "s_1").await;
    let mut builder = LogBuilder::new(&session)
        .exchange("aäb", "long answer")
        .ask("two")
        .cancel()
        .ask("three");
    append(&*store, builder.batch()).await;
    let owner = MemoryOwner {
        user: "local".into(),
        session,
    };
    let read = TurnRange {
        from: 0,
        limit: 9,
        text_bytes: 4,
    };
    let turns = store.unobserved_turns(&owner, read).await.unwrap();
    let texts: Vec<(u64, String, Option<String>)> = turns
        .iter()
        .map(|turn| {
            let exchange = turn.exchange.as_ref().unwrap();
            let answer = exchange.answer.as_ref();
            let answer = answer.map(|answer| answer.text.to_string());
            (turn.ordinal, exchange.question.to_string(), answer)
        })
        .collect();
    let cut = "long [cut: 7 more bytes]".to_owned();
    assert_eq!(
        texts,
        [
            (0, "aäb".to_owned(), Some(cut)),
            (1, "two".to_owned(), None)
        ]
    );
    let other_user = MemoryOwner {
        user: "other".into(),
        ..owner
    };
    let turns = store.unobserved_turns(&other_user, read).await.unwrap();
    assert_eq!(turns, []);
}

#[test]
fn memory_ids_are_parsed_as_they_are_displayed() {
    for id in [
        MemoryId::Observation(1),
        MemoryId::Reflection(22),
        MemoryId::Saved(u64::MAX),
    ] {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    for wrong in [
        "",
        "o",
        "o_",
        "x_1",
        "o_-1",
        "o_1_2",
        "m_18446744073709551616",
    ] {
        assert!(wrong.parse::<MemoryId>().is_err(), "{wrong}");
    }
}
