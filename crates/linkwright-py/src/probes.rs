//! Probes: what is asked, and the two ways to answer.

use std::sync::Mutex;

use linkwright_core::probes::{find, Assignment, Description, CATALOGUE, LAYERS};
use linkwright_exec::probes::{run, Answer, Setting, PROBES};
use linkwright_exec::topology::Topology;
use linkwright_sim::probes::{answer, Answer as Modelled, MODEL_PROBES};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::hints::{self, row, Named, Typed};
use crate::machine::Machine;
use crate::options::Options;
use crate::sampling::{sampled, sampling_options};

/// Every probe of the catalogue: `key, summary, description, axes, metrics, size_axis, table, source, waived`,
/// and whether it is `measured` natively and `modelled`.
#[pyfunction]
pub fn probes(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::ProbeRow>>> {
    CATALOGUE.iter().map(|about| entry(py, about)).collect()
}

fn entry<'py>(py: Python<'py>, about: &Description) -> PyResult<Typed<'py, hints::ProbeRow>> {
    let axes = about.axes.iter().map(|axis| {
        Ok(row!(
            py,
            key = axis.key,
            kind = axis.kind.name(),
            words = axis.kind.words(),
            ..axis.{summary, default},
        ))
    });
    let metrics = about.metrics.iter().map(|metric| {
        Ok(row!(
            py,
            ..metric.{key, unit},
            better = metric.better.name(),
            summary = metric.summary,
            source = metric.from.name(),
        ))
    });
    Ok(row!(
        py,
        ..about.{key, summary, description},
        axes = axes.collect::<PyResult<Vec<Typed<hints::AxisRow>>>>()?,
        metrics = metrics.collect::<PyResult<Vec<Typed<hints::MetricRow>>>>()?,
        ..about.{size_axis, table, source, waived},
        measured = PROBES.iter().any(|p| p.about.key == about.key),
        modelled = MODEL_PROBES.iter().any(|p| p.about.key == about.key),
    ))
}

/// The values of the axes of probe `key`, by name.
pub fn assignment(key: &str, Named(axes): &Named<'_>) -> PyResult<Assignment> {
    let wrong = |error| errors::exec(linkwright_exec::ExecError::Probe(error));
    let given: Vec<(String, String)> = axes
        .iter()
        .map(|(axis, value)| Ok((axis.extract()?, value.str()?.extract()?)))
        .collect::<PyResult<_>>()?;
    let pairs: Vec<(&str, &str)> = given.iter().map(|(a, v)| (&**a, &**v)).collect();
    Assignment::parse(find(key).map_err(wrong)?, &pairs).map_err(wrong)
}

/// One launch of the probe `key` on this machine.
///
/// Options: `cpus` (those of a placed probe first), `samples, warmup_at_most, budget_s, settle_within, seed,
/// most_bytes`; all may be left out. Columns by sample: `values_ns` and those of the probe's own metrics.
#[pyfunction]
#[pyo3(signature = (key, axes, options=None))]
pub fn run_probe<'py>(
    py: Python<'py>,
    key: &str,
    axes: Named<'py>,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::MeasuredColumns>> {
    let asked = assignment(key, &axes)?;
    let mut given = Options::new(options);
    let all = || Topology::discover().cpus.iter().map(|cpu| cpu.id).collect();
    // Ctrl-C belongs to the thread that called; what it raised is kept until the probe has ended.
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let cancelled = || {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) => {
                *raised.lock().expect("no panic while held") = Some(error);
                true
            }
        })
    };
    let setting = Setting {
        cpus: given.take("cpus")?.unwrap_or_else(all),
        sampling: sampling_options(&mut given)?,
        seed: given.take("seed")?.unwrap_or(0),
        most_bytes: given.take("most_bytes")?,
        cancelled: Some(&cancelled),
    };
    given.finish()?;
    let found = py.detach(|| run(&asked, &setting));
    if let Some(error) = raised.lock().expect("no panic while held").take() {
        return Err(error);
    }
    columns(py, found.map_err(errors::exec)?)
}

fn columns(py: Python<'_>, found: Answer) -> PyResult<Typed<'_, hints::MeasuredColumns>> {
    let own = PyDict::new(py);
    for (metric, values) in found.columns {
        own.set_item(metric, values.into_pyarray(py))?;
    }
    let table = sampled(py, found.samples)?;
    let more: Typed<hints::MeasuredColumns> =
        row!(py, ..found.{counted_bytes, moved_bytes, work}, columns = own, notes = found.notes);
    table.object().call_method1("update", (more,))?;
    Ok(table.into())
}

/// Layers of the probe `convolution`: `key`, sizes, width of the `output` and `flops` of one image each.
#[pyfunction]
pub fn convolution_layers(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::LayerRow>>> {
    let row = |layer: &linkwright_core::probes::Layer| {
        Ok(row!(
            py,
            ..layer.{key, filter, input, in_channels, out_channels, stride, groups},
            output = layer.output(),
            flops = layer.flops(1),
        ))
    };
    LAYERS.iter().map(row).collect()
}

/// The modelled answer: `time_ps, counted_bytes, moved_bytes, columns`.
#[pyfunction]
pub fn model_probe<'py>(
    py: Python<'py>,
    machine: &Machine,
    key: &str,
    axes: Named<'py>,
) -> PyResult<Typed<'py, hints::ModelledRow>> {
    let asked = assignment(key, &axes)?;
    let found = py
        .detach(|| answer(&machine.described, &asked))
        .map_err(errors::sim)?;
    answered(py, found)
}

/// What a model answered, by name.
pub fn answered(py: Python<'_>, found: Modelled) -> PyResult<Typed<'_, hints::ModelledRow>> {
    let own = PyDict::new(py);
    for (metric, value) in found.columns {
        own.set_item(metric, value)?;
    }
    Ok(row!(py, time_ps = found.time.0, ..found.{counted_bytes, moved_bytes, work}, columns = own))
}

/// Nanoseconds per cycle of each of these processors just now, by default of the one that the caller runs
/// on; None where it cannot be measured.
#[pyfunction]
#[pyo3(signature = (cpus=None))]
pub fn cycles_ns(py: Python<'_>, cpus: Option<Vec<u32>>) -> Vec<Option<f64>> {
    let cpus = cpus.unwrap_or_else(|| vec![linkwright_exec::guard::current_cpu() as u32]);
    py.detach(|| linkwright_exec::probes::cycle::cycles_ns(&cpus))
}

/// Bytes that this process may still take, by machine, control group and its own limit; None: unknown.
#[pyfunction]
pub fn available_memory() -> Option<u64> {
    linkwright_core::free_memory::available_memory()
}

/// Caches that the first processor sees, nearest first: `level, kind, bytes, shared_by` each.
#[pyfunction]
pub fn caches(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::CacheRow>>> {
    let topology = Topology::discover();
    let seen = topology.cpus.first().map_or(&[][..], |cpu| &cpu.caches);
    let row = |cache: &linkwright_exec::topology::Cache| {
        Ok(row!(py, ..cache.{level, kind, bytes, shared_by}))
    };
    seen.iter().map(row).collect()
}
