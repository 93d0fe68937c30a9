//! Modelled products: plans and waves with the algebra, and invariants.

use super::common::{machine, read, waived};
use linkwright_core::probes::{find, layer_of, Assignment, LAYERS};
use linkwright_sim::probes::compute::{Compute, Precision, Product};
use linkwright_sim::probes::{answer, check};
use linkwright_sim::SimError;
use proptest::prelude::*;

/// Four tiles at 1 GHz; a block of 16 by 8 channels takes 4 cycles, 8 at efficiency 0.5.
const PLANNER: &str = r#"
[probe.compute.product]
kind = "split_planner"
tiles = { value = 4, unit = "count", status = "assumed", source = "round" }
half = { value = 64, unit = "FLOP/cycle", status = "assumed", source = "round" }
single = { value = 16, unit = "FLOP/cycle", status = "assumed", source = "round" }
block_inner = { value = 16, unit = "count", status = "assumed", source = "round" }
block_outer = { value = 8, unit = "count", status = "assumed", source = "round" }
efficiency = { value = 0.5, unit = "ratio", status = "assumed", source = "round" }
start = { value = 1, unit = "us", status = "assumed", source = "round" }
block_overhead = { value = 100, unit = "cycle", status = "assumed", source = "round" }
operand_rate = { value = 16, unit = "B/cycle", status = "assumed", source = "round" }
partial_rate = { value = 4, unit = "B/cycle", status = "assumed", source = "round" }
piece = { value = 10, unit = "cycle", status = "assumed", source = "round" }
[probe.compute.random]
rate = { value = 0.5, unit = "GHz", status = "assumed", source = "round" }
start = { value = 100, unit = "ns", status = "assumed", source = "round" }
"#;

/// Two multiprocessors whose tile of 128 x 128 takes 100 ns a step alone, 150 ns in pairs.
const WAVES: &str = r#"
[probe.compute.product]
kind = "tile_waves"
multiprocessors = { value = 2, unit = "count", status = "assumed", source = "round" }
tile_rows = { value = 128, unit = "count", status = "assumed", source = "round" }
tile_columns = { value = 128, unit = "count", status = "assumed", source = "round" }
half = { value = 1, unit = "TFLOP/s", status = "assumed", source = "round" }
single = { value = 0.1, unit = "TFLOP/s", status = "assumed", source = "round" }
step = { value = 100, unit = "ns", status = "assumed", source = "round" }
pair_factor = { value = 1.5, unit = "ratio", status = "assumed", source = "round" }
launch = { value = 10, unit = "us", status = "assumed", source = "round" }
least = { value = 30, unit = "us", status = "assumed", source = "round" }
memory_rate = { value = 100, unit = "GB/s", status = "assumed", source = "round" }
grouped_rate = { value = 1, unit = "GB/s", status = "assumed", source = "round" }
tensor_channels = { value = 8, unit = "count", status = "assumed", source = "round" }
"#;

fn ask(tables: &str, probe: &str, axes: &[(&str, &str)]) -> Result<(u64, u64), SimError> {
    let assignment = Assignment::parse(find(probe).unwrap(), axes)?;
    let machine = machine(tables);
    check(&machine).unwrap();
    let answered = answer(&machine, &assignment)?;
    Ok((answered.time.0, answered.work))
}

/// One output pixel, 32 input and 8 output channels, one tap: two blocks.
fn two_blocks() -> Product {
    Product {
        pixels: 1,
        side: 1,
        input_pixels: 1,
        inner: 32,
        outer: 8,
        ..Product::matmul(1, Precision::Half)
    }
}

#[test]
fn the_planner_splits_input_channels_where_overhead_exceeds_a_partial_sum() {
    let planner = Compute::planner(&machine(PLANNER)).unwrap();
    // On one tile: 2 blocks x (8 + 100) + (32 x 2 B + 32 x 8 x 2 B) / 16 = 216 + 36 = 252 cycles. On two:
    // 108 + (16 x 2 + 16 x 8 x 2) / 16 = 126, and 8 sums x 4 B x 1/2 / 4 = 4 more: 130.
    let plan = planner.plan(&two_blocks());
    assert_eq!((plan.inner, plan.outer, plan.pixels), (2, 1, 1));
    assert!((plan.time_s - 1.130e-6).abs() < 1e-15, "{plan:?}");
    let alone = planner.on(1).plan(&two_blocks());
    assert_eq!(alone.inner, 1);
    assert!((alone.time_s - 1.252e-6).abs() < 1e-15, "{alone:?}");
}

#[test]
fn a_window_fetches_its_halo() {
    // 16 pixels of a 4 x 4 image, filter 3: 16 channels in, 8 out. On four tiles, four pixels each: 4 x 9 blocks
    // x 8 + 9 x 100 cycles, and (2 x 2 pixels + halo: 4 x 4) x 16 x 2 B = 512 B with 9 x 16 x 8 x 2 = 2304 B
    // of weights: 288 + 900 + 176 = 1364 cycles.
    let planner = Compute::planner(&machine(PLANNER)).unwrap();
    let product = Product {
        pixels: 16,
        side: 4,
        input_pixels: 16,
        filter: 3,
        inner: 16,
        outer: 8,
        ..two_blocks()
    };
    let plan = planner.plan(&product);
    assert_eq!((plan.pixels, plan.outer, plan.inner), (4, 1, 1));
    assert!((plan.time_s - 2.364e-6).abs() < 1e-15, "{plan:?}");
}

#[test]
fn waves_are_whole_and_pairs_hide_each_other() {
    // n = 256: 2 x 2 tiles on two multiprocessors, one full wave of pairs: 256 steps x 150 ns = 38.4 us; 3 x
    // 65536 x 2 B at 100 GB/s = 3.932 us; launch 10 us.
    let (time, work) = ask(WAVES, "matmul", &[("n", "256"), ("dtype", "f16")]).unwrap();
    assert_eq!(time, 38_400_000 + 3_932_160 + 10_000_000);
    assert_eq!(work, 2 << 24);
    // n = 128: one tile, narrow or not, runs alone: 128 x 100 ns + 0.983 us + 10 us is below the least time.
    let (time, _) = ask(WAVES, "matmul", &[("n", "128"), ("dtype", "f16")]).unwrap();
    assert_eq!(time, 30_000_000);
    // Single precision, n = 256: two waves over two units, 2 x 2 x 128^2 x 2 flops / 0.1 TFlop/s x 256 steps.
    let (time, _) = ask(WAVES, "matmul", &[("n", "256")]).unwrap();
    assert_eq!(time / 1_000_000, 335 + 7 + 10 + 1);
}

#[test]
fn narrow_loads_move_less_and_hardware_threads_share_the_slots() {
    let memory = r#"
[[probe.memory.level]]
name = "tile memory"
size = { value = 256, unit = "KiB", status = "assumed", source = "round" }
latency = { value = 6, unit = "cycle", status = "assumed", source = "round" }
read = { value = 16, unit = "B/cycle", status = "assumed", source = "round" }
write = { value = 8, unit = "B/cycle", status = "assumed", source = "round" }
widest = { value = 128, unit = "count", status = "assumed", source = "round" }
hardware_threads = { value = 6, unit = "count", status = "assumed", source = "round" }
pass_start = { value = 162, unit = "cycle", status = "assumed", source = "round" }
"#;
    let read = |axes: &[(&str, &str)]| ask(memory, "memory_bandwidth", axes);
    // 8 KiB in loads of 16 B, one every 6 cycles: 512 x 6 + 162; twice as many of 8 B; alone or with 23 others.
    for threads in ["1", "24"] {
        let wide = [("block", "8K"), ("threads", threads), ("width", "128")];
        assert_eq!(read(&wide).unwrap().0, 3_234_000);
        let narrow = [wide[0], wide[1], ("width", "64")];
        assert_eq!(read(&narrow).unwrap().0, 6_306_000);
    }
    // Stores move 8 B per cycle at most, so 128 and 64 bit take the same: 1024 x 6 + 162.
    for width in ["128", "64"] {
        let write = [("block", "8K"), ("kernel", "write"), ("width", width)];
        assert_eq!(read(&write).unwrap().0, 6_306_000);
    }
    assert!(waived(read(&[("width", "256")])).contains("ask for `widest`"));
    assert!(waived(read(&[("threads", "25")])).contains("needs 5 endpoints"));
}

#[test]
fn random_numbers_start_and_flow() {
    // 100 ns + 1000 samples at 0.5 per ns, on three endpoints at once.
    let axes = [
        ("block", "8000"),
        ("generator", "machine"),
        ("threads", "3"),
    ];
    assert_eq!(ask(PLANNER, "random", &axes).unwrap(), (2_100_000, 3_000));
    let other = waived(ask(PLANNER, "random", &[("block", "64K")]));
    assert!(other.contains("ask for `machine`"), "{other}");
    let crowd = waived(ask(PLANNER, "random", &[axes[1], ("threads", "5")]));
    assert!(crowd.contains("needs 5 endpoints"), "{crowd}");
}

#[test]
fn a_probe_without_an_answer_is_waived_with_the_reason() {
    let why = |tables, axes: &[(&str, &str)]| waived(ask(tables, "matmul", axes));
    assert!(why(PLANNER, &[("dtype", "f64")]).contains("f16 and f32"));
    assert!(why(PLANNER, &[("threads", "5")]).contains("ask for 1 to 4 threads"));
    assert!(why(WAVES, &[("threads", "2")]).contains("one endpoint, not on 2"));
    assert!(why(PLANNER, &[("n", "0")]).contains("no product"));
    // Three matrices of 512 x 512 x 4 B.
    assert!(
        why(PLANNER, &[("n", "512")]).contains("have 3.0 MiB, the memory of 1 endpoints 1.0 MiB")
    );
    assert!(why("[probe.compute]\n", &[]).contains("add [probe.compute.product]"));
}

#[test]
fn wrong_parameters_name_key_and_cure() {
    let error = |tables: String| check(&read(&tables).unwrap()).unwrap_err().to_string();
    let lavish = error(PLANNER.replace(
        "value = 0.5, unit = \"ratio\"",
        "value = 1.5, unit = \"ratio\"",
    ));
    let cure = "efficiency: `1.5 ratio` is not a share; choose a value above 0 and at most 1";
    assert!(lavish.contains(cure), "{lavish}");
    let fast = error(WAVES.replace("value = 100, unit = \"ns\"", "value = 1, unit = \"ns\""));
    assert!(fast.contains("faster than the peak"), "{fast}");
    let word = error(PLANNER.replace("split_planner", "split_planer"));
    assert!(word.contains("did you mean `split_planner`"), "{word}");
}

#[test]
fn every_layer_is_answered_below_the_peak_and_larger_batches_take_no_less() {
    for tables in [PLANNER, WAVES] {
        let model = Compute::model(&machine(tables)).unwrap();
        for layer in LAYERS {
            let mut last = 0.0;
            for batch in [1, 2, 8, 64] {
                let product = Product::convolution(layer, batch, Precision::Half);
                let time = model.time_s(&product);
                assert!(
                    product.flops() / time <= model.peak(Precision::Half),
                    "{}",
                    layer.key
                );
                assert!(time >= last, "{} at {batch}", layer.key);
                last = time;
            }
        }
    }
    let layer = layer_of("resnet50.conv2_3").unwrap();
    let product = Product::convolution(layer, 3, Precision::Half);
    assert_eq!(product.flops() as u64, layer.flops(3));
}

proptest! {
    #[test]
    fn more_tiles_never_take_longer_and_nothing_beats_the_peak(
        pixels in 1_u64..5000, inner in 1_u64..600, outer in 1_u64..600, filter in 1_u64..4, tiles in 1_u64..200,
    ) {
        let planner = Compute::planner(&machine(PLANNER)).unwrap();
        let side = pixels.isqrt().max(1);
        let product = Product {
            pixels, side, input_pixels: pixels, filter, inner, outer, ..Product::matmul(1, Precision::Half)
        };
        let (few, many) = (planner.on(tiles), planner.on(2 * tiles));
        let time = few.plan(&product).time_s;
        prop_assert!(many.plan(&product).time_s <= time);
        prop_assert!(product.flops() / time <= few.peak(Precision::Half));
        let plan = few.plan(&product);
        prop_assert!(plan.pixels * plan.outer * plan.inner * plan.groups <= tiles);
    }
}
