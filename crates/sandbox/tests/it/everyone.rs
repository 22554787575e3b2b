//! What holds whoever runs lango: this module runs as root and as an ordinary user.

mod attempts;
mod battery;
mod cost;
mod kept;
mod layers;
mod lifetime;
mod limits;
mod network;
mod refusals;
mod self_test;
