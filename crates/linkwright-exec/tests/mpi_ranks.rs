//! The MPI executor on a tiny MPI of threads: every algorithm leaves what the reference leaves.
//!
//! The executor calls functions by address, so a library of thirty lines can stand behind them: ranks are
//! threads, a message is a copy in a mailbox, and a send ends only when its message was taken, as a
//! rendezvous does. So a walk that waits for a send before its receiver can have posted gets stuck
//! here, and the mailboxes notice.

#![cfg(not(loom))]

use linkwright_core::Issue;
use linkwright_exec::buffers::Data;
use linkwright_exec::dtype::DType;
use linkwright_exec::mpi::library::{Functions, Group, Handles, Library};
use linkwright_exec::mpi::Mpi;
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::REGISTRY;
use linkwright_schedule::ir::Buffer;
use linkwright_schedule::patterns::Traffic;
use linkwright_schedule::{Collective, Schedule};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// (source, destination, tag) -> messages that were sent and not yet taken.
type Key = (u32, u32, c_int);

#[derive(Default)]
struct Post {
    boxes: HashMap<Key, VecDeque<(u64, Vec<u8>)>>,
    next: u64,
    taken: Vec<u64>,
}

#[derive(Default)]
struct Network {
    post: Mutex<Post>,
    moved: Condvar,
}

enum Request {
    Send(u64),
    Receive {
        key: Key,
        address: *mut u8,
        bytes: usize,
    },
}

thread_local! {
    static NETWORK: RefCell<Option<Arc<Network>>> = const { RefCell::new(None) };
    static RANK: Cell<u32> = const { Cell::new(0) };
    static REQUESTS: RefCell<Vec<Option<Request>>> = const { RefCell::new(Vec::new()) };
    /// Sends that this rank has begun and not seen to be complete, and the most there ever were.
    static UNDER_WAY: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

fn network() -> Arc<Network> {
    NETWORK.with_borrow(|n| n.clone().expect("a rank of the test"))
}

fn begin(request: Request) -> u64 {
    REQUESTS.with_borrow_mut(|all| {
        all.push(Some(request));
        all.len() as u64 - 1
    })
}

unsafe extern "C" fn isend(
    from: *const u8,
    bytes: c_int,
    _: usize,
    to: c_int,
    tag: c_int,
    _: usize,
    request: *mut u64,
) -> c_int {
    let network = network();
    let mut post = network.post.lock().unwrap();
    let number = post.next;
    post.next += 1;
    // SAFETY: the executor vouches for the bytes.
    let copy = unsafe { std::slice::from_raw_parts(from, bytes as usize) }.to_vec();
    let key = (RANK.get(), to as u32, tag);
    let [sends, most] = UNDER_WAY.get();
    UNDER_WAY.set([sends + 1, most.max(sends + 1)]);
    post.boxes.entry(key).or_default().push_back((number, copy));
    network.moved.notify_all();
    // SAFETY: the executor gives a cell for the request.
    unsafe { *request = begin(Request::Send(number)) };
    0
}

unsafe extern "C" fn irecv(
    to: *mut u8,
    bytes: c_int,
    _: usize,
    from: c_int,
    tag: c_int,
    _: usize,
    request: *mut u64,
) -> c_int {
    let receive = Request::Receive {
        key: (from as u32, RANK.get(), tag),
        address: to,
        bytes: bytes as usize,
    };
    // SAFETY: as above.
    unsafe { *request = begin(receive) };
    0
}

/// Takes what has arrived for any receive that was begun, as the progress engine of a library does.
fn progress(post: &mut Post) -> bool {
    let mut moved = false;
    REQUESTS.with_borrow_mut(|all| {
        for slot in all.iter_mut() {
            let Some(Request::Receive {
                key,
                address,
                bytes,
            }) = slot
            else {
                continue;
            };
            if let Some((number, data)) = post.boxes.get_mut(key).and_then(VecDeque::pop_front) {
                assert_eq!(
                    data.len(),
                    *bytes,
                    "both ends agree on the length of {key:?}"
                );
                // SAFETY: the executor vouches for the place until the request has ended.
                unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), *address, *bytes) };
                post.taken.push(number);
                *slot = None;
                moved = true;
            }
        }
    });
    moved
}

/// Whether a request has ended; the first time that it is seen, it is forgotten.
fn ended(index: usize, post: &Post) -> bool {
    REQUESTS.with_borrow_mut(|all| match &all[index] {
        None => true,
        Some(Request::Send(number)) if post.taken.contains(number) => {
            let [sends, most] = UNDER_WAY.get();
            UNDER_WAY.set([sends - 1, most]);
            all[index] = None;
            true
        }
        Some(_) => false,
    })
}

unsafe extern "C" fn wait(request: *mut u64, _: *mut u64) -> c_int {
    // SAFETY: a cell that `isend` or `irecv` filled.
    let index = unsafe { *request } as usize;
    let network = network();
    let mut post = network.post.lock().unwrap();
    loop {
        if progress(&mut post) {
            network.moved.notify_all();
        }
        if ended(index, &post) {
            return 0;
        }
        let (locked, waited) = network
            .moved
            .wait_timeout(post, Duration::from_secs(20))
            .unwrap();
        assert!(!waited.timed_out(), "rank {} is stuck", RANK.get());
        post = locked;
    }
}

unsafe extern "C" fn test(request: *mut u64, flag: *mut c_int, _: *mut u64) -> c_int {
    // SAFETY: as above.
    let index = unsafe { *request } as usize;
    let network = network();
    let mut post = network.post.lock().unwrap();
    if progress(&mut post) {
        network.moved.notify_all();
    }
    // SAFETY: the executor gives room for it.
    unsafe { *flag = ended(index, &post).into() };
    0
}

fn library() -> Library {
    let never = isend as *const () as usize; // functions of the measurement, which is not tested here
    let mut addresses: BTreeMap<String, usize> = Functions::NAMES
        .iter()
        .map(|&name| (name.to_owned(), never))
        .collect();
    addresses.insert("Isend".to_owned(), isend as *const () as usize);
    addresses.insert("Irecv".to_owned(), irecv as *const () as usize);
    addresses.insert("Wait".to_owned(), wait as *const () as usize);
    addresses.insert("Test".to_owned(), test as *const () as usize);
    Library {
        // SAFETY: those that are called have the right types.
        functions: unsafe { Functions::from_addresses(&addresses) }.unwrap(),
        handles: Handles {
            byte: 0,
            double: 0,
            max: 0,
            in_place: 1,
            tag_limit: 32_767,
            dtypes: [None; 6],
            ops: [0; 4],
        },
    }
}

/// Runs `schedule` on as many threads as it has ranks; the bytes that agreed with the reference.
fn agree(schedule: &Schedule, data: Data, part_bytes: usize, what: &str) -> u64 {
    issued(schedule, data, part_bytes, Issue::Unlimited, what).0
}

/// The same under an issue policy, and the most sends that a rank had under way.
fn issued(
    schedule: &Schedule,
    data: Data,
    part_bytes: usize,
    issue: Issue,
    what: &str,
) -> (u64, usize) {
    let shared = Arc::new(Network::default());
    let compare = |rank: u32| {
        NETWORK.set(Some(Arc::clone(&shared)));
        RANK.set(rank);
        REQUESTS.set(Vec::new());
        UNDER_WAY.set([0; 2]);
        let group = Group {
            data: 0,
            control: 0,
            rank,
            size: schedule.ranks,
        };
        let mpi = Mpi::new(library(), group, true)
            .with_part_bytes(part_bytes)
            .with_issue(issue);
        let compared = mpi.compare_with_reference(schedule, data);
        let compared = compared.unwrap_or_else(|error| panic!("{what}: {error}"));
        (compared, UNDER_WAY.get()[1])
    };
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..schedule.ranks)
            .map(|rank| scope.spawn(move || compare(rank)))
            .collect();
        let found = ranks.into_iter().map(|rank| rank.join().unwrap());
        found.fold((0, 0), |all, one| (all.0 + one.0, all.1.max(one.1)))
    })
}

const DATA: Data = Data::sums(DType::I32, 7);

#[test]
fn every_algorithm_agrees_with_the_reference() {
    for algorithm in REGISTRY {
        for ranks in [1, 2, 4, 7] {
            for elements in [3, 56] {
                let shape = Shape::new(ranks, elements).with_root(ranks / 2);
                if let Ok(schedule) = (algorithm.build)(&shape) {
                    let what = format!("{} p={ranks} n={elements}", algorithm.key());
                    agree(&schedule, DATA, 1 << 30, &what);
                }
            }
        }
    }
}

#[test]
fn the_messages_of_every_pattern_are_compared() {
    for pattern in linkwright_schedule::patterns::REGISTRY {
        let traffic = Traffic {
            both_ways: true,
            ..Traffic::new(Shape::new(6, 5))
        };
        let schedule = (pattern.build)(&traffic).unwrap();
        assert!(
            agree(&schedule, DATA, 1 << 30, pattern.name) > 0,
            "{}",
            pattern.name
        );
    }
}

const POLICIES: [Issue; 5] = [
    Issue::Blocking,
    Issue::Window(1),
    Issue::Window(3),
    Issue::Batch(2),
    Issue::Batch(100),
];

/// A send of this library ends only when it was received, so a policy that waits too early gets stuck here.
#[test]
fn no_algorithm_gets_stuck_under_any_issue_policy() {
    for algorithm in REGISTRY {
        let shape = Shape::new(4, 56).with_root(2);
        let Ok(schedule) = (algorithm.build)(&shape) else {
            continue;
        };
        for issue in POLICIES {
            let what = format!("{} {issue}", algorithm.key());
            issued(&schedule, DATA, 1 << 30, issue, &what);
        }
    }
}

/// Each of 5 senders has 6 messages for the root: as many are under way as the policy allows, and not one more.
#[test]
fn a_policy_bounds_the_sends_under_way() {
    let hot_spot = linkwright_schedule::patterns::find("hot_spot").unwrap();
    let traffic = Traffic {
        count: 6,
        ..Traffic::new(Shape::new(6, 5))
    };
    let schedule = (hot_spot.build)(&traffic).unwrap();
    let expected = [1, 1, 3, 2, 6];
    for (issue, most) in POLICIES.into_iter().zip(expected) {
        let (compared, found) = issued(&schedule, DATA, 1 << 30, issue, "hot spot");
        assert!(compared > 0);
        assert_eq!(found, most, "{issue}");
    }
}

/// A message in parts takes one place, and is complete when all of them are.
#[test]
fn a_message_in_parts_takes_one_place() {
    let pairs = linkwright_schedule::patterns::find("pairs").unwrap();
    let traffic = Traffic {
        count: 4,
        ..Traffic::new(Shape::new(2, 100))
    };
    let schedule = (pairs.build)(&traffic).unwrap();
    // 400 bytes in parts of 100: four sends for each message.
    let (_, found) = issued(&schedule, DATA, 100, Issue::Window(2), "pairs in parts");
    assert_eq!(found, 2 * 4);
}

#[test]
fn long_messages_are_split() {
    let ring = linkwright_schedule::collectives::find("allreduce/ring").unwrap();
    let schedule = (ring.build)(&Shape::new(3, 100)).unwrap();
    assert_eq!(agree(&schedule, DATA, 12, "ring in parts"), 3 * 400);
}

/// Rank 1 hands on what rank 0 has put into rank 2: it learns of it through an acknowledgement.
#[test]
fn acknowledged_puts_and_gets_are_seen_by_third_parties() {
    let mut b = Builder::new(Collective::Pattern, &Shape::new(3, 8));
    let data = b.buffer(Buffer::vector("output", 2));
    b.step();
    b.put(0, data.at(0), 2, data.at(1));
    b.step();
    b.get(2, data.at(1), 1, data.at(0));
    b.step();
    b.put(1, data.at(0), 0, data.at(1)).reduce();
    let schedule = b.finish().unwrap();
    assert!(agree(&schedule, DATA, 1 << 30, "handed on") > 0);
}
