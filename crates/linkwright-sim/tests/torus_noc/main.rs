//! The torus network against times derived by hand.

mod common;
mod data_movement;
mod flits;
mod multicast;
mod sharing;
mod stress;
mod timing;
