//! Modules that are still written for each database apart. Each goes when it has moved to the one store.

mod sessions;
