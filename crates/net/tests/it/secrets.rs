//! Secrets through the proxy: what a program gets to use, and the ways in which it tries to steal a value.

mod attacks;
mod exchanges;
mod world;
