//! The torus network against times derived by hand.

mod common;
mod stress;
mod timing;
