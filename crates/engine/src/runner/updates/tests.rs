//! Tests of the channel without a turn: what is merged, what is dropped, and who wakes up.

use super::*;
use futures_util::{FutureExt, StreamExt};
use lango_core::{AgentName, Event, FrameId, Outcome, SessionId, Timestamp, TurnId, Usage};

fn draft(text: &str) -> TurnUpdate {
    draft_of("operator", text)
}

fn draft_of(author: &str, text: &str) -> TurnUpdate {
    TurnUpdate::Draft {
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
    assert_eq!(sender.0.lock().unread.len(), 1);
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
    assert!(sender.0.lock().unread.is_empty());
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
