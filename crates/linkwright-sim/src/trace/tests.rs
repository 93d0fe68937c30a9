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

/// Software until 100 ns; 1000 bytes at 1 GB/s out of rank 0 until 1100 ns, and into rank 1 500.001 ns later; handled
/// within 50 ns. Two bins are 2^20 ps long: the port out is busy for 1,048,576 - 100,000 and then 51,424 ps.
#[test]
fn one_message_is_two_slices_and_an_arrow() {
    let (schedule, setup, simulation) = simulated(true);
    let mut text = Vec::new();
    let trace = Trace::new(&schedule, &setup, &simulation).unwrap();
    trace.write(Form::Chrome, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let expected = r#"{"pid": 2, "tid": 4, "ph": "X", "ts": 0.000000, "dur": 0.100000, "name": "put 0 to 1", "args": {"operation": 0}},
{"pid": 2, "tid": 4, "ph": "s", "id": 1, "ts": 0.000000, "cat": "order", "name": "order"},
{"pid": 2, "tid": 5, "ph": "X", "ts": 0.100000, "dur": 1.500001, "name": "put 0 to 1", "args": {"operation": 0, "step": 1, "bytes": 1000}},
{"pid": 2, "tid": 5, "ph": "f", "bp": "e", "id": 1, "ts": 0.100000, "cat": "order", "name": "order"},
"#;
    assert!(text.contains(expected), "{text}");
    let states = r#"{"pid": 2, "tid": 2, "ph": "X", "ts": 0.000000, "dur": 1.600001, "name": "send"},
{"pid": 3, "tid": 3, "ph": "X", "ts": 0.000000, "dur": 0.100000, "name": "wait"},
{"pid": 3, "tid": 3, "ph": "X", "ts": 0.100000, "dur": 1.550001, "name": "receive"},
"#;
    assert!(text.contains(states), "{text}");
    let share = 100.0 * (1_048_576.0 - 100_000.0) / 1_048_576.0;
    assert!(
        text.contains(&format!(
            "\"ph\": \"C\", \"ts\": 0.000000, \"name\": \"endpoint 0 out\", \"args\": {{\"%\": {share}}}"
        )),
        "{text}"
    );
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}

#[test]
fn a_trace_needs_recorded_operations() {
    let (schedule, setup, simulation) = simulated(false);
    let error = Trace::new(&schedule, &setup, &simulation).err().unwrap();
    assert!(error.to_string().contains("switch it on"), "{error}");
}
