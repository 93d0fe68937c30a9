//! Prints how fast schedules are built and simulated on a plain LogGP machine.
//!
//! `cargo run --release -p linkwright-sim --example messages_per_second`

use linkwright_core::machine::{Completion, Path};
use linkwright_core::{BytesPerSec, TimePs};
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::find;
use linkwright_schedule::transforms::unfuse;
use linkwright_sim::fabrics::loggp::{LogGp, Parameters};
use linkwright_sim::{simulate, Run};
use std::time::Instant;

fn main() {
    let parameters = Parameters {
        latency: TimePs::from_ns(1000),
        gap: TimePs::from_ns(100),
        bandwidth: BytesPerSec(12.5e9),
    };
    let path = Path {
        start: TimePs::from_ns(200),
        receive: TimePs::from_ns(200),
        notice_start: TimePs::from_ns(200),
        completion: Completion::SourceFree,
        fused_combine: true,
        ..Path::default()
    };
    for (key, ranks, lower) in [
        ("allreduce/ring", 64, false),
        ("allreduce/ring", 1024, false),
        ("allreduce/ring", 1024, true),
        ("allreduce/recursive_doubling_latency", 4096, false),
    ] {
        let start = Instant::now();
        let shape = Shape::new(ranks, 1 << 20);
        let schedule = (find(key).expect("registered").build)(&shape).expect("the shape suits");
        // As for a path that cannot combine on arrival: a copy into scratch and a local combination.
        let schedule = match lower {
            true => unfuse(&schedule).expect("no waits beside the hazards"),
            false => schedule,
        };
        let build = start.elapsed();
        let mut fabric = LogGp::new(parameters, ranks as usize);
        let run = Run::new(schedule.ranks, path.clone());
        let start = Instant::now();
        let result = simulate(&schedule, &mut fabric, &run).expect("it runs");
        let seconds = start.elapsed().as_secs_f64();
        let messages = result.totals.transfers + result.totals.notices;
        println!(
            "{key} p={ranks}{}: built in {:.3} s; {messages} messages, {} operations simulated in \
             {seconds:.3} s: {:.2} million messages/s; simulated time {:.3} us",
            if lower { " lowered" } else { "" },
            build.as_secs_f64(),
            schedule.ops().len(),
            messages as f64 / seconds / 1e6,
            result.makespan.as_us(),
        );
    }
}
