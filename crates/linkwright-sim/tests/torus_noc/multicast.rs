//! Multicasts over a tree with reservation.

use super::common::*;
use linkwright_core::{EndpointId, TimePs};
use linkwright_sim::fabric::{Conditions, Done, Event, Fabric, Msg, MsgKind, Wanted};
use linkwright_sim::fabrics::torus_noc::*;

/// Ranks of the rectangle of `n` by `n` whose corner is rank 0.
fn square(n: u32) -> Vec<EndpointId> {
    (0..n * n)
        .map(|i| EndpointId(8 * (i / n) + i % n))
        .collect()
}

fn multicast(op: u32, bytes: u64) -> Msg {
    Msg {
        kind: MsgKind::Multicast,
        ..put(op, 0, 0, bytes)
    }
}

fn delivered(done: &[Done], op: u32) -> Vec<(u32, u64)> {
    let events = done
        .iter()
        .filter(|d| d.op == op && d.event == Event::Delivered);
    let mut times: Vec<_> = events.map(|d| (d.target, d.at.0 / CYCLE)).collect();
    times.sort();
    times
}

#[test]
fn one_multicast() {
    // (1,1) to (1..2, 1..2), itself included, 33 flits. Reservation: once round both rings to
    // (2,2) and back, 4*5 + 22*9 + 2 = 220. Then 5 + 9h + 5 + 33 with h = 0, 1, 1, 2.
    let mut noc = TorusNoc::new(grid());
    noc.reset(&Conditions {
        sets: &[square(2)],
        ..Conditions::default()
    });
    let done = run(&mut noc, &[multicast(0, 1024)]);
    assert_eq!(
        delivered(&done, 0),
        [(0, 263), (1, 272), (2, 272), (3, 281)]
    );
    assert_eq!(at(&done, 0, Event::SourceFree), 220.0 + 33.0);
    // The last acknowledgement: (2,2) has 20 hops to go, (2,1) 9 and (1,2) 11.
    assert_eq!(at(&done, 0, Event::Acknowledged), 281.0 + 191.0);
    assert_eq!(noc.quiet(&multicast(0, 1024)).0, 281 * CYCLE);
    assert!(noc.at_rest());
    // Tree of 1 inject + 3 mesh + 4 eject links, each crossed once.
    let crossed = noc
        .links()
        .bytes
        .iter()
        .filter(|&&bytes| bytes == 1024)
        .count();
    assert_eq!(crossed, 8);
}

#[test]
fn linked_multicasts_reserve_once() {
    // Three multicasts of 33 flits to 2 x 2.
    let three: Vec<Msg> = (0..3).map(|op| multicast(op, 1024)).collect();
    // Linked: reserve once, then 3 * 33 flits in a stream; two acknowledgements of the source to
    // itself leave by the same port in between, one flit each.
    let linked = TorusNocConfig {
        multicast_linked: true,
        ..grid()
    };
    let mut noc = TorusNoc::new(linked);
    noc.reset(&Conditions {
        sets: &[square(2)],
        ..Conditions::default()
    });
    let done = run(&mut noc, &three);
    assert_eq!(delivered(&done, 2)[3], (3, 220 + 28 + 3 * 33 + 2));
    assert!(noc.at_rest());
    // Unlinked: the next reservation starts when the tail of the last has left all links, at
    // 5 + 2*9 + 33 after the start of the data.
    let mut noc = TorusNoc::new(grid());
    noc.reset(&Conditions {
        sets: &[square(2)],
        ..Conditions::default()
    });
    let done = run(&mut noc, &three);
    assert_eq!(
        delivered(&done, 2)[3],
        (3, 3 * 220 + 2 * (5 + 18 + 33) + 28 + 33)
    );
    assert!(noc.at_rest());
}

#[test]
fn linked_multicasts_give_their_tree_up_for_another() {
    // To one set, to another and to the first again: while the second waits for the tree of the first to be given up,
    // the third is next. Nothing is linked, so nothing is faster.
    let runs = [false, true].map(|multicast_linked| {
        let mut noc = TorusNoc::new(TorusNocConfig {
            multicast_linked,
            ..grid()
        });
        noc.reset(&Conditions {
            sets: &[square(2), square(3)],
            ..Conditions::default()
        });
        let there_and_back = (0..3).map(|op| Msg {
            set: op % 2,
            ..multicast(op, 1024)
        });
        run(&mut noc, &there_and_back.collect::<Vec<_>>())
    });
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn multicasts_that_cross_do_not_deadlock() {
    for (buffers, linked) in [(Some(FINITE), false), (Some(FINITE), true), (None, false)] {
        let config = TorusNocConfig {
            buffers,
            multicast_linked: linked,
            ..grid()
        };
        let mut noc = TorusNoc::new(config);
        noc.reset(&Conditions {
            sets: &[square(8), square(5), square(2)],
            ..Conditions::default()
        });
        let mut messages = Vec::new();
        for op in 0..192 {
            let set = op % 3;
            let from = EndpointId(op * 7 % 64);
            let network = (op % 2) as u8;
            messages.push(Msg {
                from,
                set,
                wanted: Wanted::ALL,
                network,
                ..multicast(op, 100 * op as u64)
            });
            messages.push(put(1000 + op, op * 5 % 64, op * 11 % 64, 5000));
        }
        let done = run(&mut noc, &messages);
        for op in 0..192 {
            assert_eq!(delivered(&done, op).len(), [64, 25, 4][op as usize % 3]);
            assert!(at(&done, op, Event::Acknowledged) > 0.0);
        }
        assert!(noc.at_rest());
    }
}

#[test]
fn multicasts_that_hold_each_others_receivers_are_named() {
    // Receivers (2,2) and (3,2), one place each, buffers of one flit. Message 1 from (3,1) comes to (3,2) at
    // 220 + 5 + 9 = 234 and 10 hops away, around the ring, to (2,2) at 315; message 0 from (1,2), offered at 110, to (2,2) at
    // 110 + 112 + 5 + 9 = 236 and to (3,2) at 245. Trees reserve links, which these do not share, and no receivers.
    let mut noc = TorusNoc::new(TorusNocConfig {
        buffers: Some(Buffers {
            guaranteed: 1,
            shared: 0,
            shared_per_channel: 0,
        }),
        receive_requests: 1,
        ..grid()
    });
    noc.reset(&Conditions {
        sets: &[vec![EndpointId(9), EndpointId(10)]],
        ..Conditions::default()
    });
    let from = |op: u32, rank: u32| Msg {
        from: EndpointId(rank),
        ..multicast(op, 8000)
    };
    let mut done = Vec::new();
    noc.offer(TimePs(0), &[from(1, 2)]);
    let later = TimePs(110 * CYCLE);
    while noc.advance(later, &mut done) < later {}
    noc.offer(later, &[from(0, 8)]);
    while noc.next().is_some() {
        noc.advance(TimePs::MAX, &mut done);
    }
    assert_eq!(noc.in_flight(), 2);
    assert_eq!(
        noc.stuck().waiting,
        [
            "circle: message 1 waits for NoC 0 (2,2) eject channel 0, which message 0 holds; message 0 waits for NoC 0 \
             (3,2) eject channel 0, which message 1 holds; multicasts reserve links, not receivers: raise `target_requests`",
            "message 1: packet at (2,2) waits for NoC 0 (2,2) eject channel 0",
            "message 0: packet at (3,2) waits for NoC 0 (3,2) eject channel 0",
        ]
    );
}

#[test]
fn posted_multicasts_end_with_their_last_delivery() {
    // As `one_multicast`, in two packets of 33 flits: the second wants the tree when the first has left the interface
    // at 253, gets it when the first has passed its last link (the tail into (2,2) at 281 - 5) and needs 220 to reserve it.
    let mut noc = TorusNoc::new(TorusNocConfig {
        posted: true,
        packet_bytes: 1024,
        ..grid()
    });
    noc.reset(&Conditions {
        sets: &[square(2)],
        ..Conditions::default()
    });
    let message = Msg {
        wanted: Wanted::DELIVERY,
        ..multicast(0, 2048)
    };
    let done = run(&mut noc, &[message]);
    let second = 276 + 220;
    let times = [43, 52, 52, 61].map(|way| second + way);
    assert_eq!(
        delivered(&done, 0),
        [0, 1, 2, 3].map(|i| (i, times[i as usize]))
    );
    assert_eq!(done.len(), 4);
    assert!(noc.at_rest());
}
