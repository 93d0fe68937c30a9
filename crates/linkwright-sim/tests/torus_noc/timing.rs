//! One packet, two packets on one link, rings, and times that do not depend on distance.

use super::common::*;
use linkwright_core::TimePs;
use linkwright_sim::fabric::{Conditions, Event, Fabric, Msg, MsgKind, Wanted};
use linkwright_sim::fabrics::torus_noc::*;

/// Rank at logical column `lx`, row `ly`.
fn rank(lx: u32, ly: u32) -> u32 {
    8 * ly + lx
}

#[test]
fn one_write() {
    // (1,1) to (2,2) on the south-east network: 1 + 1 hops. 4096 B: 1 + 128 flits.
    // delivered = 5 + 2*9 + 5 + 129 = 157.  The tail leaves the interface at 129.
    // The acknowledgement goes on around: 9 + 11 = 20 hops, 5 + 20*9 + 5 + 1 = 191 later.
    let mut noc = TorusNoc::new(grid());
    let message = put(7, rank(0, 0), rank(1, 1), 4096);
    let done = run(&mut noc, &[message]);
    assert_eq!(at(&done, 7, Event::SourceFree), 129.0);
    assert_eq!(at(&done, 7, Event::Delivered), 157.0);
    assert_eq!(at(&done, 7, Event::Acknowledged), 348.0);
    assert_eq!(noc.quiet(&message).0, 157 * CYCLE);
}

#[test]
fn one_read_and_one_notice() {
    // Read on network 0 by (1,1) from (2,2): request 1 flit over 2 hops: 5 + 18 + 5 + 1 = 29;
    // data 129 flits over 20 hops: 5 + 180 + 5 + 129 = 319.
    let mut noc = TorusNoc::new(grid());
    let read = Msg {
        kind: MsgKind::Get,
        ..put(0, rank(1, 1), rank(0, 0), 4096)
    };
    let done = run(&mut noc, &[read]);
    assert_eq!(at(&done, 0, Event::SourceFree), 29.0 + 129.0);
    assert_eq!(at(&done, 0, Event::Acknowledged), 348.0);
    assert_eq!(noc.quiet(&read).0, 348 * CYCLE);
    // A notice: 29 + 5 at the bank, then 5 + 180 + 5 + 1 back.
    let mut noc = TorusNoc::new(grid());
    let notice = Msg {
        kind: MsgKind::Notice,
        ..put(0, rank(0, 0), rank(1, 1), 0)
    };
    let done = run(&mut noc, &[notice]);
    assert_eq!(at(&done, 0, Event::Delivered), 34.0);
    assert_eq!(at(&done, 0, Event::Acknowledged), 34.0 + 191.0);
}

#[test]
fn a_message_without_wanted_acknowledgement_is_posted() {
    // The write and the notice above, delivered when they were, and nothing after them: the links of the tile (2,2)
    // into the network stay idle. One whose acknowledgement is awaited has it, here as well.
    let posted = TorusNocConfig {
        posted: true,
        ..grid()
    };
    let write = put(0, rank(0, 0), rank(1, 1), 4096);
    let notice = Msg {
        kind: MsgKind::Notice,
        ..put(0, rank(0, 0), rank(1, 1), 0)
    };
    let instant = TorusNocConfig {
        atomic: TimePs::ZERO,
        ..posted.clone()
    };
    let cases = [
        (&posted, write, 157.0),
        (&posted, notice, 34.0),
        (&instant, notice, 29.0),
    ];
    for (config, message, delivered) in cases {
        let mut noc = TorusNoc::new(config.clone());
        let done = run(&mut noc, &[message]);
        assert_eq!(at(&done, 0, Event::Acknowledged), delivered + 191.0);
        noc.reset(&Conditions::default());
        let wanted = Wanted::DELIVERY;
        let done = run(&mut noc, &[Msg { wanted, ..message }]);
        assert_eq!(at(&done, 0, Event::Delivered), delivered);
        assert_eq!(done.len(), 1);
        assert!(noc.at_rest());
        let table = noc.links();
        let back = table.names.iter().position(|n| n == "NoC 0 (2,2) inject");
        assert_eq!(table.busy_ps[back.unwrap()], 0);
    }
}

#[test]
fn round_trip_does_not_depend_on_distance() {
    // Request and response together go once round both rings: 22 hops to every target that
    // differs in x and in y, on either network.
    for network in 0..2 {
        for target in 0..64u32 {
            if target % 8 == 3 || target / 8 == 3 {
                continue;
            }
            let mut noc = TorusNoc::new(grid());
            let done = run(
                &mut noc,
                &[Msg {
                    network,
                    ..put(0, rank(3, 3), target, 1024)
                }],
            );
            assert_eq!(last(&done), (2 * (5 + 5) + 22 * 9 + 33 + 1) as f64);
        }
    }
}

#[test]
fn two_writes_over_one_link() {
    // (1,1) -> (4,1) and (2,1) -> (4,1): both need (2,1) east and (3,1) east. 129 flits each.
    // B holds (2,1) east from 5 on. A is at router (2,1) at 5 + 9 = 14.
    // Same channel: A waits until the tail of B has passed at 5 + 129 = 134, then goes on:
    //   delivered 134 + 2*9 + 5 + 129 = 286.   B: 5 + 2*9 + 5 + 129 = 157.
    let pair = [
        put(0, rank(0, 0), rank(3, 0), 4096),
        put(1, rank(1, 0), rank(3, 0), 4096),
    ];
    let mut noc = TorusNoc::new(grid());
    let done = run(&mut noc, &pair);
    assert_eq!(at(&done, 1, Event::Delivered), 157.0);
    assert_eq!(at(&done, 0, Event::Delivered), 286.0);
}

#[test]
fn a_router_puts_a_packet_on_the_buddy_of_a_taken_channel() {
    // The two writes above, free to change channels, first choose the same one. At router (2,1), at 14, A takes the
    // buddy, when 9 flits of B have passed. Then turn about: B needs 2 * 120 more = 254; A has 9 left = 263.
    // Two hops and the interface later: 254 + 2*9 + 5 = 277 and 263 + 2*9 + 5 = 286.
    let pair = [
        put(0, rank(0, 0), rank(3, 0), 4096),
        put(1, rank(1, 0), rank(3, 0), 4096),
    ];
    for (buddy_each_hop, first) in [(true, 277.0), (false, 157.0)] {
        let mut noc = TorusNoc::new(TorusNocConfig {
            channels: ChannelChoice::Dynamic,
            buddy_each_hop,
            ..grid()
        });
        let done = run(&mut noc, &pair);
        assert_eq!(at(&done, 1, Event::Delivered), first);
        assert_eq!(at(&done, 0, Event::Delivered), 286.0);
    }
}

#[test]
fn a_partial_write_delays_its_own_channel() {
    // Two writes of 64 B, 3 flits each, to the memory. The first begins at t and is in at t + 3. The second begins at
    // t + 62 over the same channel, at t + 20 over another one, and takes 2 cycles: 61 or 19 after the first.
    for (channels, apart) in [
        (ChannelChoice::Static, 61.0),
        (ChannelChoice::Dynamic, 19.0),
    ] {
        let config = grid();
        let dram = config.dram.map(|dram| Dram {
            least: TimePs(20 * CYCLE),
            partial_below: 128,
            partial_write: TimePs(62 * CYCLE),
            ..dram
        });
        let mut noc = TorusNoc::new(TorusNocConfig {
            channels,
            dram,
            ..config
        });
        let done = run(&mut noc, &[put(0, 0, 64, 64), put(1, 0, 64, 64)]);
        let [first, second] = [0, 1].map(|op| at(&done, op, Event::Delivered));
        assert_eq!(second - first, apart);
    }
}

#[test]
fn a_ring_of_neighbours_runs_without_waiting() {
    // Every tile writes to the next enabled column, all at once: no link is shared.
    let messages: Vec<Msg> = (0..64)
        .map(|r| put(r, r, rank((r + 1) % 8, r / 8), 8192))
        .collect();
    let mut noc = TorusNoc::new(grid());
    let done = run(&mut noc, &messages);
    for message in &messages {
        let alone = noc.quiet(message).0 as f64 / CYCLE as f64;
        assert_eq!(at(&done, message.op, Event::Delivered), alone);
    }
}

#[test]
fn a_stream_of_packets_runs_at_link_rate() {
    // 16 packets of 257 flits: 5 + 2*9 + 5 + 16*257 with an ideal interface.
    let mut noc = TorusNoc::new(grid());
    let done = run(&mut noc, &[put(0, rank(0, 0), rank(1, 1), 16 * 8192)]);
    assert_eq!(at(&done, 0, Event::Delivered), (28 + 16 * 257) as f64);
    // Shorter packets too: 64 runs of 200 B, 8 flits each.
    let mut noc = TorusNoc::new(grid());
    let done = run(
        &mut noc,
        &[Msg {
            runs: 64,
            ..put(0, rank(0, 0), rank(1, 1), 64 * 200)
        }],
    );
    assert_eq!(at(&done, 0, Event::Delivered), (28 + 64 * 8) as f64);
}

#[test]
fn quiet_time_is_the_time_of_a_message_alone() {
    let mut config = grid();
    let stream = |issue: u64, flit| Stream {
        issue: TimePs(issue * CYCLE),
        flit: TimePs(flit),
    };
    config.write = stream(22, 1021);
    config.read = stream(19, 1104);
    for op in 0..200u32 {
        let kind = [MsgKind::Put, MsgKind::Get, MsgKind::Notice][op as usize % 3];
        let bytes = if kind == MsgKind::Notice {
            0
        } else {
            37 * op as u64 * op as u64
        };
        let mut message = put(op, op % 64, (op * 29 + 11) % 64, bytes);
        message.kind = kind;
        message.runs = if kind == MsgKind::Put { 1 + op % 5 } else { 1 };
        message.network = (op % 2) as u8;
        if message.from == message.to {
            continue;
        }
        let mut noc = TorusNoc::new(config.clone());
        let done = run(&mut noc, &[message]);
        let delivered = at(&done, op, Event::Delivered);
        assert_eq!(
            delivered,
            noc.quiet(&message).0 as f64 / CYCLE as f64,
            "{message:?}"
        );
    }
}
