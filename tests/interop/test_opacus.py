"""Opacus: histories as claims, the floor of float noise, and loaders that are refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

import zerodelta as zd
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.interop.opacus import _plan, claim, float_floor, history_claim, plan
from zerodelta.privacy.claims import RDP, GaussianDP, PureDP

ADD_REMOVE = zd.records.Neighbors.ADD_REMOVE
RUN = [(1.52, 0.01, 1000)]


def test_a_history_is_poisson_sampling_and_adds_up() -> None:
    exact = history_claim(RUN, trust_float_noise=True)
    assert isinstance(exact, RDP)
    assert exact.neighbors is ADD_REMOVE
    halves = history_claim([(1.52, 0.01, 400), (1.52, 0.01, 600)], trust_float_noise=True)
    for epsilon in (Fraction(1, 2), 1, 4):
        assert halves.log_delta(epsilon) == pytest.approx(exact.log_delta(epsilon), rel=1e-9)


def test_a_history_is_never_below_the_bound_by_mpmath() -> None:
    """The smallest of theory B6 over the orders, from the binomial sum."""
    rate = mpf(math.ceil(0.01 * 2**24)) / 2**24
    found = history_claim(RUN, trust_float_noise=True)
    with mp.workdps(40):
        mu_squared = 1 / mpf(1.52) ** 2
        for epsilon in (0.5, 1, 4):
            bounds = []
            for a in range(2, 70):
                terms = (
                    mp.binomial(a, k) * (1 - rate) ** (a - k) * rate**k
                    * mp.exp(mpf(k) * (k - 1) * mu_squared / 2)
                    for k in range(a + 1)
                )  # fmt: skip
                divergence = 1000 * mp.log(mp.fsum(terms)) / (a - 1)
                tail = (a - 1) * (divergence - epsilon + mp.log1p(-mpf(1) / a))
                bounds.append(tail - mp.log(a))
            assert min(0, *bounds) <= mpf(found.log_delta(epsilon))
            assert any(abs(mpf(found.log_delta(epsilon)) - b) < mpf("1e-9") for b in bounds)


def test_rates_are_rounded_up_to_what_torch_samples_with() -> None:
    grid = 2.0**-24
    rounded = history_claim([(1.5, grid * 1.25, 10)], trust_float_noise=True)
    assert rounded == history_claim([(1.5, grid * 2, 10)], trust_float_noise=True)
    assert rounded != history_claim([(1.5, grid, 10)], trust_float_noise=True)
    whole = history_claim([(2.0, 1.0, 4)], trust_float_noise=True)
    assert whole == GaussianDP(1, neighbors=ADD_REMOVE)
    assert history_claim([]) == PureDP(0, neighbors=ADD_REMOVE)


@pytest.mark.parametrize("sigma", [0.62, 1.52, 5.0])
def test_float_noise_has_a_floor_at_every_epsilon(sigma: float) -> None:
    history = [(sigma, 0.01, 1000)]
    with mp.workdps(30):
        end = mp.sqrt(48 * mp.log(2))
        tail = mp.ncdf(1 / mpf(sigma) - end) - mp.ncdf(-end)
        floor = mp.log(mpf(1000) * mpf("0.01") * tail)
        assert float_floor(history) == pytest.approx(float(floor), abs=1e-4)
    for epsilon in (1, 8, 1000):
        assert history_claim(history).log_delta(epsilon) >= float_floor(history)
    assert history_claim(history, trust_float_noise=True).log_delta(1000) < -1000


def test_a_choice_is_published_and_a_vector_is_not() -> None:
    chosen = _plan(RUN, zd.Finite(16), 1, "1/100", False)
    certificate = chosen.purify(11).certificate
    assert certificate.status.value == "asserted"
    assert certificate.claim == PureDP(1, neighbors=ADD_REMOVE)
    with pytest.raises(GuaranteeError) as refusal:
        _plan(RUN, zd.Ball(100, 1), 1, "1/100", False)
    assert "trust_float_noise" in str(refusal.value)
    assert "times the noise multiplier" in str(refusal.value)


def test_enough_noise_is_still_float_noise() -> None:
    strong = [(60.0, 0.01, 1000)]
    with pytest.raises(GuaranteeError, match="trust_float_noise"):
        _plan(strong, zd.purification.Subsets(of=40, size=10), 1, "1/100", False)
    trusted = _plan(strong, zd.purification.Subsets(of=40, size=10), 1, "1/100", True)
    assert trusted.log_delta < float_floor(strong)


def test_the_noise_that_a_refusal_names_is_enough_and_not_much_more() -> None:
    weak, space = [(0.8, 0.01, 1000)], zd.Finite(10**6)
    with pytest.raises(GuaranteeError, match="times the noise multiplier") as refusal:
        _plan(weak, space, 1, "1/100", True)
    factor = float(str(refusal.value).split("; ")[1].split()[0])
    enough = [(0.8 * factor * 1.01, 0.01, 1000)]
    assert _plan(enough, space, 1, "1/100", True).epsilon == 1
    with pytest.raises(GuaranteeError):
        _plan([(0.8 * factor * 0.98, 0.01, 1000)], space, 1, "1/100", True)


def test_where_no_noise_would_do_the_refusal_says_so() -> None:
    """Orders end at 10^6, so that at ε = 1/10000 no ln δ is below -100."""
    with pytest.raises(GuaranteeError, match="no noise multiplier is enough"):
        _plan(RUN, zd.Ball(1000, 1), "1/10000", "1/100", True)


def test_hardly_any_noise_hides_nothing() -> None:
    history = [(1e-300, 0.1, 100)]
    assert float_floor(history) == 0.0
    assert history_claim(history).log_delta(1) == 0.0
    assert history_claim(history, trust_float_noise=True).log_delta(1) == 0.0


@pytest.mark.parametrize("history", [None, 3, [(1.5, 0.1)], [3], [(1.5, 0.1, 5, 5)]], ids=repr)
def test_what_is_no_history_is_refused(history: Any) -> None:
    with pytest.raises(ParameterError, match="history"):
        history_claim(history)
    with pytest.raises(ParameterError, match="history"):
        float_floor(history)


@pytest.mark.parametrize(
    "entry", [(0.0, 0.1, 5), (1.0, 0.0, 5), (1.0, 1.5, 5), (1.0, 0.1, 0), (math.nan, 0.1, 5)]
)
def test_malformed_histories_are_refused(entry: Any) -> None:
    with pytest.raises(ParameterError):
        history_claim([entry])


def trained(**options: Any) -> Any:
    torch = pytest.importorskip("torch", reason="the bridge's extra is not installed")
    opacus = pytest.importorskip("opacus", reason="the bridge's extra is not installed")
    data = torch.utils.data.TensorDataset(torch.zeros(200, 3), torch.zeros(200, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=20)
    model = torch.nn.Linear(3, 1)
    engine = opacus.PrivacyEngine(accountant=options.pop("accountant", "rdp"))
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader,
        noise_multiplier=1.5,
        max_grad_norm=1.0,
        **options,
    )
    for rows, targets in loader:
        optimizer.zero_grad()
        (model(rows) - targets).square().mean().backward()
        optimizer.step()
    return engine, loader


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accountant", ["rdp", "gdp", "prv"])
def test_a_run_is_read_from_its_engine(accountant: str) -> None:
    engine, loader = trained(accountant=accountant)
    ((sigma, rate, steps),) = engine.accountant.history
    assert (sigma, rate, steps) == (1.5, 0.1, 10)
    found = claim(engine, loader)
    assert found.log_delta(2) == history_claim([(1.5, 0.1, 10)]).log_delta(2)
    assert plan(engine, loader, space=zd.Finite(16), epsilon=2).purify(3).value in range(16)


@pytest.mark.filterwarnings("ignore")
def test_other_loaders_are_refused_because_the_history_cannot_tell() -> None:
    engine, loader = trained(poisson_sampling=False)
    poisson, sampled = trained()
    assert engine.accountant.history == poisson.accountant.history
    with pytest.raises(ParameterError, match="does not show"):
        claim(engine, loader)
    with pytest.raises(ParameterError, match="engine"):
        claim(None, sampled)
    poisson.accountant.history.append((1.5, 0.2, 1))  # two batches in one step
    with pytest.raises(ParameterError, match="sampling rate"):
        claim(poisson, sampled)
    poisson.accountant.history[:] = [(1.5, 0.2, 1)]
    sampled.sample_rate = 0.2  # batches are drawn with that of the sampler
    with pytest.raises(ParameterError, match="sampling rate"):
        claim(poisson, sampled)


@pytest.mark.filterwarnings("ignore")
def test_loaders_that_leave_out_empty_batches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, loader = trained()
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    data = torch.utils.data.TensorDataset(torch.zeros(3, 3))
    distributed = type(loader)(data, sample_rate=loader.sample_rate, distributed=True)
    assert any(len(list(distributed)) < len(distributed) for _ in range(1000))
    with pytest.raises(ParameterError, match="empty"):
        claim(engine, distributed)


@pytest.mark.filterwarnings("ignore")
def test_exact_noise_agrees_with_opacus_where_it_can_follow() -> None:
    engine, loader = trained()
    theirs = engine.accountant.get_epsilon(1e-5, alphas=list(range(2, 300)))
    ours = claim(engine, loader, trust_float_noise=True).epsilon(math.log(1e-5))
    assert ours == pytest.approx(theirs, rel=1e-3)
