//! The tables of a run folder: flat columns, kept as Parquet; and those of [`log`]s.
//!
//! Parquet because every tool for tables reads it; here because the common library for it in Python takes 170 MB.
//! Files come from other programs and from strangers, so whatever they hold ends in a table or in an [`Error`].
//!
//! ```
//! use linkwright_tables::{read, write, Column, Compression, Values};
//!
//! let names = Column::new("name", Values::Text(vec![Some("a".into()), None]), true);
//! let file = write(&[names.clone()], Compression::Snappy, &[("format", "4")])?;
//! assert_eq!(read(file.into())?, [names]);
//! # Ok::<(), linkwright_tables::Error>(())
//! ```

pub mod log;
mod net;
mod read;
mod write;

pub use read::{read, rows, MOST_VALUES};
pub use write::{write, Compression};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, once in a table.
    pub name: String,
    /// One value for each row.
    pub values: Values,
    /// Whether there may be rows without a value.
    pub nullable: bool,
}

impl Column {
    /// A column of this name.
    pub fn new(name: impl Into<String>, values: Values, nullable: bool) -> Self {
        Column {
            name: name.into(),
            values,
            nullable,
        }
    }
}

/// The values of a column; `None` in a row without one.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers of 64 bits.
    Int64(Vec<Option<i64>>),
    /// Whole numbers of 32 bits.
    Int32(Vec<Option<i32>>),
    /// Floating-point numbers.
    Double(Vec<Option<f64>>),
    /// Truth values.
    Bool(Vec<Option<bool>>),
}

impl Values {
    /// How many rows they are.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Bool(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are no whole Parquet file.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// Parquet's reader gave up on the bytes.
    #[error("its pages contradict each other ({0})")]
    Contradiction(String),
    /// The file is whole, but no table of flat columns.
    #[error("column {column} {wrong}")]
    Column {
        /// Its name.
        column: String,
        /// What is wrong with it.
        wrong: String,
    },
    /// The file claims more than can be read.
    #[error("it claims {claimed} values, and at most {most} can be read", most = MOST_VALUES)]
    Large {
        /// Rows times columns.
        claimed: u64,
    },
}
