use super::*;
use crate::fabrics::crossbar::Crossbar;
use linkwright_core::machine::Path;
use linkwright_core::{BytesPerSec, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::{Buffer, Collective};

fn simulated(record: bool) -> (Schedule, Setup, Simulation) {
    let mut b = Builder::new(Collective::Pattern, &Shape::new(2, 250));
    let data = b.buffer(Buffer::vector("output", 1));
    b.step();
    b.put(0, data.at(0), 1, data.at(0));
    let schedule = b.finish().unwrap();
    let path = Path {
        start: TimePs(100_000),
        receive: TimePs(50_000),
        ..Path::default()
    };
    let mut setup = Setup::new(2, path);
    setup.record_operations = record;
    setup.watch.bins = 2;
    let mut fabric = Crossbar::new(TimePs(500_001), BytesPerSec(1e9), 2);
    let simulation = crate::simulate(&schedule, &mut fabric, &setup).unwrap();
    (schedule, setup, simulation)
}

#[test]
fn a_trace_needs_recorded_operations() {
    let (schedule, setup, simulation) = simulated(false);
    let error = Trace::new(&schedule, &setup, &simulation).err().unwrap();
    assert!(error.to_string().contains("switch it on"), "{error}");
}
