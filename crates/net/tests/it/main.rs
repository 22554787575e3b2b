//! The guard, its client and its proxy, over loopback.
