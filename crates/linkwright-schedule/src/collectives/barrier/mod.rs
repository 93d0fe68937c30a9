//! Barrier: no one leaves before everyone has entered.
//!
//! Nothing but tokens travels: chunks without bytes, one per rank. Whoever has everyone's token
//! may leave, so a barrier is an allgather of tokens and is checked as one.

pub mod dissemination;
pub mod linear;
