//! Agents elsewhere, as sub-agents here.
