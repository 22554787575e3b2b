//! The switch for the permission mode of a running process.

use lango_core::PermissionMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The current permission mode. Clones share it, so a user interface can change the mode of a runner at any time. The
/// gate reads it for each decision and again before it runs a tool.
#[derive(Debug, Clone, Default)]
pub struct ModeSwitch {
    /// The mode's position in [`PermissionMode::ALL`].
    position: Arc<AtomicU8>,
}

impl ModeSwitch {
    pub fn new(mode: PermissionMode) -> Self {
        let switch = Self::default();
        switch.set(mode);
        switch
    }

    /// Returns the current mode.
    pub fn get(&self) -> PermissionMode {
        let position = usize::from(self.position.load(Ordering::SeqCst));
        PermissionMode::ALL
            .get(position)
            .copied()
            .unwrap_or_default()
    }

    /// Sets the mode, from the next decision on. A tool that runs already is not stopped.
    pub fn set(&self, mode: PermissionMode) {
        self.position.store(mode as u8, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_mode_and_a_new_switch_asks() {
        let switch = ModeSwitch::default();
        let clone = switch.clone();
        assert_eq!(switch.get(), PermissionMode::Ask);
        for mode in PermissionMode::ALL {
            clone.set(mode);
            assert_eq!(switch.get(), mode);
        }
    }
}
