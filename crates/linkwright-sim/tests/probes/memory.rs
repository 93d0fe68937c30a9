//! Modelled probes: hand-derived answers, and that every model answers or gives a reason.

use super::common::{machine, read, waived};
use linkwright_core::probes::{find, Assignment};
use linkwright_sim::probes::{answer, check, MODEL_PROBES};
use linkwright_sim::SimError;

/// Two levels: a private one at a clock of 1 GHz, and a shared one behind it.
const MEMORY: &str = r#"
[[probe.memory.level]]
name = "SRAM"
size = { value = 256, unit = "KiB", status = "assumed", source = "round" }
latency = { value = 6, unit = "cycle", status = "assumed", source = "round" }
read = { value = 16, unit = "B/cycle", status = "assumed", source = "round" }
write = { value = 8, unit = "B/cycle", status = "assumed", source = "round" }
overlap = true
[[probe.memory.level]]
name = "DRAM"
size = { value = 1, unit = "GiB", status = "assumed", source = "round" }
latency = { value = 100, unit = "ns", status = "assumed", source = "round" }
read = { value = 4, unit = "GB/s", status = "assumed", source = "round" }
write = { value = 4, unit = "GB/s", status = "assumed", source = "round" }
total = { value = 8, unit = "GB/s", status = "assumed", source = "round" }
write_allocate = true
"#;

fn ask(probe: &str, axes: &[(&str, &str)]) -> Result<(u64, u64, u64), SimError> {
    let assignment = Assignment::parse(find(probe).unwrap(), axes)?;
    let answered = answer(&machine(MEMORY), &assignment)?;
    Ok((
        answered.time.0,
        answered.counted_bytes,
        answered.moved_bytes,
    ))
}

#[test]
fn latency_is_that_of_the_nearest_level_that_holds_the_set() {
    let latency = |axes: &[(&str, &str)]| ask("memory_latency", axes);
    // 6 cycles of 1 ns.
    assert_eq!(latency(&[("working_set", "256K")]).unwrap().0, 6_000);
    assert_eq!(latency(&[("working_set", "512K")]).unwrap().0, 100_000);
    // A private level does not know of neighbours.
    let busy = [("working_set", "4K"), ("neighbours", "3")];
    assert_eq!(latency(&busy).unwrap().0, 6_000);
    let shared = waived(latency(&[("working_set", "1M"), ("neighbours", "1")]));
    assert!(shared.contains("`DRAM` is shared"), "{shared}");
    let crowd = waived(latency(&[("neighbours", "4")]));
    assert!(
        crowd.contains("needs 5 endpoints; `plain` has 4"),
        "{crowd}"
    );
    let large = waived(latency(&[("working_set", "2G")]));
    assert!(large.contains("fit into no level"), "{large}");
}

#[test]
fn bandwidth_follows_from_bytes_and_rates() {
    let ask = |axes: &[(&str, &str)]| ask("memory_bandwidth", axes);
    // 16,384 B at 16 B/ns.
    assert_eq!(
        ask(&[("block", "16K")]).unwrap(),
        (1_024_000, 16_384, 16_384)
    );
    // Copy, overlapped: reads take 1,024 ns, writes at 8 B/ns 2,048 ns.
    let copy = [("block", "16K"), ("kernel", "copy")];
    assert_eq!(ask(&copy).unwrap(), (2_048_000, 32_768, 32_768));
    // 1 MiB in DRAM, triad: reads 2 MiB + 1 MiB fetched, writes 1 MiB, one after the other: 4 MiB at 4 B/ns.
    let triad = [("block", "1M"), ("kernel", "triad")];
    assert_eq!(ask(&triad).unwrap(), (1_048_576_000, 3 << 20, 4 << 20));
    // Non-temporal stores fetch nothing.
    let around = [triad[0], triad[1], ("width", "non_temporal")];
    assert_eq!(ask(&around).unwrap(), (786_432_000, 3 << 20, 3 << 20));
    // Four threads share 8 B/ns: 16 MiB take 2,097,152 ns, longer than one alone.
    let four = [triad[0], triad[1], ("threads", "4")];
    assert_eq!(ask(&four).unwrap().0, 2_097_152_000);
    let narrow = waived(ask(&[("width", "64")]));
    assert!(narrow.contains("widest access"), "{narrow}");
}

#[test]
fn a_machine_without_tables_waives_and_a_misspelt_key_is_an_error() {
    for probe in MODEL_PROBES {
        let assignment = Assignment::parse(probe.about, &[]).unwrap();
        let error = answer(&machine(""), &assignment).unwrap_err();
        let table = format!("add [probe.{}]", probe.about.table);
        assert!(error.to_string().contains(&table), "{error}");
    }
    let misspelt = MEMORY.replace("overlap", "overlaps");
    let error = check(&machine(&misspelt)).unwrap_err().to_string();
    assert!(
        error.contains("unknown key `overlaps`; did you mean `overlap`?"),
        "{error}"
    );
    check(&machine(MEMORY)).unwrap();
    let swapped = MEMORY.replace("value = 1, unit = \"GiB\"", "value = 1, unit = \"KiB\"");
    assert!(check(&machine(&swapped)).is_err());
}

#[test]
fn a_table_that_no_probe_reads_is_an_error() {
    let error = read("[probe.memroy]\n").unwrap_err().to_string();
    assert!(
        error.contains("unknown key `memroy`; did you mean `memory`?"),
        "{error}"
    );
}

#[test]
fn model_and_catalogue_know_each_other() {
    for probe in MODEL_PROBES {
        assert!(std::ptr::eq(find(probe.about.key).unwrap(), probe.about));
    }
}
