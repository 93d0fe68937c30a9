//! Symmetric programs: what every rank does, written once.
//!
//! Where no rank is special, a schedule over p ranks is one program seen from p places. Rank 0 writes
//! it; rank r does the same in its own coordinates (see [`Group`]):
//!
//! ```text
//!                rank 0                     rank r, cyclic
//!   peer         d                          r + d
//!   chunk        b of a relative buffer     r + b          (as many blocks as ranks)
//!                b of an absolute buffer    b
//! ```
//!
//! A [`Folded`] program is that one rank's, ordered: an operation of it stands for p operations, one per
//! rank, and an edge says "operation k of the rank d from mine". Hazards are found ([`order`](self)),
//! everything is proved ([`Folded::verify`]) and time passes (`linkwright-sim/src/walk`) in p times less
//! work than for all ranks, with the same result. [`Program::expand`] unfolds it to the algorithm's
//! schedule, which is the one that all ranks together would have written through [`crate::Builder`]:
//!
//! ```text
//!   schedule   t7  put 3 -> 4   after t3, of rank 2        p operations per line of the program
//!   folded     k1  put   -> +1  after k0 of -1             1
//! ```
//!
//! A folded program takes the memory of one rank, so a ring over a million ranks fits; walked for all
//! ranks it need not be stored either, for the program says at once what each of them does.
//!
//! What ranks do not share cannot be folded: roots, grids, orders of rings, surplus ranks beyond a
//! power of two.

mod cells;
mod expand;
mod folded;
mod group;
mod order;
mod program;
mod step;
mod verify;

pub use folded::{Folded, Wait};
pub use group::Group;
pub use program::Program;
