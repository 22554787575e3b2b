//! Remote agents: cards, calls, faults.
