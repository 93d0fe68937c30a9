//! The torus network against times derived by hand.

mod common;
mod data_movement;
#[path = "../files/mod.rs"]
mod files;
mod flits;
mod load;
mod multicast;
mod oracle;
mod sharing;
mod stress;
mod timing;
