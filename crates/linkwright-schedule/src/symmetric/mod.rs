//! Symmetric programs: what every rank does, written once.
//!
//! Where all ranks do the same, a schedule over p ranks is one program seen from p places. It is
//! written for rank 0; rank r does the same in its own coordinates (see [`Group`]):
//!
//! ```text
//!                rank 0                     rank r, cyclic
//!   peer         d                          r + d
//!   chunk        b of a relative buffer     r + b          (as many blocks as ranks)
//!                b of an absolute buffer    b
//! ```
//!
//! A [`Folded`] program is that of one rank, ordered: each operation represents p operations, one per
//! rank, and an edge says "operation k of the rank at offset d". Finding hazards ([`order`](self)) takes
//! p times less work than for all ranks, with the same result. [`Program::expand`] unfolds it to the
//! algorithm's schedule, the same that all ranks together would have written through [`crate::Builder`]:
//!
//! ```text
//!   schedule   t7  put 3 -> 4   after t3, of rank 2        p operations per line of the program
//!   folded     k1  put   -> +1  after k0 of -1             1
//!   twins      t3  put 1 -> 0   after t0, of rank 0        2
//! ```
//!
//! A folded program takes the memory of one rank, so a ring over a million ranks fits; the times of its
//! [twins](Folded::twins) are those of all ranks where nothing tells them apart
//! (`linkwright-sim/src/symmetric.rs`). It is proved as what it unfolds to.
//!
//! Whatever makes ranks differ cannot be folded: roots, grids, orders of rings, and ranks beyond a
//! power of two.

mod cells;
mod expand;
mod folded;
mod group;
mod order;
mod program;
mod step;

pub use folded::Folded;
pub use group::Group;
pub use program::Program;
