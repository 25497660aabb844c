"""Every public estimator keeps scikit-learn's contract."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelweave
from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    Polynomial,
    ProductLattice,
    Propositions,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    SumProductMKLClassifier,
    group,
    polynomial_ladder,
    rbf_ladder,
)

# Each public estimator with default parameters, then in other configurations.
CONFIGURATIONS = {
    HierarchicalMKLClassifier: [
        HierarchicalMKLClassifier(),
        HierarchicalMKLClassifier(
            {"line": Linear(), "wide": RBF(4.0), "narrow": RBF(1.0)},
            parents={"wide": ["line"], "narrow": ["wide"]},
            node_cost={"line": 1.0, "wide": 1.5, "narrow": 2.0},
            rho=2.0,
            class_weight="balanced",
            n_jobs=1,
        ),
        HierarchicalMKLClassifier(
            ProductLattice(polynomial_ladder([1, 2], coef0=0.0, per_feature=True), max_order=2),
            rho=1.1,
            normalize="trace",
            certificate="paper",
            tol=1e-2,
        ),
        HierarchicalMKLClassifier([RBF(2.0), Linear()], solver="mirror", task_correlation=1.0),
    ],
    HierarchicalMKLRegressor: [
        HierarchicalMKLRegressor(),
        HierarchicalMKLRegressor(
            [Linear(), RBF(2.0)], parents={1: [0]}, loss="square", fit_intercept=False
        ),
        HierarchicalMKLRegressor(loss="huber", task_correlation=0.5, node_cost=1.5, C=10),
    ],
    MKLClassifier: [
        MKLClassifier(),
        MKLClassifier(norm=2.0, normalize="cosine", class_weight="balanced"),
        MKLClassifier([rbf_ladder([1.0, 3.0]), Linear()], norm="uniform", normalize=None, n_jobs=1),
    ],
    MKLRegressor: [
        MKLRegressor(),
        MKLRegressor([Linear(), RBF(2.0)], loss="square", norm="uniform", fit_intercept=False),
        MKLRegressor([Polynomial(2), RBF(2.0)], loss="huber", norm=1.5, normalize="diagonal"),
    ],
    NoisyLabelMKLClassifier: [
        NoisyLabelMKLClassifier(),
        NoisyLabelMKLClassifier(rbf_ladder(), noise_level="auto", fit_intercept=False, n_jobs=1),
        NoisyLabelMKLClassifier(cap=0.6, lam=1.0, slack=0.2),
        NoisyLabelMKLClassifier(robust="best", noise_level=0.1),
    ],
    NoiseTolerantKernelClassifier: [
        NoiseTolerantKernelClassifier(),
        NoiseTolerantKernelClassifier(mode="class", average="kernels"),
        NoiseTolerantKernelClassifier([RBF(2.0), Linear()], mode="symmetric", floor=0.0, n_jobs=1),
        NoiseTolerantKernelClassifier(rbf_ladder(), mode="class", final="svm"),
    ],
    Propositions: [
        Propositions(),
        Propositions(2, cut_strategy="uniform", categorical=[0]),
    ],
    RadiusKernelClassifier: [
        RadiusKernelClassifier(),
        RadiusKernelClassifier("ard", class_weight="balanced", n_starts=1),
        RadiusKernelClassifier("mixture", n_widths=2, fit_intercept=False, n_jobs=1),
    ],
    SumProductMKLClassifier: [
        SumProductMKLClassifier(),
        SumProductMKLClassifier(rbf_ladder([1.0, 3.0]), p=2.0, class_weight="balanced", n_jobs=1),
        SumProductMKLClassifier((RBF(2.0) + RBF(4.0)) * (RBF(3.0) + Linear()) + group(Linear())),
        SumProductMKLClassifier(
            RBF(2.0) * Linear() + Linear(), p=0.5, n_starts=2, random_state=0, normalize="trace"
        ),
    ],
    RadiusMKLClassifier: [
        RadiusMKLClassifier(),
        RadiusMKLClassifier(norm=2, criterion="chapelle", class_weight="balanced"),
        RadiusMKLClassifier([rbf_ladder([1.0, 3.0]), Linear()], radius="upper", normalize=None),
        RadiusMKLClassifier([Linear(), RBF(2.0)], norm=1, criterion="do", n_jobs=1),
        RadiusMKLClassifier(norm="uniform", normalize="diagonal"),
        RadiusMKLClassifier(norm=1, solver="projection", criterion="chapelle_literal"),
    ],
}


def public_estimators():
    members = (getattr(kernelweave, name) for name in kernelweave.__all__)
    return {m for m in members if inspect.isclass(m) and issubclass(m, BaseEstimator)}


def test_every_public_estimator_is_checked():
    assert public_estimators() == set(CONFIGURATIONS)
    for kind, configurations in CONFIGURATIONS.items():
        assert configurations[0].get_params() == kind().get_params(), "defaults come first"
        assert all(type(model) is kind for model in configurations)


# scikit-learn's own test of the type of y casts an infinite label to a whole number.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
# Some of its tests have labels that nothing can be learned about.
@pytest.mark.filterwarnings("ignore:NoiseTolerantKernelClassifier. the kernels tell:UserWarning")
@pytest.mark.filterwarnings("ignore:SumProductMKLClassifier. the best weights are:UserWarning")
@parametrize_with_checks([model for models in CONFIGURATIONS.values() for model in models])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", CONFIGURATIONS, ids=lambda kind: kind.__name__)
def test_everything_public_is_documented(kind):
    documented = inspect.getdoc(kind)
    for name in kind().get_params():
        assert f"\n{name} : " in documented, f"{kind.__name__} does not document {name}"
    for name, member in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{kind.__name__}.{name} has no docstring"


@pytest.mark.parametrize("kind", CONFIGURATIONS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:NoiseTolerantKernelClassifier. the kernels tell:UserWarning")
def test_fitted_attributes_are_documented_and_the_other_way_round(kind):
    X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]
    model = kind().fit(X, [0, 1, 0, 1])
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    section = inspect.getdoc(kind).partition("Attributes\n")[2]
    documented = {line.split(" : ")[0] for line in section.splitlines() if "_ : " in line}
    assert fitted == documented - {"feature_names_in_"}
