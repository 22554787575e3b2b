//! Tests of the channel without a turn: what is merged, what is dropped, and who wakes up.

use super::*;
use futures_util::{FutureExt, StreamExt};
use lango_core::{
    AgentName, CallId, CallStatus, Event, Outcome, SessionId, Timestamp, Trust, TurnId, Usage,
};

fn draft(text: &str) -> TurnUpdate {
    draft_of("operator", text)
}

fn draft_of(author: &str, text: &str) -> TurnUpdate {
    TurnUpdate::Draft {
        frame: FrameId::root(),
        author: AgentName::from(author),
        text: text.to_owned(),
    }
}

fn retrying(agent: &str, reason: &str) -> TurnUpdate {
    TurnUpdate::Retrying {
        agent: AgentName::from(agent),
        reason: reason.to_owned(),
    }
}

fn stored(seq: u64, body: EventBody) -> TurnUpdate {
    let event = Event {
        seq,
        session: SessionId::from("s_1"),
        turn: TurnId::from("t_1"),
        frame: FrameId::root(),
        author: AgentName::user(),
        time: Timestamp(0),
        body,
    };
    TurnUpdate::Stored(vec![event].into())
}

fn called(seq: u64) -> TurnUpdate {
    stored(seq, EventBody::RemoteCalled { task: "go".into() })
}

fn ended(seq: u64) -> TurnUpdate {
    let body = EventBody::TurnFinished {
        outcome: Outcome::Cancelled,
        answer: None,
        usage: Usage::default(),
        cost_micros: None,
        model_calls: 1,
        tool_calls: 0,
        rounds: 0,
    };
    stored(seq, body)
}

fn started(frame: &str) -> TurnUpdate {
    TurnUpdate::ModelStarted {
        frame: FrameId::from(frame),
        agent: AgentName::from("operator"),
        model: "test/model".into(),
    }
}

fn progress(frame: &str, bytes: usize) -> TurnUpdate {
    let frame = FrameId::from(frame);
    TurnUpdate::ModelProgress { frame, bytes }
}

fn output(call: &str, text: &str) -> TurnUpdate {
    TurnUpdate::ToolOutput {
        call: CallId::from(call),
        text: text.to_owned(),
    }
}

fn returned(seq: u64, call: &str) -> TurnUpdate {
    let body = EventBody::ToolReturned {
        call: CallId::from(call),
        status: CallStatus::Ok,
        output: "done".into(),
        attachments: Vec::new(),
        trust: Trust::Untrusted,
    };
    stored(seq, body)
}

fn send_all(sender: &UpdateSender, updates: impl IntoIterator<Item = TurnUpdate>) {
    updates.into_iter().for_each(|update| sender.send(update));
}

fn unread(receiver: &mut UpdateReceiver) -> Vec<TurnUpdate> {
    std::iter::from_fn(|| receiver.try_recv()).collect()
}

#[test]
fn consecutive_pieces_of_a_draft_become_one_until_they_are_read() {
    let (sender, mut receiver) = turn_updates();
    send_all(&sender, [draft("The "), draft("answer "), draft("is")]);
    assert_eq!(receiver.try_recv(), Some(draft("The answer is")));
    send_all(&sender, [draft(" 4"), draft("2.")]);
    assert_eq!(unread(&mut receiver), [draft(" 42.")]);
}

#[test]
fn pieces_of_another_author_or_after_an_event_stay_apart() {
    let (sender, mut receiver) = turn_updates();
    let updates = [
        draft("a"),
        draft_of("writer", "b"),
        called(1),
        draft_of("writer", "c"),
    ];
    send_all(&sender, updates.clone());
    assert_eq!(unread(&mut receiver), updates);
}

#[test]
fn the_order_of_updates_is_preserved() {
    let (sender, mut receiver) = turn_updates();
    let updates = [
        TurnUpdate::Queued,
        called(1),
        draft("a"),
        called(2),
        retrying("operator", "busy"),
        draft("b"),
        ended(3),
    ];
    send_all(&sender, updates.clone());
    assert_eq!(unread(&mut receiver), updates);
}

#[test]
fn a_withdrawn_draft_that_was_not_read_disappears() {
    let (sender, mut receiver) = turn_updates();
    send_all(
        &sender,
        [
            called(1),
            draft("no"),
            called(2),
            draft("thing"),
            TurnUpdate::DraftWithdrawn,
            draft("yes"),
        ],
    );
    assert_eq!(unread(&mut receiver), [called(1), called(2), draft("yes")]);
}

#[test]
fn a_reader_with_a_part_of_a_draft_is_notified_once_that_it_was_withdrawn() {
    let (sender, mut receiver) = turn_updates();
    sender.send(draft("no"));
    assert_eq!(receiver.try_recv(), Some(draft("no")));
    send_all(
        &sender,
        [
            draft("thing"),
            TurnUpdate::DraftWithdrawn,
            draft("neither"),
            TurnUpdate::DraftWithdrawn,
            draft("yes"),
        ],
    );
    assert_eq!(
        unread(&mut receiver),
        [TurnUpdate::DraftWithdrawn, draft("yes")]
    );
}

#[test]
fn an_answer_is_not_withdrawn_by_the_next_turn() {
    let (sender, mut receiver) = turn_updates();
    send_all(&sender, [draft("42"), ended(1)]);
    send_all(&sender, [draft("no"), TurnUpdate::DraftWithdrawn]);
    assert_eq!(unread(&mut receiver), [draft("42"), ended(1)]);
    send_all(&sender, [draft("no"), TurnUpdate::DraftWithdrawn]);
    assert_eq!(unread(&mut receiver), []);
}

#[test]
fn an_unread_retry_is_replaced_by_the_next_one_of_the_same_agent() {
    let (sender, mut receiver) = turn_updates();
    send_all(
        &sender,
        [
            retrying("a", "first"),
            retrying("b", "first"),
            retrying("a", "second"),
            called(1),
            retrying("a", "third"),
        ],
    );
    assert_eq!(
        unread(&mut receiver),
        [
            retrying("a", "second"),
            retrying("b", "first"),
            called(1),
            retrying("a", "third")
        ]
    );
}

#[tokio::test]
async fn a_long_stream_that_nobody_reads_neither_blocks_nor_grows_the_queue() {
    let (sender, mut receiver) = turn_updates();
    for _ in 0..100_000 {
        sender.send(draft("word "));
    }
    assert_eq!(sender.channel.lock().unread.len(), 1);
    let Some(TurnUpdate::Draft { text, .. }) = receiver.recv().await else {
        panic!("the draft is there");
    };
    assert_eq!(text.len(), 500_000);
}

#[tokio::test]
async fn a_waiting_reader_gets_each_update_and_none_at_the_end() {
    let (sender, mut receiver) = turn_updates();
    let reading = async {
        let mut updates = Vec::new();
        while let Some(update) = receiver.recv().await {
            updates.push(update);
        }
        updates
    };
    let sending = async {
        for seq in 1..=3 {
            sender.send(called(seq));
            tokio::task::yield_now().await;
        }
        drop(sender);
    };
    let (updates, ()) = tokio::join!(reading, sending);
    assert_eq!(updates, [called(1), called(2), called(3)]);
}

#[tokio::test]
async fn unread_updates_survive_the_end_of_the_sender() {
    let (sender, receiver) = turn_updates();
    send_all(&sender, [called(1), draft("42")]);
    drop(sender);
    let updates: Vec<TurnUpdate> = receiver.collect().await;
    assert_eq!(updates, [called(1), draft("42")]);
}

#[test]
fn without_a_receiver_nothing_is_queued() {
    let (sender, receiver) = turn_updates();
    sender.send(draft("a"));
    drop(receiver);
    sender.send(called(1));
    assert!(sender.channel.lock().unread.is_empty());
}

#[tokio::test]
async fn the_backlog_is_empty_when_everything_was_taken_or_the_receiver_is_gone() {
    let (sender, mut receiver) = turn_updates();
    let backlog = sender.backlog();
    backlog.emptied().await;
    send_all(&sender, [called(1), called(2)]);
    let mut emptied = Box::pin(backlog.emptied());
    assert!(emptied.as_mut().now_or_never().is_none());
    receiver.try_recv();
    assert!(emptied.as_mut().now_or_never().is_none());
    receiver.try_recv();
    emptied.await;
    sender.send(called(3));
    let waiting = backlog.emptied();
    drop(receiver);
    waiting.await;
}

#[test]
fn the_progress_of_a_model_call_adds_up_until_it_is_read() {
    let (sender, mut receiver) = turn_updates();
    send_all(&sender, [started("a"), progress("a", 1), progress("b", 7)]);
    sender.send_model_progress(&FrameId::from("a"), 2);
    assert_eq!(
        unread(&mut receiver),
        [started("a"), progress("a", 3), progress("b", 7)]
    );
    sender.send(progress("a", 4));
    assert_eq!(unread(&mut receiver), [progress("a", 4)]);
}

#[test]
fn the_output_of_a_tool_is_merged_and_only_its_end_is_kept() {
    let (sender, mut receiver) = turn_updates();
    send_all(
        &sender,
        [output("a", "1\n2"), output("b", "x"), output("a", "3\n")],
    );
    assert_eq!(
        unread(&mut receiver),
        [output("a", "1\n23\n"), output("b", "x")]
    );
    let lines: Vec<String> = (0..100).map(|line| format!("line {line}\n")).collect();
    sender.send(output("a", &lines.concat()));
    assert_eq!(unread(&mut receiver), [output("a", &lines[80..].concat())]);
    let updates = lines.iter().map(|line| output("a", line));
    send_all(&sender, updates.chain([output("a", "incomplete")]));
    let end = lines[81..].concat() + "incomplete";
    assert_eq!(unread(&mut receiver), [output("a", &end)]);
    sender.send(output("a", &"é".repeat(100_000)));
    assert_eq!(unread(&mut receiver), [output("a", &"é".repeat(4 * 1024))]);
}

#[test]
fn a_reader_knows_a_step_before_its_progress() {
    let (sender, mut receiver) = turn_updates();
    let updates = [
        called(1),
        started("a"),
        progress("a", 1),
        called(2),
        output("c", "1\n"),
    ];
    send_all(&sender, updates.clone());
    assert_eq!(unread(&mut receiver), updates);
    // Progress of a step that the reader knows is not delayed by events of other steps.
    send_all(&sender, [progress("a", 1), called(3), called(4)]);
    let next = [receiver.try_recv(), receiver.try_recv()];
    assert!(next.contains(&Some(progress("a", 1))), "{next:?}");
}

#[test]
fn unread_progress_disappears_with_the_end_of_its_step() {
    let (sender, mut receiver) = turn_updates();
    let both = [output("c", "1\n"), output("d", "1\n")];
    send_all(&sender, both.into_iter().chain([returned(1, "c")]));
    assert_eq!(
        unread(&mut receiver),
        [output("d", "1\n"), returned(1, "c")]
    );
    send_all(&sender, [progress("a", 1), started("a"), progress("a", 2)]);
    assert_eq!(unread(&mut receiver), [started("a"), progress("a", 2)]);
    send_all(&sender, [progress("a", 1), output("d", "2\n"), ended(2)]);
    assert_eq!(unread(&mut receiver), [ended(2)]);
}

#[test]
fn a_slow_reader_gets_both_the_draft_and_the_progress() {
    let (sender, mut receiver) = turn_updates();
    let mut read = Vec::new();
    for _ in 0..6 {
        send_all(&sender, [draft("x"), progress("", 1), output("c", "y")]);
        read.extend(receiver.try_recv());
    }
    let count = |is_it: fn(&TurnUpdate) -> bool| read.iter().filter(|update| is_it(update)).count();
    assert!(
        count(|update| matches!(update, TurnUpdate::Draft { .. })) >= 2,
        "{read:?}"
    );
    assert!(
        count(|update| matches!(update, TurnUpdate::ModelProgress { .. })) >= 1,
        "{read:?}"
    );
    assert!(
        count(|update| matches!(update, TurnUpdate::ToolOutput { .. })) >= 1,
        "{read:?}"
    );
}

#[test]
fn progress_that_nobody_reads_does_not_grow_the_queue() {
    let (sender, _receiver) = turn_updates();
    let line = "a line of output\n".repeat(50);
    for seq in 1..=2_000 {
        send_all(
            &sender,
            [progress("a", 10), output("c", &line), draft("word ")],
        );
        sender.send(called(seq));
    }
    let queue = sender.channel.lock();
    assert_eq!(queue.progress.len(), 2);
    // Each event separates two pieces of the draft.
    assert_eq!(queue.unread.len(), 4_000);
}
