//! The project, looked at from outside: rules that no compiler holds.

mod source;
mod tidy;
