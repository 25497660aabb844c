"""Names of packages that are imported on first use."""

import subprocess
import sys

import pytest

import kernelweave
from kernelweave import estimators, tables


@pytest.mark.parametrize("package", [kernelweave, estimators, tables])
def test_every_public_name_is_found_and_listed(package):
    for name in package.__all__:
        value = getattr(package, name)
        if name != "__version__":
            assert vars(package)[name] is value  # found once
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'x'"):
        _ = package.x


def test_a_name_imports_its_own_module_alone():
    program = (
        "import sys, kernelweave; before = 'kernelweave.kernels' in sys.modules; "
        "kernelweave.RBF; "
        "print(before, 'kernelweave.kernels' in sys.modules, 'kernelweave.solvers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "False"], done.stderr
