"""Every error the library raises on purpose; each message is one sentence with a hint."""


class KernelweaveError(Exception):
    """Base of all errors raised on purpose."""


class InputError(KernelweaveError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(KernelweaveError, TypeError):
    """An argument has a type that cannot be used."""


class MemoryBudgetError(KernelweaveError, ValueError):
    """The kernels asked for do not fit in the memory allowed."""


class ModelFileError(KernelweaveError, ValueError):
    """A model file cannot be written or read."""


class DataError(KernelweaveError, ValueError):
    """A data set cannot be found or read."""
