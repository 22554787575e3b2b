//! The invariants that must hold at the end of a history.

use super::*;

impl Simulation<'_> {
    /// Checks that a cancel request has stopped a run that would never end.
    pub(super) fn check_cancelled(&self) -> Result<(), Violation> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        if self.is_cancel_requested {
            return Err(format!("a cancel is lost: {:?}", stored.state()));
        }
        Ok(())
    }

    pub(super) fn check_settled(&self) -> Result<(), Violation> {
        if let Some(caller) = self
            .callers
            .values()
            .find(|it| it.answer.is_none() && !it.is_gone)
        {
            return Err(format!("a caller is never answered: {:?}", caller.request));
        }
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        if !stored.is_settled() {
            return Err(format!("the task never settles: {:?}", stored.state()));
        }
        for caller in self.callers.values() {
            self.check_answer(stored, caller)?;
        }
        if self.slots != 0 || self.agent.lease.is_some() {
            return Err(format!(
                "{} slots or a lease are never released",
                self.slots
            ));
        }
        Ok(())
    }

    /// Checks that the stored task matches the answer that a caller got.
    fn check_answer(&self, stored: &TaskDocument, caller: &Caller) -> Result<(), Violation> {
        let Some(TaskAnswer::Snapshot { state, .. }) = &caller.answer else {
            return Ok(());
        };
        if caller.is_gone {
            return Ok(());
        }
        let Input::Request { request, .. } = &caller.request else {
            return Ok(());
        };
        match request {
            Request::Cancel
                if *state == TaskState::Canceled && *stored.state() != TaskState::Canceled =>
            {
                return Err("an acknowledged cancel is undone".to_owned());
            }
            Request::Submit { message, .. } => {
                let id = &message.message_id;
                let history = stored.task.history.as_deref().unwrap_or_default();
                let is_handled = self.agent.turn(id).is_some() || stored.state().is_terminal();
                if !history.iter().any(|it| it.message_id == *id) || !is_handled {
                    return Err(format!("an acknowledged message is lost: {id}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
