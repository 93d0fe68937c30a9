//! The torus network against times derived by hand.

mod common;
mod data_movement;
mod flits;
mod load;
mod multicast;
mod oracle;
mod sharing;
mod stress;
mod timing;
