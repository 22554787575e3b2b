//! An agent here, for clients elsewhere.
