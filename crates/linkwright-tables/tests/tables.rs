//! What is written is read again, and whatever else is read ends in a table or an error.

use linkwright_tables::{read, rows, write, Column, Compression, Error, Values};
use proptest::collection::vec;
use proptest::prelude::*;

fn column() -> impl Strategy<Value = (Values, bool)> {
    let texts = vec(proptest::option::of("[a-z]{0,3}"), 20).prop_map(Values::Text);
    let large = vec(proptest::option::of(any::<i64>()), 20).prop_map(Values::Int64);
    let small = vec(proptest::option::of(any::<i32>()), 20).prop_map(Values::Int32);
    let doubles = vec(proptest::option::of(-1e300..1e300), 20).prop_map(Values::Double);
    let truths = vec(proptest::option::of(any::<bool>()), 20).prop_map(Values::Bool);
    let whole = vec(any::<i64>().prop_map(Some), 20).prop_map(Values::Int64);
    prop_oneof![
        prop_oneof![texts, large, small, doubles, truths].prop_map(|values| (values, true)),
        whole.prop_map(|values| (values, false)),
    ]
}

fn table() -> impl Strategy<Value = Vec<Column>> {
    vec(column(), 1..6).prop_map(|columns| {
        let named = columns.into_iter().enumerate();
        named
            .map(|(at, (values, nullable))| Column::new(format!("c{at}"), values, nullable))
            .collect()
    })
}

fn either() -> impl Strategy<Value = Compression> {
    prop_oneof![Just(Compression::Snappy), Just(Compression::Zstd)]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(columns in table(), compression in either()) {
        let file = write(&columns, compression, &[("a", "b")]).unwrap();
        prop_assert_eq!(write(&columns, compression, &[("a", "b")]).unwrap(), file.clone());
        prop_assert_eq!(rows(bytes(&file)).unwrap(), 20);
        prop_assert_eq!(read(bytes(&file)).unwrap(), columns);
    }

    #[test]
    fn damage_ends_in_a_table_or_an_error(
        columns in table(),
        compression in either(),
        hits in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        end in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut file = write(&columns, compression, &[]).unwrap();
        for (at, byte) in hits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(end) = end {
            file.truncate(end.index(file.len()));
        }
        let _ = rows(bytes(&file));
        let _ = read(bytes(&file));
    }
}

fn bytes(file: &[u8]) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(file)
}

#[test]
fn a_missing_value_needs_a_nullable_column() {
    let column = Column::new("n", Values::Int64(vec![Some(1), None]), false);
    let error = write(&[column], Compression::Snappy, &[]).unwrap_err();
    assert_eq!(error.to_string(), "column n has a row without a value");
}

#[test]
fn what_is_no_parquet_file_is_an_error() {
    for file in [&b""[..], b"PAR1", b"run,value\n1,2\n"] {
        assert!(matches!(read(bytes(file)), Err(Error::Parquet(_))));
    }
}
