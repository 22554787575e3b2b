//! A duplicate question has no side effects.

use crate::bench::log;
use crate::resume::{about_to_run, bench_with_log, whole_turn};
use lango_core::{BoxFuture, Effect, EventBatch, StoreError};
use lango_engine::{CancelToken, FirstCommit, RunnerError, TurnCommit, TurnReport, turn_updates};
use lango_testkit::model::{ScriptedModel, say};
use lango_testkit::tool::CountingTool;
use std::sync::Arc;

/// A commit that reports every question as a duplicate.
struct Duplicate;

impl TurnCommit for Duplicate {
    fn is_duplicate(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async { Ok(true) })
    }

    fn first(&self, _: EventBatch) -> BoxFuture<'_, Result<FirstCommit, StoreError>> {
        Box::pin(async { Ok(FirstCommit::Duplicate) })
    }

    fn last<'a>(
        &'a self,
        _: EventBatch,
        _: &'a TurnReport,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(false) })
    }
}

#[tokio::test]
async fn a_duplicate_resumes_no_turn_and_creates_no_session() {
    let whole = whole_turn(Effect::Pure).await;
    let cut = about_to_run(&whole);
    let tool = Arc::new(CountingTool::new("fs_do"));
    let (bench, session) = bench_with_log(vec![Arc::clone(&tool) as _], cut).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let (sender, _shown) = turn_updates();
    let mut left = runner.open(session.clone()).await.unwrap();
    let mut new = runner.start_as("ann".into(), "s_new".into());
    for conversation in [&mut left, &mut new] {
        let stop = CancelToken::new();
        let turn = conversation.turn_once("t_other".into(), "y", &stop, &sender, Some(&Duplicate));
        let refused = turn.await;
        assert!(
            matches!(refused, Err(RunnerError::Duplicate)),
            "{refused:?}"
        );
    }
    assert_eq!(tool.runs(), 0);
    assert_eq!(log(&bench, &session).await, cut);
    let new = runner.open("s_new".into()).await.err().unwrap();
    assert!(
        matches!(new, RunnerError::Store(StoreError::NotFound { .. })),
        "{new}"
    );
}
