"""kernelweave beside scikit-learn and other packages: `python -m benchmarks --help`."""
