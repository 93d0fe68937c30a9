//! Discrete-event simulation of schedules on modelled machines.

pub mod fabric;
pub mod fabrics;
