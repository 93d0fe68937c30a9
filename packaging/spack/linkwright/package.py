"""Spack package: copy the folder `linkwright` into the packages of a repository of yours."""

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Linkwright(PythonPackage):
    """Dissects how a machine communicates: the same schedules verified, simulated and executed."""

    # Set `git` to the repository that you install from.
    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="measure nodes of a cluster (--on mpi)")

    depends_on("c", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("rust@1.85:", type="build")
    depends_on("py-maturin@1.9:1", type="build")
    depends_on("py-click@8.2:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-numpy@2:", type=("build", "run"))
    depends_on("py-threadpoolctl@3.5:", type=("build", "run"))
    depends_on("mpi", type="run", when="+mpi")
    depends_on("py-mpi4py", type=("build", "run"), when="+mpi")
