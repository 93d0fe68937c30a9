//! Good and bad machine files: each bad one differs from the example in one place and must fail with
//! the stated message.

use linkwright_core::{Machine, MachineError};
use toml::de::{DeTable, DeValue};

const EXAMPLE: &str = include_str!("machine/example.toml");
const ERRORS: &str = include_str!("machine/errors.toml");
const FORMATS: &str = include_str!("../../../docs/formats.md");

/// What a fabric would do: read its parameters, one of them optional, and finish.
fn read(text: &str) -> Result<Machine, MachineError> {
    let machine = Machine::parse(text, "two-boards.toml")?;
    let mut fabric = machine.fabric_section();
    fabric.time("latency")?;
    fabric.time("gap")?;
    fabric.optional_rate("bandwidth")?;
    fabric.finish()?;
    Ok(machine)
}

fn field<'a>(case: &'a DeTable<'_>, key: &str) -> &'a str {
    let found = case.iter().find(|(k, _)| **k.get_ref() == *key);
    let value = found.and_then(|(_, v)| v.get_ref().as_str());
    value.unwrap_or_else(|| panic!("a case lacks `{key}`"))
}

fn changed(case: &DeTable<'_>) -> String {
    let (find, put) = (field(case, "find"), field(case, "put"));
    if find.is_empty() {
        return format!("{EXAMPLE}{put}");
    }
    let name = field(case, "name");
    assert_eq!(
        EXAMPLE.matches(find).count(),
        1,
        "{name}: `find` must occur once"
    );
    EXAMPLE.replace(find, put)
}

#[test]
fn every_mistake_is_reported_with_place_state_and_cure() {
    let root = DeTable::parse(ERRORS).expect("errors.toml is TOML");
    let cases = root.get_ref().get("case").expect("cases").get_ref();
    let DeValue::Array(cases) = cases else {
        panic!("[[case]] tables");
    };
    let mut wrong = String::new();
    for case in cases.iter() {
        let case = case.get_ref().as_table().expect("a case is a table");
        let got = match read(&changed(case)) {
            Ok(_) => "no error".to_string(),
            Err(error) => error.to_string(),
        };
        if got != field(case, "error") {
            wrong += &format!("{}\n  error = {got:?}\n", field(case, "name"));
        }
    }
    assert!(wrong.is_empty(), "these cases fail otherwise:\n{wrong}");
}

#[test]
fn the_example_reads_as_a_whole() {
    let machine = read(EXAMPLE).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((machine.ranks(), machine.memories()), (8, 2));
    assert_eq!(machine.endpoints()[6].name, "chip (3,1)");
    assert_eq!(machine.fitted(), 2);
    let keys: Vec<String> = machine.numbers().into_iter().map(|n| n.key).collect();
    let first = [
        "machine.clock",
        "endpoints.capacity",
        "endpoints.memory[0].capacity",
    ];
    assert_eq!(keys[..3], first);
    assert_eq!(keys.last().map(String::as_str), Some("facts.peak"));
}

#[test]
fn the_documented_example_is_this_one() {
    let block = FORMATS
        .split("```toml\n")
        .nth(1)
        .expect("a TOML block in docs/formats.md");
    let block = block.split("```").next().unwrap();
    assert!(
        block == EXAMPLE,
        "docs/formats.md: copy crates/linkwright-core/tests/machine/example.toml"
    );
}

#[test]
fn every_cut_before_the_first_path_fails() {
    let path = EXAMPLE
        .find("summary = \"a remote write")
        .expect("the path of the example");
    for end in 0..path {
        assert!(
            read(&EXAMPLE[..end]).is_err(),
            "{:?}",
            EXAMPLE[..end].lines().last()
        );
    }
}

#[test]
fn a_changed_value_keeps_its_unit_and_is_listed_as_assumed() {
    let machine = read(EXAMPLE).unwrap();
    let slow = machine.with_value("path.write.start", "80").unwrap();
    assert_eq!(slow.default_path().start.0, 50_000, "80 cycles of 0.625 ns");
    assert_eq!(slow.fitted(), machine.fitted() - 1);
    let rows = slow.numbers();
    let row = rows.iter().find(|r| r.key == "path.write.start").unwrap();
    assert_eq!(
        (row.value.as_str(), row.unit, row.status.name()),
        ("80", "cycle", "assumed")
    );
    assert_eq!(
        row.source,
        "set for this run; the file says 40 (fitted: chosen to meet table 2 of the data sheet)"
    );
    let quiet = machine.with_value("path.write.signal", "false").unwrap();
    assert!(!quiet.default_path().signal);
    let small = machine
        .with_value("endpoints.memory[0].capacity", "2")
        .unwrap();
    assert_eq!(small.endpoints()[9].capacity.unwrap().0, 2 << 30);
}

#[test]
fn a_word_with_a_status_is_listed_and_can_be_changed() {
    let machine = read(EXAMPLE).unwrap();
    let word = |machine: &Machine| {
        let rows = machine.numbers();
        let row = rows
            .into_iter()
            .find(|r| r.key == "path.write.fused_combine");
        let row = row.unwrap();
        (row.value, row.unit, row.status.name(), row.source)
    };
    let source = "table 2 of the data sheet, which it meets better".to_string();
    assert_eq!(
        word(&machine),
        ("false".to_string(), "word", "post_hoc", source)
    );
    assert!(!machine.default_path().fused_combine);
    let fused = machine.with_value("path.write.fused_combine", "true");
    let fused = fused.unwrap();
    assert!(fused.default_path().fused_combine);
    let (value, _, status, source) = word(&fused);
    assert_eq!((value.as_str(), status), ("true", "assumed"));
    assert!(
        source.starts_with("set for this run; the file says `false` (post_hoc: "),
        "{source}"
    );
}

#[test]
fn a_value_that_cannot_be_changed_says_why() {
    let machine = read(EXAMPLE).unwrap();
    let fails =
        |key: &str, literal: &str| machine.with_value(key, literal).unwrap_err().to_string();
    for (key, literal, message) in [
        ("fabric.latncy", "1", "unknown key `fabric.latncy`; did you mean `fabric.latency`?"),
        ("zoo", "1", "unknown key `zoo`; no number of the machine resembles it"),
        ("fabric.latency", "-1", "fabric.latency: `-1` is negative; a machine's number is zero or more"),
        ("fabric.bandwidth", "0", "fabric.bandwidth: `0` is zero, and a rate divides something; it must be above zero"),
        ("fabric.latency", "\"7\"", "fabric.latency: `\"7\"` is a text; write the number without quotes"),
        ("fabric.latency", "7 8", "fabric.latency: not valid TOML: string values must be quoted, expected literal string: `7 8`"),
        ("path.write.signal", "1", "path.write.signal: found the bare integer 1; needed: a value like `true`"),
        ("path.write", "1", "path.write: found the bare integer 1; needed: a value like a table"),
        ("level[1].count", "5", "endpoints: 8 ranks, but the counts of [[level]] multiply to 10; correct one side"),
    ] {
        let got = fails(key, literal);
        assert!(got.ends_with(message), "{got}");
    }
}

#[test]
fn every_unit_is_documented() {
    for unit in linkwright_core::machine::unit::UNITS {
        let written = format!("`{}`", unit.name);
        assert!(
            FORMATS.contains(&written),
            "docs/formats.md lacks {written}"
        );
    }
}

#[test]
fn a_library_says_what_its_words_mean_here() {
    assert_eq!(read(EXAMPLE).unwrap().library(), None);
    let stated = "\n[library]\nname = \"rings\"\nversions = [\"2\", \"1\"]\nlinks = \"west\"\n\
                  modes = { normal = \"write\" }\nsource = \"data sheet\"\n";
    let machine = read(&format!("{EXAMPLE}{stated}")).unwrap();
    let library = machine.library().expect("the file states one");
    assert_eq!((library.name.as_str(), library.links), ("rings", Some(1)));
    assert_eq!(library.versions, ["2", "1"], "the default first");
    assert_eq!(library.modes["normal"], "write");
    assert_eq!(
        library.training, "2",
        "the default where the file names none"
    );
    assert_eq!(library.launch, linkwright_core::TimePs::ZERO);
    let more = "training = { value = \"1\", status = \"post_hoc\", source = \"a container\" }\n\
                launch = { value = 7, unit = \"us\", status = \"assumed\", source = \"a guess\" }\n";
    let machine = read(&format!("{EXAMPLE}{stated}{more}")).unwrap();
    let library = machine.library().expect("the file states one");
    assert_eq!(library.training, "1");
    assert_eq!(library.launch, linkwright_core::TimePs(7_000_000));
    assert_eq!(library.hardware, None);
    let words = "[library.hardware]\ngpu = \"sm90\"\nhost = \"intel\"\nsource = \"data sheet\"\n";
    let machine = read(&format!("{EXAMPLE}{stated}{words}")).unwrap();
    let hardware = machine.library().and_then(|l| l.hardware.clone()).unwrap();
    assert_eq!(
        (hardware.gpu.as_str(), hardware.host.as_str()),
        ("sm90", "intel")
    );
    let wrong = format!("{EXAMPLE}{stated}training = \"3\"\n");
    assert!(read(&wrong)
        .unwrap_err()
        .to_string()
        .contains("known: 2, 1"));
}
