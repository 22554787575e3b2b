//! Secrets through the proxy: how a program uses them, and how a hostile one tries to steal a value.

mod attacks;
mod exchanges;
mod setup;
