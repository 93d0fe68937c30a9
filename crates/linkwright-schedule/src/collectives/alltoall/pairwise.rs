//! Pairwise alltoall: one partner after the other.
//!
//! ```text
//!   p a power of two    step s = 1 .. p-1:   r and r XOR s exchange
//!   else                                     r sends to r+s and receives from r-s
//! ```
//!
//! In every step each rank sends one message and receives one, so no port is fought for. A rank
//! begins a step when its message of the step before has arrived (a fence); that is all that
//! tells it from the linear one.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::{Builder, Shape};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "pairwise",
    summary: "everyone exchanges with one rank after the other",
    description: "One message per rank at a time, so ports are not fought for; the choice for \
                  large blocks.",
    cost: "p-1 rounds, S (p-1)/p bytes per rank",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let everyone: Vec<u32> = (0..p).collect();
    let mut b = Builder::new(Collective::Alltoall, shape);
    let input = b.buffer(Buffer::vector("input", p));
    let output = b.buffer(Buffer::vector("output", p));
    b.step();
    for r in 0..p {
        b.local(r, input.at(r), output.at(r));
    }
    for s in 1..p {
        for r in 0..p {
            let to = match p.is_power_of_two() {
                true => r ^ s,
                false => (r + s) % p,
            };
            b.put(r, input.at(to), to, output.at(r));
        }
        if s + 1 < p {
            b.fences(&everyone);
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn one_message_at_a_time() {
        for p in [32, 33] {
            let schedule = build(&Shape::new(p, 10 * p as u64)).unwrap();
            let bytes = 40 * (p as u64 - 1);
            assert_eq!(rounds(&schedule), p as usize - 1);
            assert_eq!(bytes_sent(&schedule), (bytes, bytes));
            assert_eq!(notices(&schedule), 0);
        }
    }
}
