//! The examples in docs/formats.md are what the program reads and prints.

use linkwright_schedule::{text, verify};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");

fn examples() -> Vec<String> {
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/formats.md exists");
    (document.split("```schedule\n").skip(1))
        .map(|rest| rest.split("```").next().expect("a block").to_string())
        .collect()
}

#[test]
fn the_examples_are_read_and_verified() {
    let examples = examples();
    assert_eq!(examples.len(), 2);
    for example in &examples {
        let schedule = text::parse(example).unwrap_or_else(|e| panic!("{e}\n{example}"));
        verify(&schedule).unwrap();
    }
    let [given, inferred] = [0, 1].map(|i| text::parse(&examples[i]).unwrap());
    assert_eq!(given, inferred, "{}", text::print(&inferred));
}

#[test]
fn the_first_example_is_canonical() {
    let example = &examples()[0];
    assert_eq!(&text::print(&text::parse(example).unwrap()), example);
}
