//! From columns to Parquet.

use std::sync::Arc;

use parquet::basic::{self, LogicalType, Repetition, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::{Column, Error, Values};

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Fast.
    Snappy,
    /// Small.
    Zstd,
}

/// The file of a table, with `metadata` at its end. The same columns give the same bytes.
pub fn write(
    columns: &[Column],
    compression: Compression,
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>, Error> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("schema")
        .with_fields(fields)
        .build()?;
    let said = metadata
        .iter()
        .map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(match compression {
            Compression::Snappy => basic::Compression::SNAPPY,
            Compression::Zstd => basic::Compression::ZSTD(ZstdLevel::default()),
        })
        .set_created_by("linkwright".to_owned())
        .set_key_value_metadata(Some(said.collect()))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        if let Some(mut writer) = group.next_column()? {
            append(&mut writer, column)?;
            writer.close()?;
        }
    }
    group.close()?;
    Ok(file.into_inner()?)
}

fn field(column: &Column) -> Result<TypePtr, Error> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (basic::Type::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Int64(_) => (basic::Type::INT64, None),
        Values::Int32(_) => (basic::Type::INT32, None),
        Values::Double(_) => (basic::Type::DOUBLE, None),
        Values::Bool(_) => (basic::Type::BOOLEAN, None),
    };
    let repetition = match column.nullable {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn append(writer: &mut SerializedColumnWriter<'_>, column: &Column) -> Result<(), Error> {
    match &column.values {
        Values::Text(values) => typed::<ByteArrayType, _>(writer, column, values, |text| {
            ByteArray::from(text.as_str())
        }),
        Values::Int64(values) => typed::<Int64Type, _>(writer, column, values, |value| *value),
        Values::Int32(values) => typed::<Int32Type, _>(writer, column, values, |value| *value),
        Values::Double(values) => typed::<DoubleType, _>(writer, column, values, |value| *value),
        Values::Bool(values) => typed::<BoolType, _>(writer, column, values, |value| *value),
    }
}

fn typed<T: DataType, V>(
    writer: &mut SerializedColumnWriter<'_>,
    column: &Column,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), Error> {
    let found: Vec<T::T> = values.iter().flatten().map(convert).collect();
    if !column.nullable && found.len() < values.len() {
        return Err(Error::Column {
            column: column.name.clone(),
            wrong: "has a row without a value".to_owned(),
        });
    }
    let levels: Option<Vec<i16>> = column
        .nullable
        .then(|| values.iter().map(|value| i16::from(value.is_some())).collect());
    writer
        .typed::<T>()
        .write_batch(&found, levels.as_deref(), None)?;
    Ok(())
}
