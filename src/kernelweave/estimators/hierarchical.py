"""Generalised hierarchical kernel learning (gHKL) on a directed acyclic graph of kernels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from kernelweave.losses import Hinge, Loss

from .calibration import CALIBRATION
from .classifier import LabelClassifier
from .hierarchical_base import BaseHierarchical
from .predictions import TaskClassifier
from .shared_docs import BOUNDS, CALIBRATED, NODES, SUPPORT, shared_attributes


@shared_attributes(NODES, BOUNDS, SUPPORT, CALIBRATED)
@dataclass(eq=False, repr=False)
class HierarchicalMKLClassifier(TaskClassifier, BaseHierarchical, LabelClassifier):
    """Support vector classifier on a directed acyclic graph of kernels.

    Minimises

    ``1/2 (sum_v d_v (sum over nodes w from v downwards of Q_w^rho)^(1/rho))^2
    + sum_i C_i max(0, 1 - y_i f(x_i))``

    over functions ``f = sum_w <f_w, phi_w> + b`` with one term for each node, ``Q_w`` being the
    norm of ``f_w``. The term of a node contains all its descendants, so that these can be non-zero
    only where the terms of their ancestors are paid for. Without edges this is `MKLClassifier` with
    ``norm=1``. Several classes are learned one against the rest, and several labels at once, as
    tasks that share the choice of kernels.

    Parameters
    ----------
    C : float
        Cost of errors. The squared norm adds the terms of all ancestors, so that useful values are
        larger than in `MKLClassifier`.
    class_weight : dict, "balanced" or None
        Factors of C by class; of several labels, by the values 0 and 1 of each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; of several labels their numbers.

    References
    ----------
    Jawanpuria, Saketha Nath and Ramakrishnan (2015), Generalized hierarchical kernel learning,
    JMLR 16, equations (5) to (8), (13) and (15), Algorithm 2.
    Bach (2008), Exploring large feature spaces with hierarchical multiple kernel learning, NIPS.

    Examples
    --------
    >>> from kernelweave import RBF, HierarchicalMKLClassifier
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(100, random_state=0)
    >>> left, right = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])
    >>> model = HierarchicalMKLClassifier(
    ...     {"left": left, "right": right, "both": left * right},
    ...     parents={"both": ["left", "right"]},
    ...     C=100,
    ... ).fit(data.X, data.y)
    >>> bool(model.converged_), sorted(model.active_nodes_)
    (True, ['both', 'left', 'right'])
    """

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None

    _declaration = BaseHierarchical._declaration.extended(
        {"classes_": "labels[classes]", "_several": "flag"}
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseHierarchical._constraints,
        "class_weight": LabelClassifier._parameter_constraints["class_weight"],
        **CALIBRATION,
    }

    def _make_loss(self) -> Loss:
        return Hinge(fit_intercept=self.fit_intercept)
