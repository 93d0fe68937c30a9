//! Python types in the generated stub, where those of PyO3 say too little.
//!
//! `row!` makes a dictionary; its type in the stub is a class of `linkwright.base.native_types`, which lists the keys.

use std::convert::Infallible;
use std::marker::PhantomData;

use numpy::{Element, IntoPyArray};
use pyo3::inspect::{PyStaticConstant, PyStaticExpr};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{type_hint_identifier, type_hint_subscript};

/// A type in the stub.
pub trait Hint {
    const HINT: PyStaticExpr;
}

/// A Python object whose type in the stub is that of `H`.
pub struct Typed<'py, H>(Bound<'py, PyAny>, PhantomData<H>);

impl<'py, H> Typed<'py, H> {
    /// Vouch for the type of `object`.
    pub fn new<T>(object: Bound<'py, T>) -> Self {
        Typed(object.into_any(), PhantomData)
    }

    /// The same as a type with more keys.
    pub fn into<M>(self) -> Typed<'py, M> {
        Typed::new(self.0)
    }

    /// The object itself.
    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.0
    }
}

impl<'py, H: Hint> IntoPyObject<'py> for Typed<'py, H> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;
    const OUTPUT_TYPE: PyStaticExpr = H::HINT;

    fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0)
    }
}

impl<'py, H: Hint> FromPyObject<'_, 'py> for Typed<'py, H> {
    type Error = Infallible;
    const INPUT_TYPE: PyStaticExpr = H::HINT;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Typed::new(object.to_owned()))
    }
}

/// Names from Python with values of any type: a dictionary.
pub struct Named<'py>(pub Bound<'py, PyDict>);

impl<'py> FromPyObject<'_, 'py> for Named<'py> {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = Anything::HINT;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Named(object.cast::<PyDict>()?.to_owned()))
    }
}

/// Values of one type, kept for Python: numbers as an array, texts as a list.
pub struct Column<T>(Py<PyAny>, PhantomData<T>);

impl<T: Element> Column<T> {
    pub fn new(py: Python<'_>, values: Vec<T>) -> Self {
        Column(values.into_pyarray(py).into_any().unbind(), PhantomData)
    }
}

impl Column<String> {
    pub fn texts<'a>(
        py: Python<'_>,
        texts: impl ExactSizeIterator<Item = &'a str>,
    ) -> PyResult<Self> {
        Ok(Column(
            PyList::new(py, texts)?.into_any().unbind(),
            PhantomData,
        ))
    }
}

impl<'py, T> IntoPyObject<'py> for &Column<T>
where
    Column<T>: Hint,
{
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;
    const OUTPUT_TYPE: PyStaticExpr = Column::<T>::HINT;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0.bind(py).clone())
    }
}

const ANY: PyStaticExpr = type_hint_identifier!("typing", "Any");
const INT: PyStaticExpr = type_hint_identifier!("builtins", "int");
const STR: PyStaticExpr = type_hint_identifier!("builtins", "str");
const FLOAT: PyStaticExpr = type_hint_identifier!("builtins", "float");
const DICT: PyStaticExpr = type_hint_identifier!("builtins", "dict");
const LIST: PyStaticExpr = type_hint_identifier!("builtins", "list");
const TUPLE: PyStaticExpr = type_hint_identifier!("builtins", "tuple");
const ARRAY: PyStaticExpr = type_hint_identifier!("numpy.typing", "NDArray");
const REST: PyStaticExpr = PyStaticExpr::Constant {
    value: PyStaticConstant::Ellipsis,
};

/// Declares types of the stub.
macro_rules! hints {
    ($($(#[$about:meta])* $name:ty = $hint:expr;)*) => {
        $(impl Hint for $name {
            const HINT: PyStaticExpr = $hint;
        })*
    };
}

/// Declares classes of `linkwright.base.native_types`.
macro_rules! rows {
    ($($name:ident)*) => {
        $(pub struct $name;

        impl Hint for $name {
            const HINT: PyStaticExpr =
                type_hint_identifier!("linkwright.base.native_types", stringify!($name));
        })*
    };
}

/// Values of any type, by name.
pub struct Anything;
/// A `linkwright.base.units.Time`.
pub struct Time;
/// Numbers by name.
pub struct Shares;
/// Whole numbers by name.
pub struct Codes;
/// Sides of a grid.
pub struct Sides;
/// Tables of a file -> key -> what it may be.
pub struct Keys;
/// Columns of a file, by name.
pub struct Table;
/// Values of one column.
pub struct Values;
/// What a sampler measures.
pub struct Work;

hints! {
    Anything = type_hint_subscript!(DICT, STR, ANY);
    Time = type_hint_identifier!("linkwright.base.units", "Time");
    Shares = type_hint_subscript!(DICT, STR, FLOAT);
    Codes = type_hint_subscript!(DICT, STR, INT);
    Sides = type_hint_subscript!(TUPLE, INT, REST);
    Keys = type_hint_subscript!(DICT, STR, type_hint_subscript!(DICT, STR, KeyRow::HINT));
    Table = type_hint_subscript!(DICT, STR, type_hint_subscript!(TUPLE, ANY, REST));
    Values = type_hint_subscript!(LIST, ANY);
    Work = type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Callable"),
        PyStaticExpr::List { elts: &[INT] },
        type_hint_identifier!("builtins", "object")
    );
    Column<String> = type_hint_subscript!(LIST, STR);
    Column<u8> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "uint8"));
    Column<u32> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "uint32"));
    Column<u64> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "uint64"));
    Column<i64> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "int64"));
    Column<f32> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "float32"));
    Column<f64> = type_hint_subscript!(ARRAY, type_hint_identifier!("numpy", "float64"));
}

rows! {
    AlgorithmRow AxisRow CacheRow CollectiveRow DescribedRow DeviceRow EndpointRow ErrorRow FormatRow KeyRow LaunchColumns LayerRow
    LibraryRow MachineNumbers MeasuredColumns MetricRow MemoryColumns ModelledRow NetworkColumns NumberRow OperationColumns
    PatternRow PcieLinkRow ProbeRow ProvedRow RankLaunchColumns RankProgramColumns RouteColumns RuleRow
    SampledColumns StreamColumns
}

/// A dictionary: of keys and values, `key = value`, and of fields of a struct, `..value.{name, summary}`, in this order.
macro_rules! row {
    (@ $row:ident,) => {};
    (@ $row:ident, ..$from:ident.{$($field:ident),*} $(, $($rest:tt)*)?) => {
        $($row.set_item(stringify!($field), &$from.$field)?;)*
        $(row!(@ $row, $($rest)*);)?
    };
    (@ $row:ident, $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $row.set_item(stringify!($key), $value)?;
        $(row!(@ $row, $($rest)*);)?
    };
    ($py:expr, $($items:tt)*) => {{
        let row = pyo3::types::PyDict::new($py);
        row!(@ row, $($items)*);
        $crate::hints::Typed::new(row)
    }};
}
pub(crate) use row;
