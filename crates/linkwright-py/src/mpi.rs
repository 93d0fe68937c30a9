//! The ranks of an MPI job, whose library Python has started.

use std::collections::BTreeMap;

use linkwright_exec::dtype::{DType, ReduceOp};
use linkwright_exec::mpi::library::{Functions, Group, Handles, Library};
use linkwright_exec::mpi::{Call, Mpi, RankLaunch};
use linkwright_schedule::builder::Shape;
use linkwright_schedule::classes::{Classes, Copies};
use linkwright_schedule::spec::Collective;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::hints::{self, Named, Typed};
use crate::options::Options;
use crate::schedule::{exchange, Routed, Schedule};
use crate::threads::{columns, only_run_options, run_options_with_issue};

/// Some ranks of a started MPI library; all of them call a method together.
#[pyclass(frozen, module = "linkwright._native")]
pub struct MpiGroup(Mpi);

#[pymethods]
impl MpiGroup {
    /// `functions` are addresses by name (see `functions`); `handles` values by name: `byte, double, max,
    /// in_place, tag_limit, dtypes, ops`; `data` and `control` are two communicators of the same group.
    ///
    /// The addresses must be those of the named functions of the library that owns the handles.
    #[new]
    #[allow(clippy::too_many_arguments)] // the facts of one library
    fn new(
        functions: BTreeMap<String, usize>,
        handles: Named<'_>,
        data: usize,
        control: usize,
        rank: u32,
        size: u32,
        oversubscribed: bool,
        part_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let mut given = Options::new(Some(handles));
        let mut word = |key| given.take::<usize>(key).map(Option::unwrap_or_default);
        let (byte, double, max) = (word("byte")?, word("double")?, word("max")?);
        let in_place = word("in_place")?;
        let handles = Handles {
            byte,
            double,
            max,
            in_place,
            tag_limit: given.take("tag_limit")?.unwrap_or(32_767),
            dtypes: given.take("dtypes")?.unwrap_or_default(),
            ops: given.take("ops")?.unwrap_or_default(),
        };
        given.finish()?;
        // SAFETY: the caller vouches for the addresses, see above.
        let functions = unsafe { Functions::from_addresses(&functions) }.map_err(errors::exec)?;
        let library = Library { functions, handles };
        let group = Group {
            data,
            control,
            rank,
            size,
        };
        let mpi = Mpi::new(library, group, oversubscribed);
        Ok(MpiGroup(match part_bytes {
            Some(bytes) => mpi.with_part_bytes(bytes),
            None => mpi,
        }))
    }

    /// Functions of MPI that are called, without `MPI_`.
    #[staticmethod]
    fn functions() -> Vec<&'static str> {
        Functions::NAMES.to_vec()
    }

    /// Data types in the order in which `dtypes` names their handles.
    #[staticmethod]
    fn dtypes() -> Vec<&'static str> {
        DType::ALL.map(DType::name).to_vec()
    }

    /// Operators in the order in which `ops` names their handles.
    #[staticmethod]
    fn ops() -> Vec<&'static str> {
        ReduceOp::ALL.map(ReduceOp::name).to_vec()
    }

    /// One launch of `schedule`; options and columns as of `run_threads`, starts and finishes of this rank.
    #[pyo3(signature = (schedule, options=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        schedule: &Schedule,
        options: Option<Named<'py>>,
    ) -> PyResult<Typed<'py, hints::RankLaunchColumns>> {
        let (data, run, issue) = run_options_with_issue(options)?;
        let ordered = schedule.proved(py)?;
        let launch = py.detach(|| self.0.with_issue(issue).run(ordered, data, &run));
        rank_columns(py, launch.map_err(errors::exec)?)
    }

    /// One launch of the library's own collective, by its name in snake case; `counts` and `routing` of an uneven
    /// exchange are those of `Schedule.build`.
    #[pyo3(signature = (collective, elements, *, root=0, in_place=false, counts=None, routing=None, options=None))]
    #[allow(clippy::too_many_arguments)] // the keywords of one Python method
    fn run_native<'py>(
        &self,
        py: Python<'py>,
        collective: &str,
        elements: u64,
        root: u32,
        in_place: bool,
        counts: Option<Vec<u64>>,
        routing: Option<Routed>,
        options: Option<Named<'py>>,
    ) -> PyResult<Typed<'py, hints::RankLaunchColumns>> {
        let collective = Collective::from_name(collective).ok_or_else(|| {
            errors::raise(
                "UnknownNameError",
                format!("unknown collective `{collective}`"),
            )
        })?;
        let (data, run) = only_run_options(options)?;
        let counts = match collective.is_uneven() {
            true => {
                let shape = Shape {
                    exchange: exchange(counts, routing, Vec::new()),
                    ..Shape::new(self.0.ranks(), elements)
                };
                let classes = Classes::of(&shape, Copies::Rank).map_err(errors::schedule)?;
                classes.matrix(collective == Collective::Combine)
            }
            false => Vec::new(),
        };
        let call = Call {
            collective,
            elements,
            root,
            in_place,
            counts,
        };
        let launch = py.detach(|| self.0.run_native(call, data, &run));
        rank_columns(py, launch.map_err(errors::exec)?)
    }

    /// Run `schedule` once and compare this rank's buffers with the reference; the bytes compared.
    fn compare_with_reference(
        &self,
        py: Python<'_>,
        schedule: &Schedule,
        dtype: &str,
        op: &str,
    ) -> PyResult<u64> {
        let options = PyDict::new(py);
        options.set_item("dtype", dtype)?;
        options.set_item("op", op)?;
        let (data, _) = only_run_options(Some(Named(options)))?;
        let ordered = schedule.proved(py)?;
        let compared = py.detach(|| self.0.compare_with_reference(ordered, data));
        compared.map_err(errors::exec)
    }
}

fn rank_columns(
    py: Python<'_>,
    found: RankLaunch,
) -> PyResult<Typed<'_, hints::RankLaunchColumns>> {
    let table = columns(py, found.launch)?;
    table.object().set_item("sync", found.method.name())?;
    table.object().set_item("residual_ns", found.residual_ns)?;
    table.object().set_item("canary_ns", found.canary_ns)?;
    Ok(table.into())
}
