//! Star: everyone sends to one rank, or one rank to everyone else.
//!
//! ```text
//!   hot_spot     0   1   2   3  ...        one_to_many      root
//!                 \  |  /  /                              /  |  \  \
//!                   root                                 0   1   2   3  ...
//! ```
//!
//! The port of the root is the limit. Many to one: does the network carry the rest of the traffic
//! past the queue in front of it, and do all senders get a fair share? One to many, the messages
//! leave in turn: how fast can one rank feed many, for its cost per message?
//!
//! Sources: Pfister and Norton, "Hot spot contention and combining in multistage interconnection
//! networks" (IEEE Transactions on Computers 1985); the one-to-all case of the "TT-Metalium data
//! movement tests".

use super::pattern::Pattern;

/// Registry entry of pattern/hot_spot.
pub static HOT_SPOT: Pattern = Pattern {
    name: "hot_spot",
    summary: "every rank sends to the root",
    description: "Measures the port of one rank, and whether the senders share it fairly.",
    needs: "",
    source: "Pfister and Norton, IEEE Transactions on Computers 1985",
    messages: |traffic| u64::from(traffic.shape.ranks - 1),
    build: |traffic| HOT_SPOT.each(traffic, |r| Some((r, traffic.shape.root))),
};

/// Registry entry of pattern/one_to_many.
pub static ONE_TO_MANY: Pattern = Pattern {
    name: "one_to_many",
    summary: "the root sends to every other rank in turn",
    description: "Measures how fast one rank can feed many: its port and its cost per message.",
    needs: "",
    source: "TT-Metalium data movement tests, one to all",
    messages: |traffic| u64::from(traffic.shape.ranks - 1),
    build: |traffic| ONE_TO_MANY.each(traffic, |r| Some((traffic.shape.root, r))),
};
