//! Slots for runs, and the queue for them. A conversation has at most one slot, because its turns run one after the
//! other anyway. Waiting conversations get a slot in round-robin order, so a conversation with many messages delays the
//! others by at most one run.

use lango_core::UserId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A user and the id of a conversation.
pub(super) type ConversationKey = (UserId, String);

/// How many messages of one conversation may wait.
const MAX_WAITING_PER_CONVERSATION: usize = 100;

#[derive(Debug)]
pub(super) struct Slots {
    limit: usize,
    queue_limit: usize,
    state: Mutex<State>,
}

/// The queue that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueFull {
    Server,
    Conversation,
}

#[derive(Debug, Default)]
struct State {
    /// The number of slots in use.
    used: usize,
    /// The number of waiting runs.
    waiting: usize,
    /// The conversations that have a slot or waiting runs.
    conversations: HashMap<ConversationKey, Conversation>,
    /// The conversations that wait for a slot, in the order in which they get one.
    order: VecDeque<ConversationKey>,
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct Conversation {
    has_slot: bool,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A run's claim to a slot, waiting or granted. Dropping it leaves the queue or releases the slot.
#[derive(Debug)]
pub(super) struct SlotTicket {
    slots: Arc<Slots>,
    key: ConversationKey,
    pending: Option<WaitingTask>,
}

#[derive(Debug)]
struct WaitingTask {
    ticket: u64,
    granted: oneshot::Receiver<()>,
}

impl Slots {
    pub(super) fn new(limit: usize, queue_limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            queue_limit,
            state: Mutex::default(),
        }
    }

    /// Takes a slot for a run of this conversation if one is free; otherwise joins the queue.
    pub(super) fn enter(self: &Arc<Self>, key: ConversationKey) -> Result<SlotTicket, QueueFull> {
        let mut state = self.lock();
        let State {
            used,
            waiting,
            conversations,
            order,
            next_ticket,
        } = &mut *state;
        let known = conversations.get(&key);
        let is_free = known.is_none() && *used < self.limit;
        if !is_free {
            if *waiting >= self.queue_limit {
                return Err(QueueFull::Server);
            }
            if known.is_some_and(|known| known.waiting.len() >= MAX_WAITING_PER_CONVERSATION) {
                return Err(QueueFull::Conversation);
            }
        }
        let conversation = conversations.entry(key.clone()).or_default();
        let pending = if is_free {
            *used += 1;
            conversation.has_slot = true;
            None
        } else {
            if !conversation.has_slot && conversation.waiting.is_empty() {
                order.push_back(key.clone());
            }
            let (sender, granted) = oneshot::channel();
            let ticket = *next_ticket;
            conversation.waiting.push_back((ticket, sender));
            *next_ticket += 1;
            *waiting += 1;
            Some(WaitingTask { ticket, granted })
        };
        drop(state);
        Ok(SlotTicket {
            slots: Arc::clone(self),
            key,
            pending,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Frees the slot of a conversation. Its next run goes to the end of the queue.
    fn release(&mut self, key: &ConversationKey) {
        let Some(conversation) = self.conversations.get_mut(key) else {
            return;
        };
        conversation.has_slot = false;
        self.used -= 1;
        if conversation.waiting.is_empty() {
            self.conversations.remove(key);
        } else {
            self.order.push_back(key.clone());
        }
    }

    /// Removes a run from the queue.
    fn leave(&mut self, key: &ConversationKey, ticket: u64) {
        let Some(conversation) = self.conversations.get_mut(key) else {
            return;
        };
        let before = conversation.waiting.len();
        conversation.waiting.retain(|(other, _)| *other != ticket);
        self.waiting -= before - conversation.waiting.len();
        if conversation.waiting.is_empty() && !conversation.has_slot {
            self.conversations.remove(key);
            self.order.retain(|other| other != key);
        }
    }

    /// Gives free slots to the conversations whose turn it is.
    fn grant(&mut self, limit: usize) {
        while self.used < limit
            && let Some(key) = self.order.pop_front()
        {
            let Some(conversation) = self.conversations.get_mut(&key) else {
                continue;
            };
            let Some((_, run)) = conversation.waiting.pop_front() else {
                continue;
            };
            self.waiting -= 1;
            self.used += 1;
            conversation.has_slot = true;
            // If the run is just leaving the queue, its ticket releases the slot.
            let _ = run.send(());
        }
    }
}

impl SlotTicket {
    /// Returns whether this run waits for another run of its conversation, not for a free slot.
    pub(super) fn is_behind_own_run(&self) -> bool {
        let state = self.slots.lock();
        let conversation = state.conversations.get(&self.key);
        self.pending.is_some() && conversation.is_some_and(|known| known.has_slot)
    }

    pub(super) fn is_granted(&self) -> bool {
        self.pending.is_none()
    }

    /// Waits for the slot.
    pub(super) async fn granted(&mut self) {
        if let Some(pending) = &mut self.pending {
            // The sender cannot be dropped first: the slots own it, and this ticket keeps them alive.
            let _ = (&mut pending.granted).await;
            self.pending = None;
        }
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        // The slot may have been granted a moment ago.
        let waiting = self.pending.take().and_then(|mut pending| {
            let is_granted = pending.granted.try_recv().is_ok();
            (!is_granted).then_some(pending.ticket)
        });
        match waiting {
            Some(ticket) => state.leave(&self.key, ticket),
            None => state.release(&self.key),
        }
        state.grant(self.slots.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn slots(limit: usize, queue_limit: usize) -> Arc<Slots> {
        Arc::new(Slots::new(limit, queue_limit))
    }

    fn enter(slots: &Arc<Slots>, context: &str) -> SlotTicket {
        let key = (UserId::from("u"), context.to_owned());
        slots.enter(key).unwrap()
    }

    fn has_slot(ticket: &mut SlotTicket) -> bool {
        ticket.granted().now_or_never().is_some()
    }

    #[test]
    fn conversations_get_slots_in_turn_even_if_one_has_many_messages() {
        let slots = slots(1, 100);
        let first = enter(&slots, "busy");
        let mut more: Vec<_> = (0..5).map(|_| enter(&slots, "busy")).collect();
        let mut other = enter(&slots, "other");
        assert!(more[0].is_behind_own_run() && !other.is_behind_own_run());
        drop(first);
        assert!(has_slot(&mut other) && !has_slot(&mut more[0]));
        drop(other);
        assert!(has_slot(&mut more[0]) && !has_slot(&mut more[1]));
    }

    #[test]
    fn a_conversation_has_only_one_slot_even_if_others_are_free() {
        let slots = slots(3, 100);
        let first = enter(&slots, "a");
        let mut second = enter(&slots, "a");
        assert!(!has_slot(&mut second));
        let mut other = enter(&slots, "b");
        assert!(has_slot(&mut other));
        drop(first);
        assert!(has_slot(&mut second));
    }

    #[test]
    fn a_full_queue_refuses_until_a_waiting_run_leaves() {
        let slots = slots(1, 2);
        let running = enter(&slots, "a");
        let waiting = enter(&slots, "b");
        let mut last = enter(&slots, "c");
        let key = (UserId::from("u"), "d".to_owned());
        assert_eq!(
            slots
                .enter(key.clone())
                .err()
                .map(|full| full == QueueFull::Server),
            Some(true)
        );
        drop(waiting);
        let fourth = slots.enter(key).unwrap();
        drop(running);
        assert!(has_slot(&mut last));
        drop((last, fourth));
        let state = slots.lock();
        assert_eq!((state.used, state.waiting, state.order.len()), (0, 0, 0));
        assert!(state.conversations.is_empty());
    }

    #[test]
    fn one_conversation_cannot_fill_the_queue() {
        let slots = slots(1, 10_000);
        let tickets: Vec<_> = (0..=MAX_WAITING_PER_CONVERSATION)
            .map(|_| enter(&slots, "a"))
            .collect();
        let key = (UserId::from("u"), "a".to_owned());
        assert_eq!(slots.enter(key).err(), Some(QueueFull::Conversation));
        let _other = enter(&slots, "b");
        drop(tickets);
    }

    #[test]
    fn a_slot_granted_to_a_run_that_leaves_the_queue_goes_to_the_next_run() {
        let slots = slots(1, 10);
        let running = enter(&slots, "a");
        let leaving = enter(&slots, "b");
        let mut next = enter(&slots, "c");
        drop(running);
        drop(leaving);
        assert!(has_slot(&mut next));
    }
}
