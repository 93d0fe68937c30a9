//! Ping-pong: two ranks return one message to each other, `count` times.
//!
//! ```text
//!   i: ping --> i + p/2: pong --> i: ping --> ...
//! ```
//!
//! Half of the time per round trip is what one message takes when nothing overlaps. The message
//! lies in one chunk at either side, so each return waits for what it returns: the order follows
//! from the data. With more than two ranks every pair plays at once, which gives the latency
//! under load. In both directions, each pair has a second ball, served by the other side.
//!
//! Source: Hockney, "Performance parameters and benchmarking of supercomputers" (Parallel
//! Computing 1991).

use super::pattern::Pattern;
use super::traffic::Traffic;
use crate::builder::Builder;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "ping_pong",
    summary: "pairs return one message to each other: measures latency",
    description: "Half of the round-trip time is the latency of one message. With more than two \
                 ranks, every pair plays at once: latency under load.",
    needs: "",
    source: "Hockney, Parallel Computing 1991",
    messages: |traffic| u64::from(traffic.shape.ranks / 2) * 2,
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    PATTERN.check(traffic)?;
    let half = traffic.shape.ranks / 2;
    let balls = 1 + u32::from(traffic.both_ways);
    let mut b = Builder::new(Collective::Pattern, &traffic.shape);
    let ball = b.buffer(Buffer {
        mul: balls,
        ..Buffer::vector("output", balls)
    });
    for hop in 0..2 * traffic.count {
        b.step();
        for low in 0..half {
            for (i, served_low) in (0..balls).zip([true, false]) {
                let (from, to) = match served_low == (hop % 2 == 0) {
                    true => (low, low + half),
                    false => (low + half, low),
                };
                b.put(from, ball.at(i), to, ball.at(i));
            }
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    #[test]
    fn every_message_waits_for_the_one_before() {
        let traffic = Traffic {
            count: 3,
            ..Traffic::new(Shape::new(2, 1))
        };
        let schedule = build(&traffic).unwrap();
        let ways: Vec<_> = schedule.ops().iter().map(|op| (op.from, op.to)).collect();
        assert_eq!(ways, [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1), (1, 0)]);
        for id in 1..6 {
            let after: Vec<u32> = schedule.after(id).iter().map(|edge| edge.op()).collect();
            assert_eq!(after, [id - 1]);
        }
    }

    #[test]
    fn balls_and_pairs_do_not_wait_for_each_other() {
        let traffic = Traffic {
            count: 2,
            both_ways: true,
            ..Traffic::new(Shape::new(4, 1))
        };
        let schedule = build(&traffic).unwrap();
        // Four balls, four hops each: three waits per ball.
        assert_eq!((schedule.ops().len(), schedule.edge_count()), (16, 12));
    }
}
