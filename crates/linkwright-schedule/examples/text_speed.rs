//! Prints how fast schedules are printed and read.
//!
//! `cargo run --release -p linkwright-schedule --example text_speed`

use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::find;
use linkwright_schedule::text::{parse, print};
use std::time::Instant;

fn main() {
    for (key, ranks) in [
        ("allreduce/ring", 1024),
        ("allreduce/swing_bandwidth", 1024),
    ] {
        let build = find(key).expect("registered").build;
        let schedule = build(&Shape::new(ranks, 1 << 20)).expect("the shape suits");
        let start = Instant::now();
        let text = print(&schedule);
        let printed = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let back = parse(&text).expect("what is printed is read");
        let read = start.elapsed().as_secs_f64();
        assert!(back == schedule);
        let megabytes = text.len() as f64 / 1e6;
        println!(
            "{key} p={ranks}: {megabytes:.1} MB, printed at {:.0} MB/s, read at {:.0} MB/s",
            megabytes / printed,
            megabytes / read
        );
    }
}
