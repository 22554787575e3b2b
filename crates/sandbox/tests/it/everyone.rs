//! Tests that hold for every user: this module runs as root and as an ordinary user.

mod attempts;
mod battery;
mod browser;
mod clean_up;
mod cost;
mod interrupted;
mod layers;
mod lifetime;
mod limits;
mod nesting;
mod network;
mod protected;
mod races;
mod refusals;
mod self_test;
