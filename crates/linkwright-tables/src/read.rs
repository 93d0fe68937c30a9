//! From Parquet to columns.

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::{net, Column, Error, Values};

/// Most values, rows times columns, of a table. A small file may claim very many, all alike.
pub const MOST_VALUES: u64 = 1 << 30;
/// Rows that are read at a time.
const AT_ONCE: usize = 1 << 16;

/// The rows of a table, as its end claims.
pub fn rows(file: Bytes) -> Result<u64, Error> {
    net::under(|| claimed(&SerializedFileReader::new(file)?))
}

fn claimed(reader: &SerializedFileReader<Bytes>) -> Result<u64, Error> {
    let metadata = reader.metadata().file_metadata();
    let rows = u64::try_from(metadata.num_rows()).unwrap_or(u64::MAX);
    let claimed = rows.saturating_mul(metadata.schema_descr().num_columns().max(1) as u64);
    if claimed > MOST_VALUES {
        return Err(Error::Large { claimed });
    }
    Ok(rows)
}

/// The columns of a table; the checksums of its pages, where it has them, are compared.
pub fn read(file: Bytes) -> Result<Vec<Column>, Error> {
    net::under(|| columns(file))
}

fn columns(file: Bytes) -> Result<Vec<Column>, Error> {
    let reader = SerializedFileReader::new(file)?;
    let rows = usize::try_from(claimed(&reader)?).unwrap_or(usize::MAX);
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = schema
        .columns()
        .iter()
        .map(|column| empty(column))
        .collect::<Result<Vec<_>, _>>()?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        for (at, column) in columns.iter_mut().enumerate() {
            append(column, group.get_column_reader(at)?, rows)?;
        }
    }
    match columns.iter().find(|column| column.values.len() != rows) {
        Some(column) => Err(wrong(
            &column.name,
            format!("has {} of {rows} rows", column.values.len()),
        )),
        None => Ok(columns),
    }
}

fn wrong(column: &str, wrong: impl Into<String>) -> Error {
    Error::Column {
        column: column.to_owned(),
        wrong: wrong.into(),
    }
}

/// A column of the kind that the file declares.
fn empty(column: &ColumnDescriptor) -> Result<Column, Error> {
    use parquet::basic::Type;
    let name = column.path().string();
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return Err(wrong(&name, "is nested"));
    }
    let values = match column.physical_type() {
        Type::BYTE_ARRAY if is_text(column) => Values::Text(Vec::new()),
        Type::INT64 => Values::Int64(Vec::new()),
        Type::INT32 => Values::Int32(Vec::new()),
        Type::DOUBLE | Type::FLOAT => Values::Double(Vec::new()),
        Type::BOOLEAN => Values::Bool(Vec::new()),
        other => {
            return Err(wrong(
                &name,
                format!("is of type {other}, which no table has"),
            ))
        }
    };
    Ok(Column::new(name, values, column.max_def_level() > 0))
}

fn is_text(column: &ColumnDescriptor) -> bool {
    let logical = column.logical_type_ref();
    matches!(logical, Some(LogicalType::String)) || column.converted_type() == ConvertedType::UTF8
}

/// Append a row group to a column.
fn append(column: &mut Column, reader: ColumnReader, rows: usize) -> Result<(), Error> {
    let (name, nullable) = (&column.name, column.nullable);
    match (&mut column.values, reader) {
        (Values::Text(values), reader @ ColumnReader::ByteArrayColumnReader(_)) => {
            let text = |bytes: ByteArray| match bytes.as_utf8() {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(wrong(name, "holds bytes that are no text")),
            };
            typed::<ByteArrayType, _>(reader, nullable, rows, values, text)
        }
        (Values::Int64(values), reader @ ColumnReader::Int64ColumnReader(_)) => {
            typed::<Int64Type, _>(reader, nullable, rows, values, Ok)
        }
        (Values::Int32(values), reader @ ColumnReader::Int32ColumnReader(_)) => {
            typed::<Int32Type, _>(reader, nullable, rows, values, Ok)
        }
        (Values::Double(values), reader @ ColumnReader::DoubleColumnReader(_)) => {
            typed::<DoubleType, _>(reader, nullable, rows, values, Ok)
        }
        (Values::Double(values), reader @ ColumnReader::FloatColumnReader(_)) => {
            typed::<FloatType, _>(reader, nullable, rows, values, |value| Ok(f64::from(value)))
        }
        (Values::Bool(values), reader @ ColumnReader::BoolColumnReader(_)) => {
            typed::<BoolType, _>(reader, nullable, rows, values, Ok)
        }
        _ => Err(wrong(name, "changes its type")),
    }
}

/// Append what a reader gives, at most as many values as the table has `rows`.
fn typed<T: DataType, V>(
    reader: ColumnReader,
    nullable: bool,
    rows: usize,
    into: &mut Vec<Option<V>>,
    convert: impl Fn(T::T) -> Result<V, Error>,
) -> Result<(), Error> {
    let mut reader: ColumnReaderImpl<T> = get_typed_column_reader(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    loop {
        values.clear();
        levels.clear();
        let asked = AT_ONCE.min((rows + 1).saturating_sub(into.len())); // one more shows that there are too many
        let (records, found, _) =
            reader.read_records(asked, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(());
        }
        let mut found = values.drain(..found);
        for row in 0..records {
            let there = !nullable || levels.get(row) == Some(&1);
            let value = if there { found.next() } else { None };
            into.push(value.map(&convert).transpose()?);
        }
    }
}
